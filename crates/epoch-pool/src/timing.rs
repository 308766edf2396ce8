//! How long things take in a pool, for those who ask: two readings of the clock for each claim.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use crate::histogram::Cells;
use crate::statistics::Timing;
use crate::sync::{Counter, now_ns};

/// The clock of a pool, and what it has measured.
#[derive(Debug)]
pub(crate) struct Clock {
    /// When the current job was published. Ordered, as all the rest here, by publication, claims and counts of the job.
    published: CachePadded<Counter>,
    participants: Box<[CachePadded<ParticipantTimes>]>,
    imbalance: Cells,
}

#[derive(Debug)]
struct ParticipantTimes {
    /// Nanoseconds in calls of the current job.
    busy: Counter,
    wake_latency: Cells,
}

impl Clock {
    pub(crate) fn new(participants: usize) -> Self {
        let times = || ParticipantTimes { busy: Counter::default(), wake_latency: Cells::new() };
        Self {
            published: CachePadded::default(),
            participants: (0..participants).map(|_| CachePadded::new(times())).collect(),
            imbalance: Cells::new(),
        }
    }

    /// A job is about to be published.
    pub(crate) fn publish(&self, invited: usize) {
        self.participants[..invited].iter().for_each(|participant| participant.busy.set(0));
        self.published.set(now_ns());
    }

    /// A worker has made its first claim.
    pub(crate) fn woke(&self, worker: usize) {
        let latency = now_ns().saturating_sub(self.published.get());
        self.participants[worker].wake_latency.add(latency);
    }

    /// Runs `f` on the account of a participant.
    pub(crate) fn time<R>(&self, participant: usize, f: impl FnOnce() -> R) -> R {
        let start = now_ns();
        let result = f();
        self.participants[participant].busy.bump(now_ns().saturating_sub(start));
        result
    }

    /// All chunks of the job are counted.
    pub(crate) fn finish(&self, invited: usize) {
        let busy = || self.participants[..invited].iter().map(|participant| participant.busy.get());
        let (sum, max) = (busy().sum::<u64>(), busy().max().unwrap_or(0));
        if sum > 0 {
            let of_mean = 100.0 * max as f64 * invited as f64 / sum as f64;
            self.imbalance.add((of_mean - 100.0).round() as u64);
        }
    }

    pub(crate) fn timing(&self) -> Timing {
        let wake_latencies = self.participants.iter().map(|participant| &participant.wake_latency);
        Timing {
            wake_latency_ns: Cells::sum(wake_latencies),
            imbalance_percent: Cells::sum([&self.imbalance].into_iter()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn imbalance_is_the_longest_over_the_mean() {
        // Busy times; per cent.
        const CASES: &[(&[u64], u64)] =
            &[(&[50, 50], 0), (&[100, 0], 100), (&[30, 10, 10, 10], 100), (&[40, 30, 20], 33)];
        for &(busy, expected) in CASES {
            let clock = Clock::new(busy.len() + 1); // one that is not invited
            clock.publish(busy.len());
            busy.iter().zip(&clock.participants).for_each(|(ns, times)| times.busy.set(*ns));
            clock.participants[busy.len()].busy.set(1 << 30);
            clock.finish(busy.len());
            let found: Vec<_> = clock.timing().imbalance_percent.buckets().collect();
            let [(start, end, 1)] = found[..] else { panic!("{busy:?}: {found:?}") };
            assert!((start..=end).contains(&expected), "{busy:?}: {found:?}");
        }
    }

    #[test]
    fn a_job_that_took_no_time_has_no_imbalance() {
        let clock = Clock::new(2);
        clock.publish(2);
        clock.finish(2);
        assert_eq!(clock.timing().imbalance_percent.count(), 0);
    }
}
