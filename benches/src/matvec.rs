//! The matvec suite: gigabytes of weights per second, beside what the same threads can read.
//!
//! Every pass streams the next stretch of one large arena: a matvec over each matrix in it, then the
//! read loops of `rowpar` over the stretches after that, and round again. A stretch is not touched again before the
//! whole arena was, so caches smaller than the arena do not help either side. The read loops run on the
//! same pool, in one dispatch per pass: what the dispatches between matvecs cost counts against them.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use rowpar::{Kernels, Matrix, ReadPattern, RowPool};

use crate::ModelShape;
use crate::data::{fill_uniform, uniform};
use crate::protocol::{Better, Measurement, Report};
use crate::shape::MatrixShape;
use crate::stats::median;
use crate::work::time_ns;

/// Weight bytes of one pass: long beside a dispatch, short beside a change of the machine's mood.
const PASS_BYTES: usize = 16 << 20;
/// Passes of each kind at least, whatever the budget.
const MIN_PASSES: usize = 3;
const WEIGHT_BYTES: usize = size_of::<f32>();

/// The matvec suite of one model shape.
#[derive(Debug)]
pub struct MatvecSuite {
    shape: ModelShape,
    arena: Vec<f32>,
}

impl MatvecSuite {
    /// Allocates and fills an arena of `working_set` bytes, or of the largest matrix if that is more.
    pub fn new(shape: ModelShape, working_set: usize, n_threads: usize) -> Self {
        let largest = shape.fused().iter().map(|m| m.n_weights()).max().unwrap_or(0);
        let mut arena = vec![0.0; largest.max(working_set / WEIGHT_BYTES)];
        fill_uniform(&mut arena, 0x7765_6967_6874, 0.05, n_threads);
        Self { shape, arena }
    }

    /// Bytes of weights in the arena.
    pub fn working_set(&self) -> usize {
        self.arena.len() * WEIGHT_BYTES
    }

    /// Measures each fused matrix of the shape within about `budget`.
    pub fn measure(&self, pool: &dyn RowPool, budget: Duration) -> Report {
        let mut report = Report { participants: pool.participants(), ..Report::default() };
        let matrices = self.shape.fused();
        for matrix in matrices {
            let mut stream = Stream::new(&self.arena, matrix);
            let rates = stream.measure(pool, budget / matrices.len() as u32);
            let case = format!("{}-{matrix}", self.shape.slug());
            report.measurements.extend(rates.measurements(&case));
        }
        report
    }
}

/// One matrix shape streaming through the arena.
struct Stream<'a> {
    arena: &'a [f32],
    matrix: MatrixShape,
    n_copies: usize,
    copies_per_pass: usize,
    next_copy: usize,
    x: Vec<f32>,
    out: Vec<f32>,
}

impl<'a> Stream<'a> {
    fn new(arena: &'a [f32], matrix: MatrixShape) -> Self {
        let n_copies = (arena.len() / matrix.n_weights()).max(1);
        let wanted = PASS_BYTES.div_ceil(matrix.n_weights() * WEIGHT_BYTES);
        Self {
            arena,
            matrix,
            n_copies,
            copies_per_pass: wanted.clamp(1, n_copies),
            next_copy: 0,
            x: uniform(matrix.n_cols, 11, 1.0, 1),
            out: vec![0.0; matrix.n_rows],
        }
    }

    /// Passes of each kind in an order that turns, so that no kind always meets the same stretch.
    fn measure(&mut self, pool: &dyn RowPool, budget: Duration) -> Rates {
        let n_kinds = 1 + ReadPattern::ALL.len();
        let mut passes = vec![Vec::new(); n_kinds];
        self.matvec_pass(pool); // warms up
        let start = Instant::now();
        while passes[0].len() < MIN_PASSES || start.elapsed() < budget {
            let first = passes[0].len();
            for kind in (0..n_kinds).map(|kind| (first + kind) % n_kinds) {
                let rate = match kind.checked_sub(1) {
                    None => self.matvec_pass(pool),
                    Some(pattern) => self.read_pass(pool, ReadPattern::ALL[pattern]),
                };
                passes[kind].push(rate);
            }
        }
        let reads = passes.split_off(1);
        Rates { matvec: passes.remove(0), reads }
    }

    /// The elements of the next stretch, in whole matrices.
    fn next_stretch(&mut self) -> Range<usize> {
        if self.next_copy + self.copies_per_pass > self.n_copies {
            self.next_copy = 0;
        }
        let first = self.next_copy * self.matrix.n_weights();
        self.next_copy += self.copies_per_pass;
        first..first + self.copies_per_pass * self.matrix.n_weights()
    }

