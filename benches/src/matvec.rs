//! The matvec suite: gigabytes of weights per second, beside what the same threads can read.
//!
//! Every pass streams the next stretch of one large arena: a matvec over each matrix in it, in each of the ways that are
//! asked for (batches, kernels, packed or not), then the read loops of `rowpar` over the stretches after that, and round
//! again. A stretch is not touched again before the whole arena was, so caches smaller than the arena do not
//! help either side. The read loops run on the same pool: once at length, in one dispatch per pass, so that what the dispatches
//! between matvecs cost counts against them; and once in the dispatches and the parts of the matvecs, where it does not. Packed tiles are copies, an arena of their own of the same size.
//!
//! A [`Library`] brings threads of its own. The ceiling is then read before it is there, by
//! as many threads of `epoch_pool`.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use rowpar::{
    Activation, Format, Kernels, Matrix, PackedMatrix, Q8Activation, RowPool, Serial,
    matvec_batch_with,
};

use crate::ceiling::{Ceilings, Reads};
use crate::data::{fill_noise, uniform};
use crate::library::{Library, Product, Weights};
use crate::protocol::Report;
use crate::rates::{Rates, Way};
use crate::shape::MatrixShape;
use crate::track::Track;
use crate::variants::Input;
use crate::work::time_ns;
use crate::{ModelShape, PoolError, Variants};

/// Weight bytes of a pass of matvecs: short beside the time slice of a neighbour, so that most passes are of one piece.
const PASS_BYTES: usize = 4 << 20;
/// Bytes of a pass of reading, which is one dispatch: long beside what that costs.
const READ_BYTES: usize = 16 << 20;
/// Passes of each kind at least, whatever the budget.
const MIN_PASSES: usize = 5;
/// A matrix that the arena has no room for loses rows, down to so many.
const MIN_ROWS: usize = 16;

/// The matvec suite of one model shape.
#[derive(Debug)]
pub struct MatvecSuite {
    shape: ModelShape,
    variants: Variants,
    kernels: Vec<Kernels>,
    n_threads: usize,
    arena: Vec<f32>,
}

impl MatvecSuite {
    /// Bytes of the smallest arena: a few rows of the widest matrix.
    pub fn least_working_set(shape: ModelShape) -> usize {
        let few_rows = |matrix: &MatrixShape| matrix.n_rows.min(MIN_ROWS) * matrix.n_cols;
        let n_floats = shape.fused().iter().map(few_rows).max().unwrap_or(0);
        n_floats * size_of::<f32>()
    }

    /// Allocates and fills an arena of `working_set` bytes, or of the [least](Self::least_working_set) if that is more.
    ///
    /// # Errors
    ///
    /// This CPU has not the kernels asked for, or a batch is of 0 inputs.
    pub fn new(
        shape: ModelShape,
        variants: Variants,
        working_set: usize,
        n_threads: usize,
    ) -> Result<Self, String> {
        let kernels = variants.kernels()?;
        if variants.batches.contains(&0) {
            return Err("a batch has at least 1 input".into());
        }
        let n_bytes = working_set.max(Self::least_working_set(shape));
        let mut arena = vec![0.0; n_bytes / size_of::<f32>()];
        fill_noise(&mut arena, 0x7765_6967_6874, n_threads);
        Ok(Self { shape, variants, kernels, n_threads, arena })
    }

    /// Bytes of weights in the arena.
    pub fn working_set(&self) -> usize {
        size_of_val(&self.arena[..])
    }

    /// Measures each fused matrix of the shape in each format, within about `budget`.
    ///
    /// # Errors
    ///
    /// Nothing can be measured: no format fits a matrix.
    pub fn measure(&self, pool: &dyn RowPool, budget: Duration) -> Result<Report, String> {
        let (streams, mut report) = self.streams(pool.participants())?;
        for stream in &streams {
            let rates = stream.measure(pool, budget / streams.len() as u32);
            report.measurements.extend(rates.measurements(&stream.name));
        }
        Ok(report)
    }

