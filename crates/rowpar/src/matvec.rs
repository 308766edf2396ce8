//! Matrix-vector products over a pool: shapes are checked here, rows are cut here, kernels do the rest.

#![forbid(unsafe_code)]

use std::{array, ops::Range};

use crate::{
    Activation, Kernels, Matrix, RowPool, Serial,
    pool::{Outputs, Piece, for_each_piece},
};

/// Bytes of weights of a unit of rows, where there are enough of them: the first rows of a range are slower than
/// the others, and from this size on that matters little.
const UNIT_BYTES: usize = 128 * 1024;
/// Units that each participant should find, if that leaves them 16 rows or more: of a small matrix, more of them would be so
/// short that their first rows count.
const UNITS_PER_PARTICIPANT: usize = 2;
/// Rows that a unit is a multiple of: a packed tile, and a cache line of an output.
const UNIT_ROWS: usize = 16;
/// Matrices that [`matvec_many`] serves in one dispatch.
const MAX_PARTS: usize = 16;

/// `out[i] = Σ_j w[i][j]·x[j]`: bit for bit the loop you would write yourself, whatever the pool, the width, the
/// chunking, the packing and the instruction set.
///
/// A row is [`oracle::dot`] of its weights and the input or, where block weights meet a quantized input,
/// [`oracle::dot_q8`]. A NaN comes out where the loop gives one; which of the NaNs is not part of the contract.
///
/// Runs on the calling thread if `w` has fewer bytes than [`RowPool::parallel_bytes`] of the pool, else on the pool.
/// Nothing is allocated. The work is done under the default floating-point environment, whatever the threads of the pool
/// have set.
///
/// [`oracle::dot`]: crate::oracle::dot
/// [`oracle::dot_q8`]: crate::oracle::dot_q8
///
/// # Panics
///
/// If `x` has not `w.n_cols()` values, or `out` has not `w.n_rows()`.
///
/// # Examples
///
/// ```
/// use rowpar::{Format, Matrix, Q8Activation, Serial, matvec};
///
/// // Two rows of 32 columns, as they lie in a file: a scale of 0.5, and the integers.
/// let mut bytes = Vec::new();
/// for row in 0..2 {
///     bytes.extend(0x3800_u16.to_le_bytes());
///     bytes.extend([1 + row; 32]);
/// }
/// let w = Matrix::new(Format::Q8_0, 2, 32, &bytes)?;
/// let x = [2.0; 32];
/// let mut out = [0.0; 2];
///
/// matvec(&Serial, w, (&x[..]).into(), &mut out);
/// assert_eq!(out, [32.0, 64.0]);
///
/// // Quantized once, for every matrix that has this input.
/// let mut quantized = Q8Activation::new();
/// quantized.quantize(&x);
/// matvec(&Serial, w, (&quantized).into(), &mut out);
/// assert_eq!(out, [32.0, 64.0]);
/// # Ok::<(), rowpar::MatrixError>(())
/// ```
pub fn matvec(pool: &(impl RowPool + ?Sized), w: Matrix<'_>, x: Activation<'_>, out: &mut [f32]) {
    matvec_batch(pool, w, &[x], out);
}

