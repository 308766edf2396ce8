//! Whether a job is worth waking workers for: a wake-up takes longer than a small job.
#![forbid(unsafe_code)]

use crate::sync::Counter;

/// Work that parked workers are woken for, in nanoseconds of one thread: about what a wake-up costs the caller and the time until
/// the thread runs (17 and 45 µs on a virtual machine, less on others).
pub(crate) const WORTH_A_WAKE_UP_NS: u64 = if cfg!(all(test, loom)) { 0 } else { 50_000 };

/// What a caller knows of the jobs that found all their workers asleep. Written by the caller.
///
/// A job whose like took long is worth a wake-up at once, and the first one is taken to be such. A small job is not, but many in
/// a row are: had the workers been woken for the first, they would have been awake for all that came within their spin budget.
#[derive(Debug)]
pub(crate) struct Thrift {
    worth_ns: u64,
    /// What the caller spent on the last of these jobs, which is the guess for the next.
    last_job_ns: Counter,
    /// Work done alone of late, rather than waking anybody.
    done_alone_ns: Counter,
    /// When the last of it was done.
    end_ns: Counter,
}

impl Thrift {
    pub(crate) fn new(worth_ns: u64) -> Self {
        let last_job_ns = Counter::default();
        last_job_ns.set(u64::MAX);
        let (done_alone_ns, end_ns) = (Counter::default(), Counter::default());
        Self { worth_ns, last_job_ns, done_alone_ns, end_ns }
    }

    /// A job begins with its workers asleep, who would stay awake for `awake_ns` after a job. `true`: wake them at once.
    pub(crate) fn begin(&self, now_ns: u64, awake_ns: u64) -> bool {
        if now_ns.saturating_sub(self.end_ns.get()) > awake_ns {
            self.done_alone_ns.set(0); // they would have parked again
        }
        self.last_job_ns.get() >= self.worth_ns || self.is_worth_it(0)
    }

    /// Whether so much more work is worth a wake-up.
    pub(crate) fn is_worth_it(&self, left_ns: u64) -> bool {
        left_ns.saturating_add(self.done_alone_ns.get()) >= self.worth_ns
    }

    /// Some more work has been done alone.
    pub(crate) fn add(&self, ns: u64, now_ns: u64) {
        self.done_alone_ns.bump(ns);
        self.end_ns.set(now_ns);
    }

    /// The workers are woken.
    pub(crate) fn reset(&self) {
        self.done_alone_ns.set(0);
    }

    /// The job has taken the caller so long.
    pub(crate) fn finish(&self, job_ns: u64) {
        self.last_job_ns.set(job_ns);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const AWAKE: u64 = 160_000;

    fn small_so_far() -> Thrift {
        let thrift = Thrift::new(WORTH_A_WAKE_UP_NS);
        thrift.finish(10_000);
        thrift
    }

    #[test]
    fn the_last_job_is_the_guess_for_the_next() {
        let thrift = Thrift::new(WORTH_A_WAKE_UP_NS);
        assert!(thrift.begin(0, AWAKE), "the first");
        for (job_ns, worth) in
            [(10_000, false), (10_000_000, true), (50_000, true), (49_999, false)]
        {
            thrift.finish(job_ns);
            assert_eq!(thrift.begin(0, AWAKE), worth, "{job_ns}");
        }
    }

    /// Work, gap behind it; how many such jobs it takes until one is worth a wake-up, if any does.
    const CASES: &[(u64, u64, Option<u64>)] = &[
        (4000, 20_000, Some(12)),
        (4000, AWAKE + 1, None),
        (12_000, 1_000_000, None),
        (30_000, 1000, Some(1)),
        (50_000, 1_000_000, Some(0)),
        (u64::MAX, 0, Some(0)),
    ];

    #[test]
    fn small_jobs_in_a_row_are_worth_it() {
        for &(work, gap, expected) in CASES {
            let thrift = small_so_far();
            let mut now = 1_000_000_000;
            let worth = (0..100).find(|_| {
                if thrift.begin(now, AWAKE) || thrift.is_worth_it(work) {
                    return true;
                }
                now += work;
                thrift.add(work, now);
                thrift.finish(work);
                now += gap;
                false
            });
            assert_eq!(worth, expected, "{work} ns, then {gap} ns");
        }
    }

    #[test]
    fn after_a_wake_up_it_begins_anew() {
        let thrift = small_so_far();
        thrift.begin(0, AWAKE);
        thrift.add(49_999, 1000);
        assert!(thrift.is_worth_it(1));
        thrift.reset();
        assert!(!thrift.is_worth_it(1));
    }
}