    /// The same on a library, which `open` sets up once there is no other thread any more.
    ///
    /// # Errors
    ///
    /// As [`measure`](Self::measure); the library cannot be set up, refuses the weights, or fails.
    pub fn measure_library(
        &self,
        open: impl FnOnce() -> Result<Box<dyn Library>, PoolError>,
        budget: Duration,
    ) -> Result<Report, PoolError> {
        let (streams, mut report) = self.streams(self.n_threads)?;
        let budget = budget / streams.len() as u32;
        let pool = epoch_pool::Pool::new(self.n_threads.saturating_sub(1))?;
        let ceilings: Vec<Ceilings> = streams.iter().map(|s| s.read(&pool, budget / 2)).collect();
        drop(pool);
        let library = open()?;
        for (stream, ceilings) in streams.iter().zip(ceilings) {
            let mut product = library.load(stream.weights)?;
            let rates = stream.measure_product(&mut *product, ceilings, budget / 2)?;
            report.measurements.extend(rates.measurements(&stream.name));
        }
        Ok(report)
    }

    /// What can be measured, and a report with a note about what cannot.
    fn streams(&self, participants: usize) -> Result<(Vec<Stream<'_>>, Report), String> {
        let mut report = Report { participants, ..Report::default() };
        let mut streams = Vec::new();
        for &format in &self.variants.formats {
            for matrix in self.shape.fused() {
                match self.stream(matrix, format) {
                    Some(stream) => streams.push(stream),
                    None => report.notes.push(format!(
                        "{matrix} of {} was left out in {format}: {} columns are no whole blocks of {}",
                        self.shape,
                        matrix.n_cols,
                        format.block_len()
                    )),
                }
            }
        }
        match streams.is_empty() {
            true => Err(format!("nothing to measure: {}", report.notes.join("; "))),
            false => Ok((streams, report)),
        }
    }

    fn stream(&self, matrix: MatrixShape, format: Format) -> Option<Stream<'_>> {
        let row_bytes = format.row_bytes(matrix.n_cols)?;
        let n_rows = match self.working_set() / row_bytes {
            fitting if fitting < matrix.n_rows => fitting / MIN_ROWS * MIN_ROWS,
            _ => matrix.n_rows,
        };
        let matrix = MatrixShape { n_rows, ..matrix };
        let weights = Weights::new(format, n_rows, matrix.n_cols, &self.arena)?;
        let name = format!("{}-{matrix}", self.shape.slug());
        Some(Stream { suite: self, name, weights, ways: self.ways(format) })
    }

    /// Every combination of batch, kernels and packing.
    fn ways(&self, format: Format) -> Vec<Way> {
        let Variants { batches, isas, input, packed, .. } = &self.variants;
        let mut ways = Vec::new();
        for (kernels, set) in self.kernels.iter().enumerate() {
            for &batch in batches {
                for packed in if *packed { &[false, true][..] } else { &[false] } {
                    let mut case = format!("{}-b{batch}", format.name().to_ascii_lowercase());
                    if *input == Input::F32 && format.is_block() {
                        case += "-f32";
                    }
                    if !isas.is_empty() {
                        case += &format!("-{}", set.isa());
                    }
                    if *packed {
                        case += "-packed";
                    }
                    ways.push(Way { case, kernels, batch, packed: *packed });
                }
            }
        }
        ways
    }
}

/// One matrix shape in one format, streaming through the arena.
struct Stream<'a> {
    suite: &'a MatvecSuite,
    name: String,
    weights: Weights<'a>,
    ways: Vec<Way>,
}

