//! What a fork-join pool is made of, in nanoseconds on this machine: the price list behind every choice of a spin budget.
//!
//! ```text
//! cargo run --release -p benches --example primitives
//! ```
//!
//! Medians; a busy machine gives other numbers.
#![forbid(unsafe_code)]

use std::hint::{black_box, spin_loop};
use std::thread;
use std::time::{Duration, Instant};

use benches::round_trip::{self, Word};
use benches::stats::median;
use benches::work::{clock_ns, time_ns};

fn main() {
    println!("reading the clock twice       {:>9.0} ns", clock_ns());
    println!("spin hint                     {:>9.1} ns", each(10_000, spin_loop));
    println!("yield, nobody waiting         {:>9.1} ns", each(1000, thread::yield_now));
    let word = Word::default();
    let add = || black_box(&word).increment();
    println!("read-modify-write, own line   {:>9.1} ns", each(10_000, add));
    println!("line round trip, two CPUs     {:>9.0} ns", round_trip::measure_ns());
    let (call, run) = wake_up();
    println!("unpark, for who calls it      {call:>9.0} ns");
    println!("unpark, until the thread runs {run:>9.0} ns");
}

/// One of `n` repetitions.
fn each(n: usize, f: impl Fn()) -> f64 {
    let sample = |_| time_ns(|| (0..n).for_each(|_| f())) / n as f64;
    median(&(0..21).map(sample).collect::<Vec<_>>())
}

/// Waking a thread that has parked a while ago: what the call costs, and when the thread runs.
fn wake_up() -> (f64, f64) {
    const ROUNDS: u64 = 300;
    let (request, answer) = (Word::default(), Word::default());
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            for round in 1..=ROUNDS {
                while !request.has_reached(round) {
                    thread::park();
                }
                answer.set(round);
            }
        });
        let one = |round| {
            let pause = Instant::now();
            while pause.elapsed() < Duration::from_micros(300) {
                spin_loop(); // let it fall asleep
            }
            let start = Instant::now();
            request.set(round);
            sleeper.thread().unpark();
            let call = start.elapsed().as_nanos() as f64;
            answer.wait_for(round);
            (call, start.elapsed().as_nanos() as f64)
        };
        let (calls, runs): (Vec<f64>, Vec<f64>) = (1..=ROUNDS).map(one).unzip();
        (median(&calls), median(&runs))
    })
}