/// [`matvec`] for several inputs, in one pass over the weights: memory is read once for all of them.
///
/// `out` has one output after another: row `i` for input `b` is `out[b * w.n_rows() + i]`, bit for bit what [`matvec`]
/// makes of that input alone.
///
/// # Panics
///
/// If an input has not `w.n_cols()` values, or `out` has not `x.len() * w.n_rows()`.
///
/// # Examples
///
/// ```
/// use rowpar::{Matrix, Serial, matvec_batch};
///
/// let w = [1.0, 2.0, 3.0, 4.0];
/// let mut out = [0.0; 4];
/// let x = [(&[1.0, 1.0][..]).into(), (&[0.0, 1.0][..]).into()];
/// matvec_batch(&Serial, Matrix::from_f32(&w, 2, 2)?, &x, &mut out);
/// assert_eq!(out, [3.0, 7.0, 2.0, 4.0]);
/// # Ok::<(), rowpar::MatrixError>(())
/// ```
pub fn matvec_batch(
    pool: &(impl RowPool + ?Sized),
    w: Matrix<'_>,
    x: &[Activation<'_>],
    out: &mut [f32],
) {
    if w.bytes().len() >= pool.parallel_bytes() {
        matvec_batch_with(Kernels::best(), pool, w, x, out);
    } else {
        matvec_batch_with(Kernels::best(), &Serial, w, x, out);
    }
}

/// [`matvec_batch`] with given kernels, and always on `pool`, however small the matrix is.
///
/// For tests and benches, and for callers with a threshold of their own.
///
/// # Panics
///
/// If an input has not `w.n_cols()` values, or `out` has not `x.len() * w.n_rows()`.
pub fn matvec_batch_with(
    kernels: Kernels,
    pool: &(impl RowPool + ?Sized),
    w: Matrix<'_>,
    x: &[Activation<'_>],
    out: &mut [f32],
) {
    check(w, x, out.len());
    dispatch(kernels, pool, [Product { w, x, outputs: Outputs::new(out, w.n_rows()) }]);
}

/// One product of [`matvec_many`]: the arguments of [`matvec_batch`].
#[derive(Debug)]
pub struct Matvec<'a> {
    /// The weights.
    pub w: Matrix<'a>,
    /// The inputs.
    pub x: &'a [Activation<'a>],
    /// The outputs, one after another.
    pub out: &'a mut [f32],
}

/// Several products in one dispatch, such as Q, K and V, or gate and up.
///
/// Each `out` is bit for bit what [`matvec_batch`] makes of its product alone. Matrices may have different
/// shapes and formats: the pool is given units of about equal bytes, so that it may count them as equal work. Up to 16
/// products share a dispatch; more take one for each 16. Runs on the calling thread if all products
/// together have fewer bytes than [`RowPool::parallel_bytes`] of the pool. Nothing is allocated.
///
/// # Panics
///
/// If an input or an output of a product has the wrong length; no product is computed then.
///
/// # Examples
///
/// ```
/// use rowpar::{Matrix, Matvec, Serial, matvec_many};
///
/// let x = [(&[1.0, 2.0][..]).into()];
/// let (mut gate, mut up) = ([0.0; 2], [0.0; 1]);
/// matvec_many(
///     &Serial,
///     &mut [
///         Matvec { w: Matrix::from_f32(&[1.0, 0.0, 0.0, 1.0], 2, 2)?, x: &x, out: &mut gate },
///         Matvec { w: Matrix::from_f32(&[1.0, 1.0], 1, 2)?, x: &x, out: &mut up },
///     ],
/// );
/// assert_eq!((gate, up), ([1.0, 2.0], [3.0]));
/// # Ok::<(), rowpar::MatrixError>(())
/// ```
pub fn matvec_many(pool: &(impl RowPool + ?Sized), products: &mut [Matvec<'_>]) {
    let bytes = products.iter().map(|product| product.w.bytes().len());
    if bytes.fold(0, usize::saturating_add) >= pool.parallel_bytes() {
        matvec_many_with(Kernels::best(), pool, products);
    } else {
        matvec_many_with(Kernels::best(), &Serial, products);
    }
}

/// [`matvec_many`] with given kernels, and always on `pool`, however small the matrices are.
///
/// # Panics
///
/// If an input or an output of a product has the wrong length; no product is computed then.
pub fn matvec_many_with(
    kernels: Kernels,
    pool: &(impl RowPool + ?Sized),
    products: &mut [Matvec<'_>],
) {
    for product in &*products {
        check(product.w, product.x, product.out.len());
    }
    for products in products.chunks_mut(MAX_PARTS) {
        let mut products = products.iter_mut();
        let parts: [_; MAX_PARTS] = array::from_fn(|_| match products.next() {
            Some(Matvec { w, x, out }) => {
                Product { w: *w, x, outputs: Outputs::new(out, w.n_rows()) }
            }
            None => Product { w: Matrix::EMPTY, x: &[], outputs: Outputs::new(&mut [], 0) },
        });
        dispatch(kernels, pool, parts);
    }
}

/// A product whose shapes were checked.
pub(crate) struct Product<'a> {
    pub(crate) w: Matrix<'a>,
    pub(crate) x: &'a [Activation<'a>],
    pub(crate) outputs: Outputs<'a>,
}

