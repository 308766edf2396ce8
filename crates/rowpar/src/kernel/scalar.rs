//! Kernels in plain Rust: several rows at a time, so that their sums overlap in the pipeline.
//!
//! One sum is a chain of dependent additions, three or four cycles each. Rows are independent, and so a few
//! of them together take no longer than one.

#![forbid(unsafe_code)]

/// Rows whose chains run side by side; with two inputs, twice as many chains, which still fit the registers.
const TILE: usize = 4;

pub(super) fn matvec<const B: usize>(w: &[f32], x: [&[f32]; B], mut out: [&mut [f32]; B]) {
    let n_cols = x[0].len();
    let n_rows = out[0].len();
    let n_tiled = n_rows - n_rows % TILE;
    for row in (0..n_tiled).step_by(TILE) {
        store(sums::<B, TILE>(&w[row * n_cols..], x), &mut out, row);
    }
    for row in n_tiled..n_rows {
        store(sums::<B, 1>(&w[row * n_cols..], x), &mut out, row);
    }
}

fn store<const B: usize, const R: usize>(
    sums: [[f32; R]; B],
    out: &mut [&mut [f32]; B],
    row: usize,
) {
    for (out, sums) in out.iter_mut().zip(sums) {
        out[row..row + R].copy_from_slice(&sums);
    }
}

/// The sums of the first `R` rows for each of `B` inputs, each chain left to right.
fn sums<const B: usize, const R: usize>(w: &[f32], x: [&[f32]; B]) -> [[f32; R]; B] {
    let n_cols = x[0].len();
    let rows: [&[f32]; R] = std::array::from_fn(|row| &w[row * n_cols..][..n_cols]);
    let x = x.map(|x| &x[..n_cols]);
    let mut acc = [[0.0; R]; B];
    for col in 0..n_cols {
        for row in 0..R {
            for input in 0..B {
                acc[input][row] += rows[row][col] * x[input][col];
            }
        }
    }
    acc
}
