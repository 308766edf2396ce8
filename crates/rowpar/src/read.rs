//! Reading the weights of a dispatch as its products would: what the dispatch can at best be.

#![forbid(unsafe_code)]

use std::{array, hint::black_box};

use crate::{Kernels, Matrix, ReadPattern, RowPool, matvec::MAX_PARTS, pool::Cut};

/// Reads all weights in the parts that [`matvec_many_with`](crate::matvec_many_with) cuts products of them with one input each into,
/// on the same threads, and makes nothing of them.
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
        for_each_part(pool, &cut, w, |bytes| _ = black_box(kernels.read_range(bytes, pattern)));
    }
}

/// Calls `f` with the bytes of each part.
fn for_each_part<const N: usize>(
    pool: &(impl RowPool + ?Sized),
    cut: &Cut<N>,
    w: &[Matrix<'_>],
    f: impl Fn(&[u8]) + Sync,
) {
    pool.for_each_range(cut.n_units(), 1, &|units| {
        for (i, w) in w.iter().enumerate() {
            f(w.rows(cut.rows(i, &units)).bytes());
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{Format, Serial};

    #[test]
    fn the_parts_are_all_bytes_in_their_order() {
        let bytes: Vec<u8> = (0..100 * 34).map(|i| (i % 251) as u8).collect();
        let w = |n_rows: usize| {
            Matrix::new(Format::Q8_0, n_rows, 32, &bytes[..n_rows * 34]).expect("whole rows")
        };
        let matrices = [w(100), w(0), w(33)];
        for participants in [1, 2, 5] {
            let read = Mutex::new(Vec::<u8>::new());
            let cut = Cut::new([(100, 34), (0, 34), (33, 34)], participants);
            for_each_part(&Serial, &cut, &matrices, |part| read.lock().unwrap().extend(part));
            let all = [&bytes[..], &bytes[..33 * 34]].concat();
            assert!(read.into_inner().unwrap() == all, "{participants}");
        }
    }
}