    /// Gigabytes per second of matvecs over the next stretch.
    fn matvec_pass(&mut self, pool: &dyn RowPool) -> f64 {
        let stretch = &self.arena[self.next_stretch()];
        let (x, out) = (&self.x, &mut self.out);
        let n_weights = self.matrix.n_weights();
        let ns = time_ns(|| {
            for weights in stretch.chunks_exact(n_weights) {
                rowpar::matvec_rows(pool, weights, x, black_box(&mut *out));
            }
        });
        (stretch.len() * WEIGHT_BYTES) as f64 / ns
    }

    /// Gigabytes per second of reading the next stretch, partitioned by rows like a matvec.
    fn read_pass(&mut self, pool: &dyn RowPool, pattern: ReadPattern) -> f64 {
        let stretch = &self.arena[self.next_stretch()];
        let n_cols = self.matrix.n_cols;
        let n_rows = stretch.len() / n_cols;
        let grain = n_rows.div_ceil(16 * pool.participants());
        let kernels = Kernels::best();
        let ns = time_ns(|| {
            pool.for_each_range(n_rows, grain, &|rows| {
                let weights = &stretch[rows.start * n_cols..rows.end * n_cols];
                let matrix = Matrix::from_f32(weights, rows.len(), n_cols).expect("whole rows");
                black_box(kernels.read_range(matrix.bytes(), pattern));
            });
        });
        (stretch.len() * WEIGHT_BYTES) as f64 / ns
    }
}

/// Gigabytes per second, one entry per pass.
struct Rates {
    matvec: Vec<f64>,
    /// One list per pattern of reading.
    reads: Vec<Vec<f64>>,
}

impl Rates {
    /// The bandwidth is a median; the per cent are best pass against best pass, as in STREAM: a neighbour
    /// that takes the memory away for a while only ever makes a pass slower.
    fn measurements(self, case: &str) -> [Measurement; 3] {
        let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
        let by_best = |a: &Vec<f64>, b: &Vec<f64>| best(a).total_cmp(&best(b));
        let ceilings = self.reads.into_iter().max_by(by_best).unwrap_or_default();
        let ceiling = best(&ceilings);
        let percent = |rate: &f64| 100.0 * rate / ceiling;
        let measurement = |metric: &str, unit: &str, value, samples| Measurement {
            case: case.into(),
            metric: metric.into(),
            unit: unit.into(),
            better: Better::Higher,
            value,
            resolution: 0.0,
            samples,
        };
        let percents: Vec<f64> = self.matvec.iter().map(percent).collect();
        [
            measurement("bandwidth", "GB/s", median(&self.matvec), self.matvec),
            measurement("of_ceiling", "%", best(&percents), percents),
            measurement("read_ceiling", "GB/s", ceiling, ceilings),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: ModelShape = ModelShape {
        name: "tiny",
        n_layers: 1,
        d_model: 8,
        d_query: 8,
        d_kv: 4,
        d_ff: 16,
        n_vocab: 32,
    };

    #[test]
    fn stretches_rotate_through_the_arena() {
        let arena = vec![0.0; 70];
        let matrix = MatrixShape { role: "m", n_rows: 4, n_cols: 5 };
        let mut stream = Stream::new(&arena, matrix);
        assert_eq!((stream.n_copies, stream.copies_per_pass), (3, 3));
        stream.copies_per_pass = 2;
        assert_eq!(stream.next_stretch(), 0..40);
        assert_eq!(stream.next_stretch(), 0..40, "two copies no longer fit behind the first two");
        stream.copies_per_pass = 1;
        assert_eq!(stream.next_stretch(), 40..60);
        assert_eq!(stream.next_stretch(), 0..20);
    }

    #[test]
    fn the_ceiling_is_the_best_pass_of_the_faster_loop() {
        let reads = vec![vec![10.0, 15.0], vec![16.0, 12.0], vec![9.0, 9.0]];
        let rates = Rates { matvec: vec![8.0, 12.0], reads };
        let [bandwidth, percent, ceiling] = rates.measurements("case");
        assert_eq!((bandwidth.value, ceiling.value, percent.value), (10.0, 16.0, 75.0));
        assert_eq!(percent.samples, [50.0, 75.0]);
    }

    #[test]
    fn every_fused_matrix_is_reported() {
        let suite = MatvecSuite::new(TINY, 0, 1);
        assert_eq!(suite.working_set(), 32 * 8 * 4);
        let report = suite.measure(&rowpar::Serial, Duration::ZERO);
        assert_eq!(report.measurements.len(), 12);
        assert_eq!(report.measurements[0].case, "tiny-qkv-16x8");
    }
}
