//! What the threads of a pool can read: the yardstick of matvecs and of decode.

#![forbid(unsafe_code)]

use std::hint::black_box;

use rowpar::{Kernels, Matrix, ReadPattern, RowPool, Serial, read_weights};

use crate::stats::median;
use crate::work::time_ns;

/// Parts for each participant: enough to even out threads that start late, and long beside what a part costs.
const PARTS_PER_PARTICIPANT: usize = 16;
/// A part begins at a multiple of this.
const UNIT_BYTES: usize = 4096;

/// Gigabytes per second of reading, a list of passes for each way to read.
#[derive(Clone, Debug)]
pub(crate) struct Reads(Vec<Vec<f64>>);

impl Reads {
    /// Ways to read.
    pub(crate) const N_PATTERNS: usize = ReadPattern::ALL.len();

    pub(crate) fn new() -> Self {
        Self(vec![Vec::new(); Self::N_PATTERNS])
    }

    /// Reads `bytes` once, on all threads of the pool, in the way of that number.
    pub(crate) fn pass(&mut self, pool: &dyn RowPool, bytes: &[u8], pattern: usize) {
        let n_units = bytes.len().div_ceil(UNIT_BYTES);
        let grain = n_units.div_ceil(PARTS_PER_PARTICIPANT * pool.participants());
        let kernels = Kernels::best();
        let ns = time_ns(|| {
            pool.for_each_range(n_units, grain, &|units| {
                let end = bytes.len().min(units.end * UNIT_BYTES);
                let part = &bytes[(units.start * UNIT_BYTES).min(end)..end];
                black_box(kernels.read_range(part, ReadPattern::ALL[pattern]));
            });
        });
        self.0[pattern].push(bytes.len() as f64 / ns);
    }

    /// Reads matrices in the dispatches and the parts of their products, in the way of that number. `each` is to call its argument
    /// with the matrices of each dispatch. Where `rowpar::matvec_many` takes the calling thread alone, so does this.
    pub(crate) fn pass_in_parts(
        &mut self,
        pool: &dyn RowPool,
        pattern: usize,
        each: impl FnOnce(&mut dyn FnMut(&[Matrix<'_>])),
    ) {
        let mut n_bytes = 0;
        let ns = time_ns(|| {
            each(&mut |matrices| {
                let n_here: usize = matrices.iter().map(|w| w.bytes().len()).sum();
                let pool = if n_here < pool.parallel_bytes() { &Serial } else { pool };
                read_weights(Kernels::best(), pool, matrices, ReadPattern::ALL[pattern]);
                n_bytes += n_here;
            });
        });
        self.0[pattern].push(n_bytes as f64 / ns);
    }

    /// The passes of the fastest way, judged by its median. Their median is the ceiling.
    pub(crate) fn fastest(&self) -> &[f64] {
        let by_median = |a: &&Vec<f64>, b: &&Vec<f64>| median(a).total_cmp(&median(b));
        self.0.iter().max_by(by_median).map_or(&[], Vec::as_slice)
    }
}

/// What a matvec is measured against.
#[derive(Clone, Debug)]
pub(crate) struct Ceilings {
    /// Much at once.
    pub(crate) at_length: Reads,
    /// In the dispatches and the parts of the matvecs.
    pub(crate) in_parts: Reads,
}

impl Ceilings {
    /// Kinds of passes.
    pub(crate) const N_KINDS: usize = 2 * Reads::N_PATTERNS;

    pub(crate) fn new() -> Self {
        Self { at_length: Reads::new(), in_parts: Reads::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_is_the_way_with_the_highest_median() {
        let reads = Reads(vec![vec![10.0, 11.0, 30.0], vec![12.0, 13.0, 12.0], vec![9.0]]);
        assert_eq!(reads.fastest(), [12.0, 13.0, 12.0]);
    }

    #[test]
    fn parts_are_read_where_products_would_be() {
        let pool = epoch_pool::Pool::new(1).unwrap();
        let values = vec![1.0; 64 * 1024];
        let w = |n_rows: usize| Matrix::from_f32(&values[..n_rows * 1024], n_rows, 1024).unwrap();
        let mut reads = Reads::new();
        reads.pass_in_parts(&pool, 1, |each| {
            each(&[w(1)]); // on this thread
            each(&[w(20), w(43)]);
        });
        assert_eq!(reads.0.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 0]);
        assert!(reads.fastest().iter().all(|rate| *rate > 0.0));
        assert_eq!(pool.statistics().dispatches, 1);
    }

    #[test]
    fn each_way_has_a_list_of_passes_whatever_the_length() {
        for len in [1, UNIT_BYTES, 5 * UNIT_BYTES + 3] {
            let mut reads = Reads::new();
            for pattern in (0..Reads::N_PATTERNS).chain([1]) {
                reads.pass(&rowpar::Serial, &vec![1; len], pattern);
            }
            let counts: Vec<usize> = reads.0.iter().map(Vec::len).collect();
            assert_eq!(counts, [1, 2, 1]);
            assert!(reads.fastest().iter().all(|rate| *rate > 0.0));
        }
    }
}
