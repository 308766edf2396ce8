//! Matrix-vector products over a pool: shapes are checked here, rows are cut here, kernels do the rest.

#![forbid(unsafe_code)]

use std::array;

use crate::{
    Kernels, RowPool, Serial,
    kernel::{check_matrix, check_pair},
    pool::{Piece, for_each_piece, for_each_range_mut, for_each_range_mut2},
    rows::worth_a_dispatch,
    should_parallelize,
};

/// Bytes of weights of a unit of rows, where there are enough of them: the first rows of a range are slower than
/// the others, and from this size on that matters little.
const UNIT_BYTES: usize = 128 * 1024;
/// Units that each participant should find, if that leaves them 8 rows or more.
const UNITS_PER_PARTICIPANT: usize = 4;
/// Rows that a kernel computes at once.
const TILE_ROWS: usize = 8;
/// Matrices that [`matvec_many`] serves in one dispatch.
const MAX_PARTS: usize = 16;

/// `out[i] = Σ_j w[i·n + j]·x[j]` with `n = x.len()`: bit for bit the loop you would write yourself,
/// whatever the pool, the width, the chunking and the instruction set.
///
/// `w` is row-major, `out.len()` rows of `x.len()` columns; each row is [`oracle::dot_f32`]: left to right
/// from `+0.0`, rounded after each step, never fused. With no columns every `out[i]` is `+0.0`. A NaN comes
/// out where the loop gives one; which of the NaNs is not part of the contract.
///
/// Runs on the calling thread below [`should_parallelize`]`(out.len(), x.len())`, on `pool` from there on.
/// Nothing is allocated. The work is done under the default floating-point environment, whatever the
/// threads of the pool have set.
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
    if should_parallelize(out.len(), x.len()) {
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
    let n_cols = x.len();
    check_matrix(w.len(), out.len(), n_cols);
    let unit = unit_rows(n_cols, unit_bytes(size_of_val(w), pool.participants()));
    for_each_range_mut(pool, out, unit, |rows, out| {
        kernels.matvec_range(&w[rows.start * n_cols..rows.end * n_cols], x, out);
    });
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
    if should_parallelize(out1.len(), x1.len()) {
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
    let n_cols = x1.len();
    check_pair("x", n_cols, x2.len());
    check_pair("out", out1.len(), out2.len());
    check_matrix(w.len(), out1.len(), n_cols);
    let unit = unit_rows(n_cols, unit_bytes(size_of_val(w), pool.participants()));
    for_each_range_mut2(pool, out1, out2, unit, |rows, out1, out2| {
        let w = &w[rows.start * n_cols..rows.end * n_cols];
        kernels.matvec2_range(w, x1, x2, out1, out2);
    });
}

/// One product of [`matvec_many`]: the arguments of [`matvec_rows`].
#[derive(Debug)]
pub struct Matvec<'a> {
    /// The weights, row-major: `out.len()` rows of `x.len()` columns.
    pub w: &'a [f32],
    /// The input.
    pub x: &'a [f32],
    /// The output, one element a row.
    pub out: &'a mut [f32],
}

