//! Matrix-vector products over a pool: shapes are checked here, rows are cut here, kernels do the rest.

#![forbid(unsafe_code)]

use std::{array, ops::Range};

use crate::{
    Activation, Kernels, Matrix, RowPool, Serial,
    pool::{Cut, Outputs, Piece, for_each_piece},
};

/// Matrices that [`matvec_many`] serves in one dispatch.
pub(crate) const MAX_PARTS: usize = 16;

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
    let spaces = products.each_ref().map(|Product { w, x, .. }| match x {
        [] => (0, 0),
        _ => (w.n_rows(), w.row_bytes()),
    });
    let cut = Cut::new(spaces, pool.participants());
    let pieces = products.map(|Product { w, x, outputs }| {
        // What takes several passes makes them unit by unit: the second one finds the weights in the cache.
        let whole = kernels.take_at_once(w.format(), x);
        Piece { input: (w, x), outputs, whole }
    });
    for_each_piece(pool, &cut, &pieces, |(w, x), rows: Range<usize>, next, first, out| {
        let next = next.map_or(Matrix::EMPTY, |((w, _), rows)| w.rows(rows));
        kernels.run(w.row_range(rows, next), &x[first..first + out.len()], out);
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
