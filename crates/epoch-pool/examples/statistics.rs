//! The dispatches of some tokens of a decoder, and what the pool tells of them.
//!
//! `cargo run --release -p epoch-pool --example statistics -- [THREADS]`

use std::hint::spin_loop;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use epoch_pool::{Histogram, Part, Pool, Session, Statistics};

const TOKENS: usize = 200;
const LAYERS: usize = 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = match std::env::args().nth(1) {
        Some(threads) => threads.parse()?,
        None => available_parallelism()?.get(),
    };
    let mut pool = Pool::builder().participants(threads).timing(true).build()?;
    let start = Instant::now();
    for _ in 0..TOKENS {
        token(&mut pool.session().hot());
        busy(Duration::from_micros(200)); // the next token is chosen; the workers park
    }
    let micros = start.elapsed().as_secs_f64() * 1e6 / TOKENS as f64;
    println!("{threads} participants, {LAYERS} layers, {micros:.0} µs a token");
    print(&pool.statistics());
    Ok(())
}

/// The matvecs of SmolLM2-135M, 50 ns a row, and serial work between them.
fn token(session: &mut Session<'_>) {
    let work = |rows: std::ops::Range<usize>| busy(Duration::from_nanos(50) * rows.len() as u32);
    let attention: [Part<'_>; 3] = [(576, &work), (192, &work), (192, &work)];
    let feed_forward: [Part<'_>; 2] = [(1536, &work), (1536, &work)];
    for _ in 0..LAYERS {
        session.run_many_by(16, &attention);
        busy(Duration::from_micros(5));
        session.run_rows_by(16, 576, work);
        busy(Duration::from_micros(2));
        session.run_many_by(16, &feed_forward);
        busy(Duration::from_micros(2));
        session.run_rows_by(16, 576, work);
        busy(Duration::from_micros(2));
    }
}

fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        spin_loop();
    }
}

fn print(statistics: &Statistics) {
    let Statistics { dispatches, deserted, invited, late, steals, parks, unparks, .. } = statistics;
    println!("dispatches     {dispatches:>9}, {} jobs inline", statistics.inline.total());
    println!("deserted       {deserted:>9}: done by their caller, as others had the workers' CPUs");
    println!("invitations    {invited:>9}, {late} of them in vain: others had done the rows");
    println!("steals         {steals:>9}");
    println!("parks          {parks:>9}, {unparks} wake-ups");
    println!("caller blocked {:>9} times", statistics.caller_waits);
    if statistics.oversubscribed {
        println!("more participants than CPUs: waiters yield");
    }
    if let Some(timing) = &statistics.timing {
        print_quantiles("wake latency", &timing.wake_latency_ns, "ns");
        print_quantiles("imbalance", &timing.imbalance_percent, "%");
    }
}

fn print_quantiles(name: &str, histogram: &Histogram, unit: &str) {
    let quantile = |fraction| match histogram.quantile(fraction) {
        Some(value) => format!("{value} {unit}"),
        None => String::from("none"),
    };
    println!("{name:<14} {:>9} (p50), {} (p99)", quantile(0.5), quantile(0.99));
}
