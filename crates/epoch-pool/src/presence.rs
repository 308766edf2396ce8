//! Whether there is anybody to publish a job for: who has lost all CPUs of the workers to others had better work undivided.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use crate::sync::Counter;

/// How long jobs are kept from workers that have not shown themselves, in nanoseconds: a word of theirs may be lost.
pub(crate) const ALONE_NS: u64 = if cfg!(all(test, loom)) { 0 } else { 1_000_000 };

/// From here on a job is long, in nanoseconds: a worker that gets a CPU meanwhile saves more than the cutting costs. Where a worker
/// is away for some 3 ms, and the cutting costs 3.5 µs, that is at 140 µs.
const LONG_NS: u64 = 100_000;

/// Votes of short and long jobs that are remembered.
const VOTES: u64 = 8;

/// What a caller knows of workers that are awake and have no CPU.
///
/// A job is cut for all participants. Done by one of them, piece by piece and claim by claim, it takes longer than undivided: 7 %
/// of the decode of a model of 135 million weights in four bits. So when a job has found no worker, though some were awake, the next
/// ones are not published until a worker shows itself, unless they are long. Each word is a hint: whatever is read, jobs are done.
#[derive(Debug)]
pub(crate) struct Presence {
    /// 1: no worker has come to the last job. Set by the caller, cleared by any worker that waits.
    nobody: CachePadded<Counter>,
    /// Until when jobs are kept from workers; 0 where nothing is. Written by the caller.
    until_ns: Counter,
    /// Long jobs among those that were kept back of late: up by one for each, down for each other.
    long_jobs: Counter,
    alone_ns: u64,
}

impl Presence {
    pub(crate) fn new(alone_ns: u64) -> Self {
        let (until_ns, long_jobs) = (Counter::default(), Counter::default());
        Self { nobody: CachePadded::default(), until_ns, long_jobs, alone_ns }
    }

    /// A worker waits for a job.
    pub(crate) fn show(&self) {
        if self.nobody.get() != 0 {
            self.nobody.set(0);
        }
    }

    /// The caller has done all of a job that it had not meant to do alone.
    pub(crate) fn nobody_came(&self) {
        self.nobody.set(1);
    }

    /// Whether the next job is better not published. Asked by the caller, once for each job.
    pub(crate) fn is_alone(&self, now_ns: impl FnOnce() -> u64) -> bool {
        if self.nobody.get() == 0 {
            self.until_ns.set(0);
            return false;
        }
        let now = now_ns();
        match self.until_ns.get() {
            // The first one shows how long jobs are.
            0 => {
                self.until_ns.set(now.saturating_add(self.alone_ns));
                self.alone_ns > 0
            }
            until if now < until => self.long_jobs.get() <= VOTES / 2,
            _ => {
                self.until_ns.set(0);
                false
            }
        }
    }

    /// A job that was kept back took so long.
    pub(crate) fn finish(&self, job_ns: u64) {
        let votes = self.long_jobs.get();
        let is_long = job_ns >= LONG_NS;
        self.long_jobs.set(if is_long { VOTES.min(votes + 1) } else { votes.saturating_sub(1) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_kept_back_until_somebody_shows_or_for_a_while() {
        let presence = Presence::new(100);
        let is_alone = |now| presence.is_alone(|| now);
        assert!(!is_alone(1000), "nothing is known");
        presence.nobody_came();
        assert!(is_alone(1000) && is_alone(1050) && is_alone(1099));
        assert!(!is_alone(1100), "one job is published");
        assert!(is_alone(1101), "nobody has come to that one either");
        assert!(!is_alone(1201));
        presence.show();
        assert!(!is_alone(1202) && !is_alone(1203));
        presence.nobody_came();
        assert!(is_alone(5000), "the time begins with the first job");
        presence.show();
        presence.nobody_came();
        assert!(is_alone(5090) && !is_alone(5100), "a while is a while from the first of several");
    }

    #[test]
    fn long_jobs_are_published_but_for_one_in_a_while() {
        let presence = Presence::new(100);
        presence.nobody_came();
        // How long a job is, and whether the next one in the same while is kept back.
        let kept = [(99_999, true), (100_000, true), (200_000, true), (300_000, true)];
        let published = [(400_000, true), (u64::MAX, false), (100_000, false), (1, false)];
        let mut start = 1000;
        for (job_ns, is_kept) in kept.into_iter().chain(published).chain([(1, true)]) {
            assert!(presence.is_alone(|| start), "the first, before one of {job_ns}");
            presence.finish(job_ns);
            assert_eq!(presence.is_alone(|| start + 1), is_kept, "after {job_ns}");
            assert!(!presence.is_alone(|| start + 100));
            start += 1000;
        }
    }

    #[test]
    fn without_a_while_every_job_is_published() {
        let presence = Presence::new(0);
        presence.nobody_came();
        assert!((0..3).all(|_| !presence.is_alone(|| 7)));
    }

    #[test]
    fn where_somebody_is_the_clock_is_not_read() {
        let presence = Presence::new(100);
        presence.nobody_came();
        presence.show();
        assert!(!presence.is_alone(|| unreachable!("nobody needs the time")));
    }
}
