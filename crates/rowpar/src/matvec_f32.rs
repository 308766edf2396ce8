//! The same for plain slices of f32: a matrix is whatever `out.len()` rows of `x.len()` columns are.

#![forbid(unsafe_code)]

#[cfg(target_endian = "little")]
use crate::{
    Activation, Matrix,
    matvec::{Product, dispatch},
    pool::Outputs,
};
use crate::{Kernels, RowPool, Serial};

/// `out[i] = Σ_j w[i·n + j]·x[j]` with `n = x.len()`: bit for bit the loop you would write yourself,
/// whatever the pool, the width, the chunking and the instruction set.
///
/// `w` is row-major, `out.len()` rows of `x.len()` columns; each row is [`oracle::dot_f32`]: left to right
/// from `+0.0`, rounded after each step, never fused. With no columns every `out[i]` is `+0.0`. A NaN comes
/// out where the loop gives one; which of the NaNs is not part of the contract.
///
/// This is [`matvec`](crate::matvec) of [`Matrix::from_f32`](crate::Matrix::from_f32), and runs where that does.
///
/// [`oracle::dot_f32`]: crate::oracle::dot_f32
///
/// # Panics
///
/// If `w.len() != out.len() * x.len()`.
///
/// # Examples
///
/// ```
/// use rowpar::{RowPool, Serial, matvec_rows};
///
/// let w = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let mut out = [0.0; 2];
/// matvec_rows(&Serial, &w, &[1.0, 0.5, 2.0], &mut out);
/// assert_eq!(out, [8.0, 18.5]);
///
/// // A pool that is chosen at run time.
/// let pool: Box<dyn RowPool> = Box::new(Serial);
/// matvec_rows(&*pool, &w, &[1.0, 0.5, 2.0], &mut out);
/// assert_eq!(out, [8.0, 18.5]);
/// ```
pub fn matvec_rows(pool: &(impl RowPool + ?Sized), w: &[f32], x: &[f32], out: &mut [f32]) {
    if size_of_val(w) >= pool.parallel_bytes() {
        matvec_rows_with(Kernels::best(), pool, w, x, out);
    } else {
        matvec_rows_with(Kernels::best(), &Serial, w, x, out);
    }
}

/// [`matvec_rows`] with given kernels, and always on `pool`, however small the matrix is.
///
/// For tests and benches, and for callers with a threshold of their own.
///
/// # Panics
///
/// If `w.len() != out.len() * x.len()`.
///
/// # Examples
///
/// ```
/// use rowpar::{Kernels, Serial, matvec_rows_with};
///
/// for kernels in Kernels::supported() {
///     let mut out = [0.0; 2];
///     matvec_rows_with(kernels, &Serial, &[1.0, 2.0, 3.0, 4.0], &[1.0, 1.0], &mut out);
///     assert_eq!(out, [3.0, 7.0]);
/// }
/// ```
pub fn matvec_rows_with(
    kernels: Kernels,
    pool: &(impl RowPool + ?Sized),
    w: &[f32],
    x: &[f32],
    out: &mut [f32],
) {
    check_matrix(w.len(), out.len(), x.len());
    run(kernels, pool, w, [x], [out]);
}

/// [`matvec_rows`] for two inputs, in one pass over the weights: memory is read once for both.
///
/// `out1` is bit for bit `matvec_rows(pool, w, x1, out1)`, and `out2` the same for `x2`.
///
/// # Panics
///
/// If `w.len() != out1.len() * x1.len()`, or if the inputs or the outputs differ in length.
///
/// # Examples
///
/// ```
/// let w = [1.0, 2.0, 3.0, 4.0];
/// let (mut out1, mut out2) = ([0.0; 2], [0.0; 2]);
/// rowpar::matvec_rows2(&rowpar::Serial, &w, &[1.0, 1.0], &[0.0, 1.0], &mut out1, &mut out2);
/// assert_eq!((out1, out2), ([3.0, 7.0], [2.0, 4.0]));
/// ```
pub fn matvec_rows2(
    pool: &(impl RowPool + ?Sized),
    w: &[f32],
    x1: &[f32],
    x2: &[f32],
    out1: &mut [f32],
    out2: &mut [f32],
) {
    if size_of_val(w) >= pool.parallel_bytes() {
        matvec_rows2_with(Kernels::best(), pool, w, x1, x2, out1, out2);
    } else {
        matvec_rows2_with(Kernels::best(), &Serial, w, x1, x2, out1, out2);
    }
}

/// [`matvec_rows2`] with given kernels, and always on `pool`, however small the matrix is.
///
/// # Panics
///
/// If `w.len() != out1.len() * x1.len()`, or if the inputs or the outputs differ in length.
pub fn matvec_rows2_with(
    kernels: Kernels,
    pool: &(impl RowPool + ?Sized),
    w: &[f32],
    x1: &[f32],
    x2: &[f32],
    out1: &mut [f32],
    out2: &mut [f32],
) {
    check_pair("x", x1.len(), x2.len());
    check_pair("out", out1.len(), out2.len());
    check_matrix(w.len(), out1.len(), x1.len());
    run(kernels, pool, w, [x1, x2], [out1, out2]);
}

#[cfg(target_endian = "little")]
fn run<const B: usize>(
    kernels: Kernels,
    pool: &(impl RowPool + ?Sized),
    w: &[f32],
    x: [&[f32]; B],
    out: [&mut [f32]; B],
) {
    let w = Matrix::from_f32(w, out[0].len(), x[0].len()).expect("checked by the callers");
    let x = x.map(Activation::F32);
    let mut out = out.into_iter();
    let outputs = match (out.next(), out.next()) {
        (Some(out1), Some(out2)) => Outputs::pair(out1, out2),
        (out1, _) => Outputs::new(out1.unwrap_or_default(), w.n_rows()),
    };
    dispatch(kernels, pool, [Product { w, x: &x, outputs }]);
}

/// Floats in memory are not as in a file: the literal loop.
#[cfg(target_endian = "big")]
fn run<const B: usize>(
    _kernels: Kernels,
    pool: &(impl RowPool + ?Sized),
    w: &[f32],
    x: [&[f32]; B],
    out: [&mut [f32]; B],
) {
    for (x, out) in x.into_iter().zip(out) {
        crate::for_each_range_mut(pool, out, 16, |rows, out| {
            let _env = crate::kernel::DefaultFpEnv::enter();
            for (row, out) in rows.zip(out) {
                *out = crate::oracle::dot_f32(&w[row * x.len()..][..x.len()], x);
            }
        });
    }
}

/// Panics unless `w` holds exactly `n_rows` rows of `n_cols` values.
#[track_caller]
fn check_matrix(w_len: usize, n_rows: usize, n_cols: usize) {
    let expected = n_rows.checked_mul(n_cols);
    assert!(
        expected == Some(w_len),
        "w has {w_len} values but {n_rows} rows of {n_cols} columns need {}",
        expected.map_or("more than can be counted".to_owned(), |n| n.to_string())
    );
}

/// Panics unless both of a pair of slices are of one length.
#[track_caller]
fn check_pair(name: &str, first: usize, second: usize) {
    assert!(first == second, "{name}1 has {first} values but {name}2 has {second}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_that_overflows_is_refused() {
        let overflowing = || check_matrix(0, usize::MAX, 2);
        assert!(std::panic::catch_unwind(overflowing).is_err());
        check_matrix(0, usize::MAX, 0);
        check_matrix(0, 0, usize::MAX);
    }
}
