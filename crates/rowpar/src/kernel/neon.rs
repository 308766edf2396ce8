//! NEON: 8 rows in the lanes of two registers. `tiles.rs` says how the rows get there.
//!
//! Never fused: products and sums are instructions of their own, and Rust does not contract.

use std::arch::{aarch64::*, asm};

use super::tiles::{self, LANES, LINE_COLS, Prefetch, Stream};

/// Rows 0 to 3, and rows 4 to 7.
type Pair = [float32x4_t; 2];

/// Computes every row of `out`; shapes are as K2 says.
#[target_feature(enable = "neon")]
pub(super) fn matvec<const B: usize>(w: &[f32], x: [&[f32]; B], out: [&mut [f32]; B]) {
    // SAFETY: `tile` enables what this function enables, and asks for nothing more than `matvec` grants.
    unsafe { tiles::matvec(w, x, out, tile::<B>) }
}

/// The sums of 8 rows for each input.
///
/// # Safety
///
/// As [`tiles::TileFn`] says.
#[target_feature(enable = "neon")]
unsafe fn tile<const B: usize>(
    rows: [*const f32; LANES],
    x: [&[f32]; B],
    stream: Stream,
) -> [[f32; LANES]; B] {
    let n_cols = x[0].len();
    let mut acc = [[vdupq_n_f32(0.0); 2]; B];
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
    let mut sums = [[0.0; LANES]; B];
    for (sums, acc) in sums.iter_mut().zip(acc) {
        for (sums, acc) in sums.as_chunks_mut::<4>().0.iter_mut().zip(acc) {
            // SAFETY: `sums` has room for the 4 values, and the store needs no alignment.
            unsafe { vst1q_f32(sums.as_mut_ptr(), acc) };
        }
    }
    for col in col..n_cols {
        for (lane, row) in rows.iter().enumerate() {
            // SAFETY: `col < n_cols`, and the rows are valid for `n_cols` values.
            let weight = unsafe { row.wrapping_add(col).read() };
            for (sums, x) in sums.iter_mut().zip(x) {
                sums[lane] += weight * x[col];
            }
        }
    }
    sums
}

/// Columns `col..col + 4` of every sum, left to right.
///
/// # Safety
///
/// Each of `rows` must be valid for reads of `col + 4` values.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn step<const B: usize>(
    acc: &mut [Pair; B],
    rows: [*const f32; LANES],
    x: [&[f32]; B],
    col: usize,
) {
    let [a, b, c, d, e, f, g, h] = rows;
    // SAFETY: the contract of this function.
    let low = unsafe { load_columns([a, b, c, d], col) };
    // SAFETY: the same.
    let high = unsafe { load_columns([e, f, g, h], col) };
    for (acc, x) in acc.iter_mut().zip(x) {
        let [mut first, mut second] = *acc;
        for ((low, high), x) in low.iter().zip(&high).zip(&x[col..col + 4]) {
            first = vaddq_f32(first, vmulq_n_f32(*low, *x));
            second = vaddq_f32(second, vmulq_n_f32(*high, *x));
        }
        if B > 1 {
            // Keeps the inputs of a step together, as in `avx2.rs`.
            // SAFETY: does nothing; the register comes out as it went in.
            unsafe {
                asm!("/* {0:v} */", inout(vreg) first, options(nomem, nostack, preserves_flags))
            };
        }
        *acc = [first, second];
    }
}

/// Columns `col..col + 4` of 4 rows, one vector each.
///
/// # Safety
///
/// Each of `rows` must be valid for reads of `col + 4` values.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load_columns(rows: [*const f32; 4], col: usize) -> [float32x4_t; 4] {
    let mut loaded = [vdupq_n_f32(0.0); 4];
    for (loaded, row) in loaded.iter_mut().zip(rows) {
        // SAFETY: the four values from `col` on are valid, and the load needs no alignment.
        *loaded = unsafe { vld1q_f32(row.wrapping_add(col)) };
    }
    // Pairs of rows: columns 0 and 2, then 1 and 3. Then pairs of pairs.
    let [a, b, c, d] = loaded;
    let (ab_even, ab_odd) = (vtrn1q_f32(a, b), vtrn2q_f32(a, b));
    let (cd_even, cd_odd) = (vtrn1q_f32(c, d), vtrn2q_f32(c, d));
    let wide = vreinterpretq_f64_f32;
    let first = |ab, cd| vreinterpretq_f32_f64(vtrn1q_f64(wide(ab), wide(cd)));
    let second = |ab, cd| vreinterpretq_f32_f64(vtrn2q_f64(wide(ab), wide(cd)));
    [
        first(ab_even, cd_even),
        first(ab_odd, cd_odd),
        second(ab_even, cd_even),
        second(ab_odd, cd_odd),
    ]
}