/// Several products in one dispatch, such as Q, K and V, or gate and up.
///
/// Each `out` is bit for bit what [`matvec_rows`] makes of its product alone. Matrices may have different
/// shapes: the pool is given units of about equal bytes, so that it may count them as equal work. Up to 16
/// products share a dispatch; more take one for each 16. Runs on the calling thread if all products
/// together stay below the threshold of [`should_parallelize`]. Nothing is allocated.
///
/// # Panics
///
/// If a product has `w.len() != out.len() * x.len()`; no product is computed then.
///
/// # Examples
///
/// ```
/// use rowpar::{Matvec, Serial, matvec_many};
///
/// let x = [1.0, 2.0];
/// let (mut gate, mut up) = ([0.0; 2], [0.0; 1]);
/// matvec_many(
///     &Serial,
///     &mut [
///         Matvec { w: &[1.0, 0.0, 0.0, 1.0], x: &x, out: &mut gate },
///         Matvec { w: &[1.0, 1.0], x: &x, out: &mut up },
///     ],
/// );
/// assert_eq!((gate, up), ([1.0, 2.0], [3.0]));
/// ```
pub fn matvec_many(pool: &(impl RowPool + ?Sized), products: &mut [Matvec<'_>]) {
    let sum =
        |count: fn(&Matvec<'_>) -> usize| products.iter().map(count).fold(0, usize::saturating_add);
    if worth_a_dispatch(sum(|product| product.out.len()), sum(|product| product.w.len())) {
        matvec_many_with(Kernels::best(), pool, products);
    } else {
        matvec_many_with(Kernels::best(), &Serial, products);
    }
}

/// [`matvec_many`] with given kernels, and always on `pool`, however small the matrices are.
///
/// # Panics
///
/// If a product has `w.len() != out.len() * x.len()`; no product is computed then.
pub fn matvec_many_with(
    kernels: Kernels,
    pool: &(impl RowPool + ?Sized),
    products: &mut [Matvec<'_>],
) {
    for product in &*products {
        check_matrix(product.w.len(), product.out.len(), product.x.len());
    }
    let participants = pool.participants();
    for products in products.chunks_mut(MAX_PARTS) {
        let bytes = products.iter().map(|product| size_of_val(product.w));
        let n_bytes = bytes.fold(0, usize::saturating_add);
        let widest = products.iter().map(|product| size_of_val(product.x)).max().unwrap_or(0);
        let unit_bytes = unit_bytes(n_bytes, participants).max(widest.saturating_mul(TILE_ROWS));
        let mut products = products.iter_mut();
        let pieces: [_; MAX_PARTS] = array::from_fn(|_| {
            let (input, out): ((&[f32], &[f32]), &mut [f32]) = match products.next() {
                Some(Matvec { w, x, out }) => ((w, x), out),
                None => ((&[], &[]), &mut []),
            };
            Piece { input, out, unit: unit_rows(input.1.len(), unit_bytes) }
        });
        for_each_piece(pool, pieces, |(w, x), rows, out| {
            kernels.matvec_range(&w[rows.start * x.len()..rows.end * x.len()], x, out);
        });
    }
}

/// Bytes of a unit: [`UNIT_BYTES`], or less so that every participant finds some units.
fn unit_bytes(n_bytes: usize, participants: usize) -> usize {
    (n_bytes / participants.saturating_mul(UNITS_PER_PARTICIPANT).max(1)).min(UNIT_BYTES)
}

/// Rows of a unit of about `unit_bytes`: whole tiles of a kernel, at least one, and from two on an even
/// number, so that the outputs of a unit are whole cache lines.
fn unit_rows(n_cols: usize, unit_bytes: usize) -> usize {
    let tiles = unit_bytes / (TILE_ROWS * size_of::<f32>()) / n_cols.max(1);
    if tiles < 2 { TILE_ROWS } else { TILE_ROWS * (tiles & !1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, columns, participants, and the rows of a unit.
    const UNITS: &[(usize, usize, usize, usize)] = &[
        (576, 576, 1, 48),         // 128 KB are 56 rows
        (576, 576, 16, 8),         // 1.3 MB in 64 units: 9 rows
        (49_152, 576, 16, 48),     // 113 MB
        (4096, 4096, 8, 8),        // 8 rows are 128 KB
        (4096, 64, 4, 256),        // 1 MB in 16 units
        (100, 1, 2, 8),            // hardly any bytes
        (100, 0, 2, 8),            // none at all
        (0, 0, 1, 8),              // no rows
        (32, 4096, usize::MAX, 8), // more participants than rows
    ];

    #[test]
    fn units_are_whole_tiles_of_a_sensible_size() {
        for &(n_rows, n_cols, participants, expected) in UNITS {
            let bytes = unit_bytes(n_rows * n_cols * size_of::<f32>(), participants);
            let rows = unit_rows(n_cols, bytes);
            assert_eq!(rows, expected, "{n_rows} x {n_cols} on {participants}");
        }
    }
}
