//! One thread: how much of its read bandwidth the kernels use.
//!
//! ```text
//! cargo run --release -p rowpar --example roof -- [--format F32,Q8_0] [--cols 576,4096] [--isa avx2] [--batch 1,2]
//!     [--input f32,q8] [--packed] [--mib 1024] [--slice-kib 16384] [--rounds 5] [--range 1000000]
//! ```
//!
//! The weights are cut into slices. The ways to read them and the kernels take turns from slice to
//! slice, so that none is alone with a busy moment of the machine. A figure is the median over the slices and,
//! as a measure of the noise, the lower and the upper quartile. The roof is the fastest way to read. Weights
//! must be much larger than the last-level cache, or the figures are those of the cache. Slices of 1 MiB or less ask for
//! just that: all turns take the first slice, after a pass over it that is not timed. A packed matrix is a copy of the
//! first slice.

use std::{env, hint::black_box, process::ExitCode, str::FromStr, time::Instant};

use rowpar::{Activation, Format, Isa, Kernels, Matrix, PackedMatrix, Q8Activation, ReadPattern};

/// Slices up to this size are measured in the cache.
const CACHED: usize = 1 << 20;

struct Settings {
    formats: Vec<Format>,
    cols: Vec<usize>,
    isas: Vec<Isa>,
    batches: Vec<usize>,
    inputs: Vec<String>,
    packed: bool,
    mib: usize,
    slice_kib: usize,
    rounds: usize,
    range: usize,
}

fn list<T: FromStr>(text: &str) -> Result<Vec<T>, String> {
    let parse = |part: &str| part.trim().parse().map_err(|_| format!("{part:?} is not understood"));
    text.split(',').map(parse).collect()
}