/// Cuts the rows of all products into units of about equal bytes, and computes them on `pool`.
pub(crate) fn dispatch<const N: usize>(
    kernels: Kernels,
    pool: &(impl RowPool + ?Sized),
    products: [Product<'_>; N],
) {
    let bytes = products.iter().map(|product| product.w.bytes().len());
    let n_bytes = bytes.fold(0, usize::saturating_add);
    let widest = products.iter().map(|product| product.w.row_bytes()).max().unwrap_or(0);
    let unit_bytes = unit_bytes(n_bytes, pool.participants()).max(widest.saturating_mul(UNIT_ROWS));
    let pieces = products.map(|Product { w, x, outputs }| {
        let unit = unit_rows(w.row_bytes(), unit_bytes);
        // What takes several passes makes them unit by unit: the second one finds the weights in the cache.
        let whole = kernels.take_at_once(w.format(), x);
        Piece { input: (w, x), outputs, unit, whole }
    });
    for_each_piece(pool, pieces, |(w, x), rows: Range<usize>, first, out| {
        kernels.run(w.row_range(rows), &x[first..first + out.len()], out);
    });
}

#[track_caller]
fn check(w: Matrix<'_>, x: &[Activation<'_>], out_len: usize) {
    let (n_rows, n_cols) = (w.n_rows(), w.n_cols());
    for x in x {
        assert!(
            x.len() == n_cols,
            "an input has {} values but {w:?} has {n_cols} columns",
            x.len()
        );
    }
    let expected = n_rows.checked_mul(x.len());
    assert!(
        expected == Some(out_len),
        "out has {out_len} values but {w:?} and {} inputs have {n_rows} each",
        x.len()
    );
}

/// Bytes of a unit: [`UNIT_BYTES`], or less so that every participant finds some units.
fn unit_bytes(n_bytes: usize, participants: usize) -> usize {
    (n_bytes / participants.saturating_mul(UNITS_PER_PARTICIPANT).max(1)).min(UNIT_BYTES)
}

/// Rows of a unit of about `unit_bytes`: a multiple of [`UNIT_ROWS`].
fn unit_rows(row_bytes: usize, unit_bytes: usize) -> usize {
    UNIT_ROWS * (unit_bytes / UNIT_ROWS / row_bytes.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, bytes of a row, participants, and the rows of a unit.
    const UNITS: &[(usize, usize, usize, usize)] = &[
        (576, 2304, 1, 48),           // 128 KB are 56 rows
        (576, 2304, 16, 16),          // 1.3 MB in 64 units: 9 rows
        (49_152, 2304, 16, 48),       // 113 MB
        (4096, 16_384, 8, 16),        // 16 rows are 256 KB
        (4096, 256, 4, 512),          // 1 MB in 8 units
        (4096, 1, 4, 512),            // hardly any bytes
        (100, 0, 2, 16),              // none at all
        (0, 0, 1, 16),                // no rows
        (32, 16_384, usize::MAX, 16), // more participants than rows
    ];

    #[test]
    fn units_are_whole_tiles_of_a_sensible_size() {
        for &(n_rows, row_bytes, participants, expected) in UNITS {
            let rows = unit_rows(row_bytes, unit_bytes(n_rows * row_bytes, participants));
            assert_eq!(rows, expected, "{n_rows} rows of {row_bytes} bytes on {participants}");
        }
    }
}
