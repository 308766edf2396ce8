//! From how many bytes of weights on does a dispatch pay?
//!
//! ```text
//! cargo run --release -p benches --example thresholds -- [--threads 2] [--format F32,Q8_0] [--cols 576] [--gap-us 0]
//!     [--calls 2000] [--mib 512]
//! ```
//!
//! For matrices from 8 KiB to 4 MiB: the time of a matvec on the calling thread, and of the same on a pool, whichever comes first
//! in turn. Weights are read from an arena of `--mib`, each matrix behind the one before, so they come from memory if the arena is
//! larger than the caches. `--gap-us` is what the caller does on its own in front of each call: 0 is a decode loop, and with more
//! the workers of a pool may have gone to sleep. The pools come one after another, each alone in the process: `epoch`, and `rayon`
//! called from outside, as an engine does. The last line of a table is what `RowPool::parallel_bytes` should say: the smallest
//! size from which on the pool's median is never above the caller's.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::str::FromStr;

use benches::stats::quantile;
use benches::work::{Calibration, spin_work, time_ns};
use benches::{Backend, data};
use rowpar::{
    Activation, Format, Kernels, Matrix, Q8Activation, RowPool, Serial, matvec_batch_with,
};

const SIZES: [usize; 19] =
    [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096];
const WARM_UP: usize = 50;

struct Settings {
    threads: usize,
    formats: Vec<Format>,
    n_cols: usize,
    gap_us: f64,
    calls: usize,
    mib: usize,
}

impl Settings {
    fn from_args() -> Result<Self, String> {
        let mut settings = Self {
            threads: cpu_topology::resolve_cpu_threads(),
            formats: vec![Format::F32, Format::Q8_0],
            n_cols: 576,
            gap_us: 0.0,
            calls: 2000,
            mib: 512,
        };
        let mut args = std::env::args().skip(1);
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name:?} needs a value"))?;
            match &name[..] {
                "--threads" => settings.threads = number(&value)?,
                "--format" => {
                    settings.formats = value.split(',').map(number).collect::<Result<_, _>>()?
                }
                "--cols" => settings.n_cols = number(&value)?,
                "--gap-us" => settings.gap_us = number(&value)?,
                "--calls" => settings.calls = number(&value)?,
                "--mib" => settings.mib = number(&value)?,
                _ => return Err(format!("{name:?} is no option of this example")),
            }
        }
        if settings.threads.min(settings.n_cols).min(settings.calls).min(settings.mib / 8) == 0 {
            return Err("0 is too small, and so are less than 8 MiB".into());
        }
        Ok(settings)
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is not understood"))
}

fn main() -> ExitCode {
    let outcome = Settings::from_args().and_then(|settings| {
        let mut arena = vec![0.0; (settings.mib << 20) / size_of::<f32>()];
        data::fill_noise(&mut arena, 1, settings.threads);
        println!("{} threads, {} kernels", settings.threads, Kernels::best().isa());
        for &format in &settings.formats {
            for backend in [Backend::Epoch, Backend::Rayon] {
                let table = |pool: &dyn RowPool| sweep(&settings, format, backend, pool, &arena);
                let swept = backend.with_pool(settings.threads, table);
                swept.map_err(|error| error.to_string())??;
            }
        }
        Ok(())
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table of one pool.
fn sweep(
    settings: &Settings,
    format: Format,
    backend: Backend,
    pool: &dyn RowPool,
    arena: &[f32],
) -> Result<(), String> {
    let Settings { n_cols, gap_us, .. } = *settings;
    let row_bytes = format
        .row_bytes(n_cols)
        .ok_or_else(|| format!("{n_cols} columns are no whole blocks of {format}"))?;
    let gap = Calibration::measure(20).links_for(1e3 * gap_us);
    println!(
        "\n{format}, {n_cols} columns, {backend}; µs: quartiles of the caller alone, and of the pool"
    );
    let mut pays_from = None;
    for kib in SIZES {
        let n_rows = (1024 * kib / row_bytes).max(1);
        let mut stream = Stream::new(arena, format, n_rows, n_cols);
        let (serial, pooled) = stream.measure(settings.calls, gap, pool);
        let middle = |times: &[f64]| quantile(times, 0.5);
        let ratio = middle(&pooled) / middle(&serial);
        let line = [&serial, &pooled].map(|times| {
            let [low, median, high] = [0.25, 0.5, 0.75].map(|q| quantile(times, q) / 1e3);
            format!("{low:>8.1} {median:>8.1} {high:>8.1}")
        });
        let bytes = n_rows * row_bytes;
        println!("{:>8} B  {}  {}  ×{ratio:.2}", bytes, line[0], line[1]);
        match pays_from {
            None if ratio <= 1.0 => pays_from = Some(bytes),
            Some(_) if ratio > 1.0 => pays_from = None,
            _ => {}
        }
    }
    match pays_from {
        Some(bytes) => println!("{format}, {backend}: pays from {bytes} bytes on"),
        None => println!("{format}, {backend}: does not pay at these sizes"),
    }
    Ok(())
}

/// Matrices of one shape, one after another through the arena.
struct Stream<'a> {
    w: Matrix<'a>,
    n_rows: usize,
    next: usize,
    x: Vec<f32>,
    quantized: Q8Activation,
    out: Vec<f32>,
}

impl<'a> Stream<'a> {
    fn new(arena: &'a [f32], format: Format, n_rows: usize, n_cols: usize) -> Self {
        let row_bytes = format.row_bytes(n_cols).expect("checked");
        let bytes = data::as_bytes(arena);
        let n_copies = bytes.len() / (n_rows * row_bytes);
        let bytes = &bytes[..n_copies * n_rows * row_bytes];
        let w = Matrix::new(format, n_copies * n_rows, n_cols, bytes).expect("whole rows");
        let x = data::uniform(n_cols, 2, 1.0, 1);
        let mut quantized = Q8Activation::new();
        quantized.quantize(&x);
        Self { w, n_rows, next: 0, x, quantized, out: vec![0.0; n_rows] }
    }

    /// Nanoseconds of the calls on the calling thread, and of those on the pool.
    fn measure(&mut self, calls: usize, gap: u64, pool: &dyn RowPool) -> (Vec<f64>, Vec<f64>) {
        let mut times = (Vec::with_capacity(calls), Vec::with_capacity(calls));
        for call in 0..WARM_UP + calls {
            // Who comes first may find what the other has left in the caches of the core, or of the prefetchers.
            let order = if call % 2 == 0 { [true, false] } else { [false, true] };
            for is_serial in order {
                spin_work(gap);
                let ns = if is_serial { self.call(&Serial) } else { self.call(pool) };
                if call >= WARM_UP {
                    if is_serial { &mut times.0 } else { &mut times.1 }.push(ns);
                }
            }
        }
        times
    }

    fn call(&mut self, pool: &dyn RowPool) -> f64 {
        if self.next + self.n_rows > self.w.n_rows() {
            self.next = 0;
        }
        let w = self.w.rows(self.next..self.next + self.n_rows);
        self.next += self.n_rows;
        let x = match w.format().is_block() {
            true => Activation::Q8(&self.quantized),
            false => Activation::F32(&self.x),
        };
        time_ns(|| matvec_batch_with(Kernels::best(), pool, w, &[x], &mut self.out))
    }
}