impl Settings {
    fn from_args() -> Result<Self, String> {
        let mut settings = Self {
            formats: vec![Format::F32],
            cols: vec![576, 1536, 4096, 14336],
            isas: Kernels::supported().into_iter().map(Kernels::isa).collect(),
            batches: vec![1, 2],
            inputs: vec!["q8".to_owned()],
            packed: false,
            mib: 1024,
            slice_kib: 16 * 1024,
            rounds: 5,
            range: 1_000_000,
        };
        let mut args = env::args().skip(1);
        while let Some(name) = args.next() {
            if name == "--packed" {
                settings.packed = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{name:?} needs a value"))?;
            let number = || value.parse().map_err(|_| format!("{value:?} is no number"));
            match &name[..] {
                "--format" if value == "all" => settings.formats = Format::ALL.to_vec(),
                "--format" => settings.formats = list(&value)?,
                "--cols" => settings.cols = list(&value)?,
                "--isa" => settings.isas = list(&value)?,
                "--batch" => settings.batches = list(&value)?,
                "--input" => settings.inputs = list(&value)?,
                "--mib" => settings.mib = number()?,
                "--slice-kib" => settings.slice_kib = number()?,
                "--rounds" => settings.rounds = number()?,
                "--range" => settings.range = number()?,
                _ => return Err(format!("{name:?} is no option of this example")),
            }
        }
        let positive =
            [settings.mib, settings.slice_kib, settings.rounds, settings.range].into_iter();
        let all =
            positive.chain(settings.cols.iter().copied()).chain(settings.batches.iter().copied());
        if all.min() == Some(0) {
            return Err("0 is too small".to_owned());
        }
        Ok(settings)
    }
}

fn main() -> ExitCode {
    let settings = match Settings::from_args() {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build; use --release");
    }
    let n_bytes = settings.mib.max(16) << 20;
    // Bytes that make finite weights in every format, and hardly any subnormal ones, which are slow: pairs that are about
    // one as a bfloat16, and about two as a binary16.
    let byte = |i: usize| match i % 2 {
        0 => i.wrapping_mul(2_654_435_761) >> 13,
        _ => 0x3f | i.wrapping_mul(2_654_435_761) >> 13 & 0x80,
    };
    let bytes: Vec<u8> = (0..n_bytes).map(|i| byte(i) as u8).collect();
    println!("{} MiB of weights, {} rounds, 1 thread", settings.mib, settings.rounds);
    println!(
        "{:>6} {:>5}  {:<24}{:>8}  {:<14}{:>6}",
        "format", "n", "loop", "GB/s", "(quartiles)", "roof"
    );
    for format in &settings.formats {
        for &n_cols in &settings.cols {
            match format.row_bytes(n_cols) {
                Some(row_bytes) => report(&settings, *format, n_cols, row_bytes, &bytes),
                None => println!("{format:>6} {n_cols:>5}  no whole blocks"),
            }
        }
    }
    ExitCode::SUCCESS
}

type Loop<'a> = Box<dyn FnMut(&[u8]) + 'a>;

fn report(settings: &Settings, format: Format, n_cols: usize, row_bytes: usize, bytes: &[u8]) {
    let slice_bytes = settings.slice_kib << 10;
    let n_rows = (slice_bytes / row_bytes / 16 * 16).clamp(1, bytes.len() / row_bytes);
    let mut loops: Vec<(String, Loop<'_>)> = Vec::new();
    for pattern in ReadPattern::ALL {
        let read = |bytes: &[u8]| _ = black_box(Kernels::best().read_range(bytes, *pattern));
        loops.push((format!("read {pattern:?}"), Box::new(read)));
    }
    for isa in &settings.isas {
        for input in settings.inputs.iter().filter(|input| *input == "f32" || format.is_block()) {
            for &batch in &settings.batches {
                let kernel = Kernel::new(
                    *isa,
                    format,
                    n_cols,
                    batch,
                    input == "q8",
                    settings.range.min(n_rows),
                );
                loops.push((format!("{isa} {input} x{batch}"), kernel.run(false)));
                if settings.packed {
                    let kernel = Kernel::new(
                        *isa,
                        format,
                        n_cols,
                        batch,
                        input == "q8",
                        settings.range.min(n_rows),
                    );
                    loops.push((format!("{isa} {input} x{batch} packed"), kernel.run(true)));
                }
            }
        }
        if !format.is_block() && !settings.inputs.iter().any(|input| input == "f32") {
            for &batch in &settings.batches {
                let kernel =
                    Kernel::new(*isa, format, n_cols, batch, false, settings.range.min(n_rows));
                loops.push((format!("{isa} x{batch}"), kernel.run(false)));
                if settings.packed {
                    let kernel =
                        Kernel::new(*isa, format, n_cols, batch, false, settings.range.min(n_rows));
                    loops.push((format!("{isa} x{batch} packed"), kernel.run(true)));
                }
            }
        }
    }
    let first = &bytes[..n_rows * row_bytes];
    let mut speeds = vec![Vec::new(); loops.len()];
    for round in 0..settings.rounds {
        for (i, bytes) in bytes.chunks_exact(n_rows * row_bytes).enumerate() {
            let turn = (i + round) % loops.len();
            let bytes = if slice_bytes <= CACHED { first } else { bytes };
            if slice_bytes <= CACHED {
                (loops[turn].1)(bytes);
            }
            let start = Instant::now();
            (loops[turn].1)(bytes);
            speeds[turn].push(bytes.len() as f64 / start.elapsed().as_nanos() as f64);
        }
    }
    print(format, n_cols, &loops, speeds);
}

fn print(format: Format, n_cols: usize, loops: &[(String, Loop<'_>)], mut speeds: Vec<Vec<f64>>) {
    speeds.iter_mut().for_each(|speeds| speeds.sort_by(f64::total_cmp));
    let quantile = |turn: usize, of_4: usize| {
        let speeds = &speeds[turn];
        speeds.get(speeds.len() * of_4 / 4).copied().unwrap_or(f64::NAN)
    };
    let reads = 0..ReadPattern::ALL.len();
    let by_median = |a: &usize, b: &usize| quantile(*a, 2).total_cmp(&quantile(*b, 2));
    let fastest = reads.max_by(by_median).expect("there are patterns");
    let roof = quantile(fastest, 2);
    for (turn, (name, _)) in loops.iter().enumerate() {
        let (low, median, high) = (quantile(turn, 1), quantile(turn, 2), quantile(turn, 3));
        let spread = format!("({low:.1}-{high:.1})");
        let percent = 100.0 * median / roof;
        println!("{format:>6} {n_cols:>5}  {name:<24}{median:>8.2}  {spread:<14}{percent:>5.0}%");
    }
    if quantile(fastest, 3) > 1.1 * quantile(fastest, 1) {
        println!(
            "{format:>6} {n_cols:>5}  the roof itself varies by more than 10 %: is the machine busy?"
        );
    }
}

/// A kernel and what it needs besides weights.
struct Kernel {
    kernels: Kernels,
    format: Format,
    n_cols: usize,
    range: usize,
    values: Vec<Vec<f32>>,
    quantized: Option<Vec<Q8Activation>>,
    out: Vec<f32>,
}

impl Kernel {
    fn new(
        isa: Isa,
        format: Format,
        n_cols: usize,
        batch: usize,
        quantize: bool,
        range: usize,
    ) -> Self {
        let kernels = Kernels::for_isa(isa).unwrap_or_else(Kernels::best);
        let values: Vec<Vec<f32>> = (0..batch)
            .map(|b| (0..n_cols).map(|i| (b + i) as f32 % 17.0 - 8.0).collect())
            .collect();
        let quantized = quantize.then(|| {
            let quantized = values.iter().map(|x| {
                let mut quantized = Q8Activation::new();
                quantized.quantize(x);
                quantized
            });
            quantized.collect()
        });
        Self { kernels, format, n_cols, range, values, quantized, out: vec![0.0; batch * range] }
    }

    /// Computes slices of weights, as they are or as packed tiles of the first one.
    fn run<'a>(self, packed: bool) -> Loop<'a> {
        let Self { kernels, format, n_cols, range, values, quantized, mut out } = self;
        let mut tiles: Option<PackedMatrix> = None;
        Box::new(move |bytes| {
            let row_bytes = format.row_bytes(n_cols).expect("checked");
            let x: Vec<Activation<'_>> = match &quantized {
                Some(quantized) => quantized.iter().map(Activation::Q8).collect(),
                None => values.iter().map(|x| Activation::F32(x)).collect(),
            };
            if packed {
                let w = tiles.get_or_insert_with(|| {
                    let n_rows = bytes.len() / row_bytes;
                    PackedMatrix::new(
                        Matrix::new(format, n_rows, n_cols, bytes).expect("whole rows"),
                    )
                });
                let w = w.as_matrix();
                for first in (0..w.n_rows()).step_by(range.next_multiple_of(16)) {
                    let rows = first..w.n_rows().min(first + range.next_multiple_of(16));
                    let n_rows = rows.len();
                    out.resize(out.len().max(x.len() * n_rows), 0.0);
                    kernels.matvec(w.rows(rows), &x, &mut out[..x.len() * n_rows]);
                }
            } else {
                for bytes in bytes.chunks(range * row_bytes) {
                    let n_rows = bytes.len() / row_bytes;
                    let w = Matrix::new(format, n_rows, n_cols, bytes).expect("whole rows");
                    kernels.matvec(w, &x, &mut out[..x.len() * n_rows]);
                }
            }
            black_box(&mut out);
        })
    }
}
