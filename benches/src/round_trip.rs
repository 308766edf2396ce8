//! The time in which a cache line goes to another CPU and back: the unit in which the cost of a dispatch can be told.

#![forbid(unsafe_code)]

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cpu_topology::pin_current_thread;

use crate::stats::median;
use crate::work::time_ns;

/// Round trips timed together, so that reading the clock does not count.
const BLOCK_LEN: u64 = 50;
const N_BLOCKS: u64 = 200;
/// Blocks until both threads have settled on a CPU.
const N_WARM_UP: u64 = 50;
/// Where round trips take context switches, on a busy machine or on one CPU, the blocks would take many seconds. After this
/// time no further one is started, once there are a few.
const TIME_LIMIT: Duration = Duration::from_millis(200);
const N_FEW: u64 = 8;

/// A round that is never played: the other thread returns.
const STOP: u64 = u64::MAX;

/// A counter on cache lines of its own.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Word(AtomicU64);

impl Word {
    /// Sets the counter for whoever waits for it.
    pub fn set(&self, round: u64) {
        self.0.store(round, Ordering::Release);
    }

    /// Whether the counter has reached `round`.
    pub fn has_reached(&self, round: u64) -> bool {
        self.0.load(Ordering::Acquire) >= round
    }

    /// Adds one, which nobody else does.
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Spins until the counter has reached `round`; lets others run now and then, as they may have only this CPU.
    pub fn wait_for(&self, round: u64) {
        let mut looks = 0_u32;
        while !self.has_reached(round) {
            looks += 1;
            if looks.is_multiple_of(1000) { thread::yield_now() } else { spin_loop() }
        }
    }
}

/// Nanoseconds from a store until the store is seen with which another thread answers it: the median.
///
/// Where threads can be pinned they stand on the first two CPUs of the plan for this process, cores of their own if it has two;
/// elsewhere on whichever two the scheduler chooses. With one CPU it is what context switches take.
///
/// ```
/// assert!(benches::round_trip::measure_ns() > 0.0);
/// ```
pub fn measure_ns() -> f64 {
    let times = times_ns(TIME_LIMIT);
    // A series that was cut short has settled after half of it, or not at all.
    let settled = (N_WARM_UP as usize).min(times.len() / 2);
    median(&times[settled..])
}

/// The time of a round trip in each block.
fn times_ns(limit: Duration) -> Vec<f64> {
    let (ping, pong) = (Word::default(), Word::default());
    let (_, cpus) = cpu_topology::resolve_threads_and_affinity(2);
    // Two threads on one CPU, which a busy neighbour makes likely, would show the scheduler and not the line.
    let pin = |thread: usize| pin_current_thread(&[cpus[thread]].into_iter().collect()).ok();
    thread::scope(|scope| {
        scope.spawn(|| {
            let _pin = pin(1);
            for round in 1.. {
                ping.wait_for(round);
                if ping.has_reached(STOP) {
                    break;
                }
                pong.set(round);
            }
        });
        let _pin = pin(0);
        let round_trip = |round| {
            ping.set(round);
            pong.wait_for(round);
        };
        let block = |index| {
            let first = index * BLOCK_LEN + 1;
            time_ns(|| (first..first + BLOCK_LEN).for_each(round_trip)) / BLOCK_LEN as f64
        };
        let start = Instant::now();
        let in_time = |index: &u64| *index < N_FEW || start.elapsed() < limit;
        let times = (0..N_WARM_UP + N_BLOCKS).take_while(in_time).map(block).collect();
        ping.set(STOP);
        times
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_bounds_the_work_and_leaves_a_few_blocks() {
        assert_eq!(times_ns(Duration::ZERO).len() as u64, N_FEW);
        let times = times_ns(TIME_LIMIT);
        assert!((N_FEW..=N_WARM_UP + N_BLOCKS).contains(&(times.len() as u64)));
        assert!(times.iter().all(|time| *time > 0.0));
    }

    #[test]
    fn a_word_is_waited_for() {
        let word = Word::default();
        assert!(word.has_reached(0) && !word.has_reached(1));
        thread::scope(|scope| {
            scope.spawn(|| word.set(2));
            word.wait_for(2);
        });
        word.increment();
        assert!(word.has_reached(3) && !word.has_reached(4));
    }
}
