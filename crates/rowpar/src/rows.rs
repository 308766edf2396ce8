//! Row loops around a closure: when they are worth a dispatch, and how they are cut.

#![forbid(unsafe_code)]

use crate::{pool::for_each_chunk_range, with_default_floats};

#[cfg(feature = "rayon")]
const POOL: crate::RayonGlobal = crate::RayonGlobal;
#[cfg(not(feature = "rayon"))]
const POOL: crate::Serial = crate::Serial;

/// Multiply-adds below which a dispatch costs more than it gains.
const MIN_PARALLEL_WORK: usize = 256_000;

/// Whether `n_rows` rows of `n_cols` multiply-adds each are worth a dispatch.
///
/// True if there is more than one row, and at least 256,000 multiply-adds in all: 1 MB of f32 weights, some
/// 50 µs of one core's read bandwidth. The product saturates.
///
/// # Examples
///
/// ```
/// use rowpar::should_parallelize;
///
/// assert!(should_parallelize(576, 576));
/// assert!(!should_parallelize(64, 576));
/// assert!(!should_parallelize(1, usize::MAX));
/// ```
pub fn should_parallelize(n_rows: usize, n_cols: usize) -> bool {
    n_rows > 1 && n_rows.saturating_mul(n_cols) >= MIN_PARALLEL_WORK
}

/// Calls `f(row, &mut out[row])` once for each row below `n = min(n_rows, out.len())`.
///
/// Elements of `out` past `n` are not touched. `n_cols` is the work of a row in multiply-adds: where
/// [`should_parallelize`]`(n, n_cols)` is false the rows run on the calling thread in ascending order, else
/// on rayon's current pool (without the feature `rayon`: on the calling thread). A row is one call, never
/// split, and runs under the default floating-point environment as by [`with_default_floats`], so a closure
/// that depends on nothing but its row gives the same bits either way.
///
/// # Examples
///
/// ```
/// let mut out = [0.0; 4];
/// rowpar::for_each_row(&mut out, 3, 1, |row, value| *value = row as f32 + 1.0);
/// assert_eq!(out, [1.0, 2.0, 3.0, 0.0]);
/// ```
pub fn for_each_row<F>(out: &mut [f32], n_rows: usize, n_cols: usize, f: F)
where
    F: Fn(usize, &mut f32) + Send + Sync,
{
    let n_rows = n_rows.min(out.len());
    let out = &mut out[..n_rows];
    if !should_parallelize(n_rows, n_cols) {
        with_default_floats(|| out.iter_mut().enumerate().for_each(|(row, value)| f(row, value)));
        return;
    }
    for_each_chunk_range(&POOL, out, 1, 1, |rows, values| {
        rows.zip(values).for_each(|(row, value)| f(row, value));
    });
}

/// Calls `f(&mut state, chunk, &mut out[chunk * chunk_len..][..chunk_len])` once for each whole chunk.
///
/// `out` holds `out.len() / chunk_len` chunks; the elements of a trailing partial chunk are not visited, and
/// with a `chunk_len` of 0 nothing happens. `init` makes one state for each task, a run of neighbouring chunks
/// on one thread; no state is ever shared between tasks, and none is made where there is no chunk.
/// `work_per_chunk` is the work of a chunk in multiply-adds: where [`should_parallelize`]`(n_chunks,
/// work_per_chunk)` is false there is one task, on the calling thread, in ascending order; else the tasks run
/// on rayon's current pool (without the feature `rayon`: as one task on the calling thread). Chunks are never
/// split. A task, `init` included, runs under the default floating-point environment as by [`with_default_floats`].
///
/// # Examples
///
/// Scratch space that is allocated once a task, not once a chunk:
///
/// ```
/// let mut out = [1.0, 2.0, 3.0, 4.0, 5.0];
/// rowpar::for_each_chunk_init(&mut out, 2, 2, || vec![0.0; 2], |scratch, chunk, values| {
///     scratch.copy_from_slice(values);
///     values[0] = chunk as f32;
///     values[1] = scratch[0] + scratch[1];
/// });
/// assert_eq!(out, [0.0, 3.0, 1.0, 7.0, 5.0]);
/// ```
pub fn for_each_chunk_init<S, I, F>(
    out: &mut [f32],
    chunk_len: usize,
    work_per_chunk: usize,
    init: I,
    f: F,
) where
    I: Fn() -> S + Send + Sync,
    F: Fn(&mut S, usize, &mut [f32]) + Send + Sync,
{
    if chunk_len == 0 || out.len() < chunk_len {
        return;
    }
    let run_task = |chunks: std::ops::Range<usize>, values: &mut [f32]| {
        let mut state = init();
        for (chunk, values) in chunks.zip(values.chunks_exact_mut(chunk_len)) {
            f(&mut state, chunk, values);
        }
    };
    let n_chunks = out.len() / chunk_len;
    if should_parallelize(n_chunks, work_per_chunk) {
        for_each_chunk_range(&POOL, out, chunk_len, 1, run_task);
    } else {
        with_default_floats(|| run_task(0..n_chunks, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_exact_and_saturates() {
        const CASES: &[(usize, usize, bool)] = &[
            (0, 0, false),
            (0, usize::MAX, false),
            (1, 256_000, false),
            (1, usize::MAX, false),
            (2, 127_999, false),
            (2, 128_000, true),
            (256_000, 0, false),
            (255_999, 1, false),
            (256_000, 1, true),
            (2, usize::MAX, true),
            (usize::MAX, usize::MAX, true),
        ];
        for &(n_rows, n_cols, expected) in CASES {
            assert_eq!(should_parallelize(n_rows, n_cols), expected, "{n_rows} x {n_cols}");
        }
    }
}
