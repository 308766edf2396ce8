//! Whether there is anybody to publish a job for: who has lost all CPUs of the workers to others had better work undivided.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use crate::sync::Counter;

/// For how long jobs are kept from workers that do not show themselves, in nanoseconds. In models there is no such time.
pub(crate) const ALONE_NS: u64 = if cfg!(all(test, loom)) { 0 } else { 1_000_000 };

/// From here on a job is long, in nanoseconds: a worker that gets a CPU meanwhile saves more than the cutting costs. Where a worker
/// is away for 3 ms, and the cutting costs 3.5 µs, that is at 140 µs, so no job is kept back that is nearly as long.
const LONG_NS: u64 = 100_000;

/// Votes of short and long jobs that are remembered.
const VOTES: u64 = 8;

/// What a caller knows of workers that are awake and have no CPU.
///
/// A job is cut for all participants. Done by one of them, piece by piece and claim by claim, it takes longer than undivided: 7 %
/// of the decode of a model of 135 million weights in four bits. So when a job has found no worker, though some were awake, the next
/// ones are not published, until a worker shows itself or a while is over. Not if most of late were long: then the help of
/// a worker that comes late is worth more.
///
/// Each word is a hint: whatever is read, jobs are done. A hint that is wrong, as when the workers have parked meanwhile, holds for
/// no longer than that while, and the job that begins in it.
#[derive(Debug)]
pub(crate) struct Presence {
    /// 1: no worker has come to a job, nor been seen since. Set by the caller, cleared by it or by any worker that waits.
    nobody: CachePadded<Counter>,
    /// When that is out of date. Written by the caller.
    until_ns: Counter,
    /// Long jobs among those that were timed of late: up by one for each, down for each other. Written by the caller.
    long_jobs: Counter,
    alone_ns: u64,
}

impl Presence {
    pub(crate) fn new(alone_ns: u64) -> Self {
        let (until_ns, long_jobs) = (Counter::default(), Counter::default());
        long_jobs.set(VOTES); // until some were seen to be short
        Self { nobody: CachePadded::default(), until_ns, long_jobs, alone_ns }
    }

    /// A worker waits for a job.
    pub(crate) fn show(&self) {
        if self.nobody.get() != 0 {
            self.nobody.set(0);
        }
    }

    /// The caller has done all of a job that it had not meant to do alone.
    pub(crate) fn nobody_came(&self, now_ns: u64) {
        self.until_ns.set(now_ns.saturating_add(self.alone_ns));
        self.nobody.set(1);
    }

    /// A job begins: when, if workers are missing, so that the caller is to say how long it took.
    pub(crate) fn begin(&self, now_ns: impl FnOnce() -> u64) -> Option<u64> {
        if self.nobody.get() == 0 {
            return None;
        }
        let now = now_ns();
        if now >= self.until_ns.get() {
            self.nobody.set(0);
        }
        Some(now)
    }

    /// Whether a job that has begun is better not published.
    pub(crate) fn is_alone(&self, start_ns: Option<u64>) -> bool {
        start_ns.is_some_and(|start| start < self.until_ns.get())
            && self.long_jobs.get() <= VOTES / 2
    }

    /// A job that began while workers were missing took so long.
    pub(crate) fn finish(&self, job_ns: u64) {
        let votes = self.long_jobs.get();
        let is_long = job_ns >= LONG_NS;
        self.long_jobs.set(if is_long { VOTES.min(votes + 1) } else { votes.saturating_sub(1) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Whether a job at that time is kept back, of which it is then told how long it took.
    fn is_alone(presence: &Presence, now: u64, job_ns: u64) -> bool {
        let start = presence.begin(|| now);
        let is_alone = presence.is_alone(start);
        if start.is_some() {
            presence.finish(job_ns);
        }
        is_alone
    }

    /// One that has seen short jobs.
    fn of_short_jobs(alone_ns: u64) -> Presence {
        let presence = Presence::new(alone_ns);
        (0..VOTES).for_each(|_| presence.finish(1000));
        presence
    }

    #[test]
    fn jobs_are_kept_back_until_somebody_shows_or_for_a_while() {
        let presence = of_short_jobs(100);
        let is_alone = |now| is_alone(&presence, now, 1000);
        assert!(!is_alone(1000), "nothing is known");
        presence.nobody_came(1000);
        assert!(is_alone(1000) && is_alone(1050) && is_alone(1099));
        assert!(!is_alone(1100) && !is_alone(1101), "nobody is missed any more");
        presence.nobody_came(1102);
        assert!(is_alone(1103));
        presence.show();
        assert!(!is_alone(1104) && !is_alone(1105));
        presence.nobody_came(5000);
        assert!(!is_alone(9000), "a while that nobody has asked in is over as well");
    }

    #[test]
    fn jobs_are_long_until_most_were_short() {
        let presence = Presence::new(100);
        // How long a job took, and whether it was kept back.
        let jobs = [(99_999, false), (1, false), (1, false), (1, false), (1, true), (1, true)];
        let long =
            [(100_000, true), (u64::MAX, true), (200_000, true), (200_000, false), (1, false)];
        for (index, (job_ns, expected)) in jobs.into_iter().chain(long).enumerate() {
            presence.nobody_came(1000);
            assert_eq!(is_alone(&presence, 1001, job_ns), expected, "job {index} of {job_ns} ns");
        }
    }

    #[test]
    fn without_a_while_every_job_is_published() {
        let presence = of_short_jobs(0);
        presence.nobody_came(7);
        assert!((0..3).all(|_| !is_alone(&presence, 7, 1)));
    }

    #[test]
    fn where_nobody_is_missed_the_clock_is_not_read() {
        let presence = of_short_jobs(100);
        let begin = || presence.begin(|| unreachable!("nobody needs the time"));
        assert_eq!(begin(), None);
        presence.nobody_came(7);
        presence.show();
        assert_eq!(begin(), None);
    }
}