impl Stream<'_> {
    fn track(&self) -> Track {
        Track::new(self.weights.n_copies(), self.weights.copy_bytes())
    }

    /// Passes of each kind in an order that turns, so that no kind always meets the same stretch.
    fn measure(&self, pool: &dyn RowPool, budget: Duration) -> Rates<'_> {
        let (mut operands, mut track) = (Operands::new(self), self.track());
        let packed = self.packed();
        let mut passes = vec![Vec::new(); self.ways.len()];
        let mut ceilings = Ceilings::new();
        for way in &self.ways {
            self.pass(pool, &packed, way, &mut operands, &mut track); // warms up
        }
        let n_kinds = self.ways.len() + Ceilings::N_KINDS;
        let start = Instant::now();
        for turn in 0.. {
            if turn >= MIN_PASSES && start.elapsed() >= budget {
                break;
            }
            for kind in (0..n_kinds).map(|kind| (turn + kind) % n_kinds) {
                match self.ways.get(kind) {
                    Some(way) => {
                        let rate = self.pass(pool, &packed, way, &mut operands, &mut track);
                        passes[kind].push(rate);
                    }
                    None => self.read_pass(pool, &mut ceilings, kind - self.ways.len(), &mut track),
                }
            }
        }
        Rates { ways: &self.ways, passes, ceilings }
    }

    /// Gigabytes per second of matvecs over the next stretch.
    fn pass(
        &self,
        pool: &dyn RowPool,
        packed: &[PackedMatrix],
        way: &Way,
        operands: &mut Operands,
        track: &mut Track,
    ) -> f64 {
        let kernels = self.suite.kernels[way.kernels];
        let (x, out) = operands.of(way.batch);
        let copies = track.next_copies(PASS_BYTES);
        let n_bytes = copies.len() * self.weights.copy_bytes();
        let pool = self.pool_for_products(pool);
        let ns = time_ns(|| {
            for copy in copies {
                let w = match packed.get(copy).filter(|_| way.packed) {
                    Some(packed) => packed.as_matrix(),
                    None => self.matrix(copy),
                };
                matvec_batch_with(kernels, pool, w, &x, black_box(&mut *out));
            }
        });
        n_bytes as f64 / ns
    }

    /// Where `rowpar::matvec` takes the calling thread alone, so do we.
    fn pool_for_products<'p>(&self, pool: &'p dyn RowPool) -> &'p dyn RowPool {
        if self.weights.copy_bytes() < pool.parallel_bytes() { &Serial } else { pool }
    }

    fn matrix(&self, copy: usize) -> Matrix<'_> {
        let Weights { format, n_rows, n_cols, .. } = self.weights;
        Matrix::new(format, n_rows, n_cols, self.weights.bytes(copy)).expect("bytes of the shape")
    }

    fn read_pass(
        &self,
        pool: &dyn RowPool,
        ceilings: &mut Ceilings,
        kind: usize,
        track: &mut Track,
    ) {
        match kind.checked_sub(Reads::N_PATTERNS) {
            None => {
                let bytes = track.next_bytes(READ_BYTES);
                ceilings.at_length.pass(pool, &self.weights.all_bytes()[bytes], kind);
            }
            Some(pattern) => {
                let copies = track.next_copies(PASS_BYTES);
                ceilings.in_parts.pass_in_parts(pool, pattern, |each| {
                    copies.for_each(|copy| each(&[self.matrix(copy)]));
                });
            }
        }
    }

    /// The ceiling alone.
    fn read(&self, pool: &dyn RowPool, budget: Duration) -> Ceilings {
        let (mut ceilings, mut track) = (Ceilings::new(), self.track());
        let start = Instant::now();
        for turn in 0.. {
            if turn >= MIN_PASSES && start.elapsed() >= budget {
                break;
            }
            for kind in (0..Ceilings::N_KINDS).map(|kind| (turn + kind) % Ceilings::N_KINDS) {
                self.read_pass(pool, &mut ceilings, kind, &mut track);
            }
        }
        ceilings
    }

    fn measure_product(
        &self,
        product: &mut dyn Product,
        ceilings: Ceilings,
        budget: Duration,
    ) -> Result<Rates<'_>, PoolError> {
        let (mut operands, mut track) = (Operands::new(self), self.track());
        // Whatever the library puts off to the first product of a matrix is none of our time.
        (0..self.weights.n_copies()).try_for_each(|copy| operands.multiply(product, copy, 1))?;
        let mut passes = vec![Vec::new(); self.ways.len()];
        let start = Instant::now();
        for turn in 0.. {
            if turn >= MIN_PASSES && start.elapsed() >= budget {
                break;
            }
            for kind in (0..self.ways.len()).map(|kind| (turn + kind) % self.ways.len()) {
                let mut copies = track.next_copies(PASS_BYTES);
                let n_bytes = copies.len() * self.weights.copy_bytes();
                let batch = self.ways[kind].batch;
                let mut outcome = Ok(());
                let ns = time_ns(|| {
                    outcome = copies.try_for_each(|copy| operands.multiply(product, copy, batch));
                });
                outcome?;
                passes[kind].push(n_bytes as f64 / ns);
            }
        }
        Ok(Rates { ways: &self.ways, passes, ceilings })
    }

    /// A packed copy of each matrix, made by all threads, if a way asks for them.
    fn packed(&self) -> Vec<PackedMatrix> {
        if !self.ways.iter().any(|way| way.packed) {
            return Vec::new();
        }
        let Weights { format, n_rows, n_cols, .. } = self.weights;
        let pack = |copy| {
            let bytes = self.weights.bytes(copy).to_vec();
            PackedMatrix::from_vec(format, n_rows, n_cols, bytes).expect("bytes of the shape")
        };
        let copies: Vec<usize> = (0..self.weights.n_copies()).collect();
        let parts = copies.chunks(copies.len().div_ceil(self.suite.n_threads.max(1)));
        std::thread::scope(|scope| {
            let threads: Vec<_> = parts
                .map(|part| scope.spawn(|| part.iter().copied().map(pack).collect::<Vec<_>>()))
                .collect();
            let packed = threads.into_iter().map(|thread| thread.join().expect("packing"));
            packed.flatten().collect()
        })
    }
}

