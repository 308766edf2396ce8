//! One thread: how much of its read bandwidth the f32 kernels use, for the row lengths of real models.
//!
//! ```text
//! cargo run --release -p rowpar --example roof -- [GiB, 1; at least 0.25] [rounds, 5] [rows per range, 1000000]
//! ```
//!
//! The weights are cut into slices of 16 MiB. The ways to read them and the kernels take turns from slice to
//! slice, so that none is alone with a busy moment of the machine. A figure is the median over the slices and,
//! as a measure of the noise, the lower and the upper quartile. The roof is the fastest way to read. Weights
//! must be much larger than the last-level cache, or the figures are those of the cache.

use std::{env, hint::black_box, process::ExitCode, time::Instant};

use rowpar::{Isa, Kernels, ReadPattern};

const N_COLS: &[usize] = &[576, 896, 1536, 2048, 4096, 14336];
const SLICE_BYTES: usize = 16 << 20;

fn main() -> ExitCode {
    let mut numbers: [f64; 3] = [1.0, 5.0, 1e6];
    for (number, text) in numbers.iter_mut().zip(env::args().skip(1)) {
        match text.parse() {
            Ok(parsed) if (0.0..=1e9).contains(&parsed) => *number = parsed,
            _ => {
                eprintln!(
                    "error: {text:?} is not a number that this example takes: [GiB] [rounds] [rows per range]"
                );
                return ExitCode::from(2);
            }
        }
    }
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build; use --release");
    }
    let [gib, rounds, rows_per_range] = numbers;
    let gib = gib.max(0.25);
    let n_weights = (gib * f64::powi(2.0, 30) / 4.0) as usize;
    let w: Vec<f32> =
        (0..n_weights).map(|i| (i.wrapping_mul(2_654_435_761) >> 20) as f32).collect();
    println!(
        "{gib} GiB of f32 weights, {rounds} rounds, {rows_per_range} rows per range, 1 thread"
    );
    println!("{:>6}  {:<18}{:>8}  {:<14}{:>6}", "n", "loop", "GB/s", "(quartiles)", "roof");
    for &n_cols in N_COLS {
        report(&w, n_cols, rounds.max(1.0) as usize, rows_per_range as usize);
    }
    ExitCode::SUCCESS
}

type Loop<'a> = Box<dyn FnMut(&[f32]) + 'a>;

fn report(w: &[f32], n_cols: usize, rounds: usize, rows_per_range: usize) {
    let n_rows = SLICE_BYTES / size_of::<f32>() / n_cols / 8 * 8;
    let mut loops: Vec<(String, Loop<'_>)> = Vec::new();
    for pattern in ReadPattern::ALL {
        let read = |w: &[f32]| _ = black_box(Kernels::best().read_range(w, *pattern));
        loops.push((format!("read {pattern:?}"), Box::new(read)));
    }
    for kernels in Kernels::supported() {
        let range = rows_per_range.clamp(1, n_rows);
        loops.push((format!("{}", kernels.isa()), one_input(n_rows, n_cols, range, kernels)));
        if kernels.isa() != Isa::Scalar {
            loops.push((
                format!("{}, 2 inputs", kernels.isa()),
                two_inputs(n_rows, n_cols, range, kernels),
            ));
        }
    }
    let mut speeds = vec![Vec::new(); loops.len()];
    for round in 0..rounds {
        for (i, w) in w.chunks_exact(n_rows * n_cols).enumerate() {
            let turn = (i + round) % loops.len();
            let start = Instant::now();
            (loops[turn].1)(w);
            speeds[turn].push(size_of_val(w) as f64 / start.elapsed().as_nanos() as f64);
        }
    }
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
        println!(
            "{n_cols:>6}  {name:<18}{median:>8.2}  {spread:<14}{:>5.0}%",
            100.0 * median / roof
        );
    }
    if quantile(fastest, 3) > 1.1 * quantile(fastest, 1) {
        println!("{n_cols:>6}  the roof itself varies by more than 10 %: is the machine busy?");
    }
}

fn one_input<'a>(n_rows: usize, n_cols: usize, range: usize, kernels: Kernels) -> Loop<'a> {
    let (x, mut out) = (input(n_cols, 1.0), vec![0.0; n_rows]);
    Box::new(move |w| {
        for (w, out) in w.chunks(range * n_cols).zip(out.chunks_mut(range)) {
            kernels.matvec_range(w, &x, out);
        }
        black_box(&mut out);
    })
}

fn two_inputs<'a>(n_rows: usize, n_cols: usize, range: usize, kernels: Kernels) -> Loop<'a> {
    let (x1, x2) = (input(n_cols, 1.0), input(n_cols, 2.0));
    let (mut out1, mut out2) = (vec![0.0; n_rows], vec![0.0; n_rows]);
    Box::new(move |w| {
        let outs = out1.chunks_mut(range).zip(out2.chunks_mut(range));
        for (w, (out1, out2)) in w.chunks(range * n_cols).zip(outs) {
            kernels.matvec2_range(w, &x1, &x2, out1, out2);
        }
        black_box((&mut out1, &mut out2));
    })
}

fn input(n_cols: usize, scale: f32) -> Vec<f32> {
    (0..n_cols).map(|i| scale * (i % 17) as f32 - 8.0).collect()
}
