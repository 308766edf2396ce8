//! What a fork-join pool is made of, in nanoseconds on this machine: the price list behind every choice of a spin budget.
//!
//! ```text
//! cargo run --release -p benches --example primitives
//! ```
//!
//! Medians; a busy machine gives other numbers.
#![forbid(unsafe_code)]

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::stats::median;
use benches::work::{clock_ns, time_ns};

/// A word on cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Word(AtomicU64);

fn main() {
    println!("reading the clock twice       {:>9.0} ns", clock_ns());
    println!("spin hint                     {:>9.1} ns", each(10_000, spin_loop));
    println!("yield, nobody waiting         {:>9.1} ns", each(1000, thread::yield_now));
    let word = Word::default();
    let add = || _ = black_box(&word).0.fetch_add(1, Ordering::AcqRel);
    println!("read-modify-write, own line   {:>9.1} ns", each(10_000, add));
    println!("line round trip, two CPUs     {:>9.0} ns", round_trip());
    let (call, run) = wake_up();
    println!("unpark, for who calls it      {call:>9.0} ns");
    println!("unpark, until the thread runs {run:>9.0} ns");
}

/// One of `n` repetitions.
fn each(n: usize, f: impl Fn()) -> f64 {
    let sample = |_| time_ns(|| (0..n).for_each(|_| f())) / n as f64;
    median(&(0..21).map(sample).collect::<Vec<_>>())
}

/// A store that another thread answers with a store. With one CPU it shows what a context switch takes.
fn round_trip() -> f64 {
    const ROUNDS: u64 = 20_000;
    let (ping, pong) = (Word::default(), Word::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                wait_for(&ping, round);
                pong.0.store(round, Ordering::Release);
            }
        });
        let one = |round| {
            time_ns(|| {
                ping.0.store(round, Ordering::Release);
                wait_for(&pong, round);
            })
        };
        median(&(1..=ROUNDS).map(one).collect::<Vec<_>>())
    })
}

/// Waking a thread that has parked a while ago: what the call costs, and when the thread runs.
fn wake_up() -> (f64, f64) {
    const ROUNDS: u64 = 300;
    let (request, answer) = (Word::default(), Word::default());
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            for round in 1..=ROUNDS {
                while request.0.load(Ordering::Acquire) < round {
                    thread::park();
                }
                answer.0.store(round, Ordering::Release);
            }
        });
        let one = |round| {
            let pause = Instant::now();
            while pause.elapsed() < Duration::from_micros(300) {
                spin_loop(); // let it fall asleep
            }
            let start = Instant::now();
            request.0.store(round, Ordering::Release);
            sleeper.thread().unpark();
            let call = start.elapsed().as_nanos() as f64;
            wait_for(&answer, round);
            (call, start.elapsed().as_nanos() as f64)
        };
        let (calls, runs): (Vec<f64>, Vec<f64>) = (1..=ROUNDS).map(one).unzip();
        (median(&calls), median(&runs))
    })
}

/// Spins until `word` has reached `round`; lets others run now and then, as they may have only this CPU.
fn wait_for(word: &Word, round: u64) {
    let mut looks = 0_u32;
    while word.0.load(Ordering::Acquire) < round {
        looks += 1;
        if looks.is_multiple_of(1000) { thread::yield_now() } else { spin_loop() }
    }
}
