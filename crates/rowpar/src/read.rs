//! Reading the weights of a dispatch as its products would: what the dispatch can at best be.

#![forbid(unsafe_code)]

use std::{array, hint::black_box};

use crate::{Kernels, Matrix, ReadPattern, RowPool, matvec::MAX_PARTS, pool::Cut};

/// Reads all weights in the parts that [`matvec_many_with`](crate::matvec_many_with) cuts them into, on the same threads, and makes
/// nothing of them.
///
/// The time of it is that of the dispatch, of the start of each part, and of memory: all but the arithmetic. What is
/// left between it and the time of reading everything at length is what the size of the matrices costs.
///
/// # Examples
///
/// ```
/// use rowpar::{Kernels, Matrix, ReadPattern, Serial, read_weights};
///
/// let w = vec![1.0; 64 * 1024];
/// let w = Matrix::from_f32(&w, 64, 1024)?;
/// let start = std::time::Instant::now();
/// read_weights(Kernels::best(), &Serial, &[w], ReadPattern::Streams);
/// let ns = start.elapsed().as_nanos() as f64;
/// println!("no product of it takes less than {ns} ns");
/// # Ok::<(), rowpar::MatrixError>(())
/// ```
pub fn read_weights(
    kernels: Kernels,
    pool: &(impl RowPool + ?Sized),
    w: &[Matrix<'_>],
    pattern: ReadPattern,
) {
    for w in w.chunks(MAX_PARTS) {
        let spaces: [_; MAX_PARTS] =
            array::from_fn(|i| w.get(i).map_or((0, 0), |w| (w.n_rows(), w.row_bytes())));
        let cut = Cut::new(spaces, pool.participants());
        pool.for_each_range(cut.n_units(), 1, &|units| {
            for (i, w) in w.iter().enumerate() {
                let rows = w.row_range(cut.rows(i, &units));
                black_box(kernels.read_range(rows.bytes, pattern));
            }
        });
    }
}
