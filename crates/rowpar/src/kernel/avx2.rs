//! AVX2: 8 rows in the 8 lanes of a register. `tiles.rs` says how the rows get there.
//!
//! Never fused: only `avx2` is enabled, and Rust does not contract.

use std::arch::{asm, x86_64::*};

use super::tiles::{self, LANES, LINE_COLS, Prefetch, Stream};

/// Computes every row of `out`; shapes are as K2 says.
#[target_feature(enable = "avx2")]
pub(super) fn matvec<const B: usize>(w: &[f32], x: [&[f32]; B], out: [&mut [f32]; B]) {
    // SAFETY: `tile` enables what this function enables, and asks for nothing more than `matvec` grants.
    unsafe { tiles::matvec(w, x, out, tile::<B>) }
}

/// The sums of 8 rows for each input.
///
/// Loops over lanes and inputs are plain `for` loops: a closure that is handed to a library function, which
/// is compiled without AVX2, would not be inlined.
///
/// # Safety
///
/// As [`tiles::TileFn`] says.
#[target_feature(enable = "avx2")]
unsafe fn tile<const B: usize>(
    rows: [*const f32; LANES],
    x: [&[f32]; B],
    stream: Stream,
) -> [[f32; LANES]; B] {
    let n_cols = x[0].len();
    let mut acc = [_mm256_setzero_ps(); B];
    let mut col = 0;
    while n_cols - col >= LINE_COLS {
        let ahead = Prefetch::new(rows, stream, col);
        ahead.rows(0);
        // SAFETY: `col + 16 <= n_cols`, and the rows are valid for `n_cols` values.
        unsafe { step(&mut acc, rows, x, col) };
        ahead.rows(2);
        // SAFETY: the same.
        unsafe { step(&mut acc, rows, x, col + 4) };
        ahead.rows(4);
        // SAFETY: the same.
        unsafe { step(&mut acc, rows, x, col + 8) };
        ahead.rows(6);
        // SAFETY: the same.
        unsafe { step(&mut acc, rows, x, col + 12) };
        col += LINE_COLS;
    }
    while n_cols - col >= 4 {
        // SAFETY: `col + 4 <= n_cols`, and the rows are valid for `n_cols` values.
        unsafe { step(&mut acc, rows, x, col) };
        col += 4;
    }
    while col < n_cols {
        let mut column = [0.0; LANES];
        for (value, row) in column.iter_mut().zip(rows) {
            // SAFETY: `col < n_cols`, and the rows are valid for `n_cols` values.
            *value = unsafe { row.wrapping_add(col).read() };
        }
        let [a, b, c, d, e, f, g, h] = column;
        let column = _mm256_setr_ps(a, b, c, d, e, f, g, h);
        for (acc, x) in acc.iter_mut().zip(x) {
            *acc = _mm256_add_ps(*acc, _mm256_mul_ps(column, _mm256_set1_ps(x[col])));
        }
        col += 1;
    }
    let mut sums = [[0.0; LANES]; B];
    for (sums, acc) in sums.iter_mut().zip(acc) {
        // SAFETY: `sums` has room for the 8 values, and the store needs no alignment.
        unsafe { _mm256_storeu_ps(sums.as_mut_ptr(), acc) };
    }
    sums
}

/// Columns `col..col + 4` of every sum, left to right.
///
/// # Safety
///
/// Each of `rows` must be valid for reads of `col + 4` values.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn step<const B: usize>(
    acc: &mut [__m256; B],
    rows: [*const f32; LANES],
    x: [&[f32]; B],
    col: usize,
) {
    // SAFETY: the contract of this function.
    let columns = unsafe { load_columns(rows, col) };
    for (acc, x) in acc.iter_mut().zip(x) {
        let mut sum = *acc;
        for (column, x) in columns.iter().zip(&x[col..col + 4]) {
            sum = _mm256_add_ps(sum, _mm256_mul_ps(*column, _mm256_set1_ps(*x)));
        }
        if B > 1 {
            // Left alone, the compiler does many columns for one input, keeps them on the stack, and does
            // them again for the next. This empty instruction keeps the inputs of a step together.
            // SAFETY: does nothing; the register comes out as it went in.
            unsafe {
                asm!("/* {0} */", inout(ymm_reg) sum, options(nomem, nostack, preserves_flags))
            };
        }
        *acc = sum;
    }
}

/// Columns `col..col + 4` of 8 rows, one vector each.
///
/// # Safety
///
/// Each of `rows` must be valid for reads of `col + 4` values.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_columns(rows: [*const f32; LANES], col: usize) -> [__m256; 4] {
    // Row k in the low half, row k + 4 in the high half.
    let mut halves = [_mm256_setzero_ps(); 4];
    for (k, both) in halves.iter_mut().enumerate() {
        // SAFETY: the four values from `col` on are valid, and the load needs no alignment.
        let low = unsafe { _mm_loadu_ps(rows[k].wrapping_add(col)) };
        // SAFETY: the same.
        let high = unsafe { _mm_loadu_ps(rows[k + 4].wrapping_add(col)) };
        *both = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high);
    }
    // A 4 × 4 transpose in each half.
    let [a, b, c, d] = halves;
    let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    [
        _mm256_shuffle_ps::<0b01_00_01_00>(ab_low, cd_low),
        _mm256_shuffle_ps::<0b11_10_11_10>(ab_low, cd_low),
        _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
        _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
    ]
}