/// Inputs for the largest batch, and room for as many outputs.
struct Operands {
    n_rows: usize,
    n_cols: usize,
    x: Vec<f32>,
    quantized: Option<Vec<Q8Activation>>,
    out: Vec<f32>,
}

impl Operands {
    fn new(stream: &Stream<'_>) -> Self {
        let Weights { format, n_rows, n_cols, .. } = stream.weights;
        let variants = &stream.suite.variants;
        let batch = variants.batches.iter().copied().max().unwrap_or(1);
        let x = uniform(batch * n_cols, 11, 1.0, 1);
        let quantized = (format.is_block() && variants.input == Input::Q8).then(|| {
            let quantized = x.chunks_exact(n_cols).map(|x| {
                let mut quantized = Q8Activation::new();
                quantized.quantize(x);
                quantized
            });
            quantized.collect()
        });
        Self { n_rows, n_cols, x, quantized, out: vec![0.0; batch * n_rows] }
    }

    fn of(&mut self, batch: usize) -> (Vec<Activation<'_>>, &mut [f32]) {
        let x = match &self.quantized {
            Some(quantized) => quantized[..batch].iter().map(Activation::Q8).collect(),
            None => self.x.chunks_exact(self.n_cols).take(batch).map(Activation::F32).collect(),
        };
        (x, &mut self.out[..batch * self.n_rows])
    }

    fn multiply(
        &mut self,
        product: &mut dyn Product,
        copy: usize,
        batch: usize,
    ) -> Result<(), PoolError> {
        let (x, out) = (&self.x[..batch * self.n_cols], &mut self.out[..batch * self.n_rows]);
        product.multiply(copy, x, batch, black_box(out))
    }
}

#[cfg(test)]
mod tests;
