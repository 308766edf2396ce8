//! Whether a job is worth waking workers for: a wake-up takes longer than a small job.
#![forbid(unsafe_code)]

use crate::sync::Counter;

/// Work that parked workers are woken for, in nanoseconds of one thread: about what a wake-up costs the caller and the time until
/// the thread runs (17 and 45 µs on a virtual machine, less on others).
const WORTH_A_WAKE_UP_NS: u64 = if cfg!(all(test, loom)) { 0 } else { 50_000 };

/// What a caller has done alone of late, rather than wake its workers. Written by the caller.
///
/// One small job is not worth it, but many in a row are: had the workers been woken for the first, they would have been awake for
/// all that came within their spin budget.
#[derive(Debug, Default)]
pub(crate) struct Thrift {
    done_alone_ns: Counter,
    /// When the last of it was done.
    end_ns: Counter,
}

impl Thrift {
    /// A job begins with workers asleep, who would stay awake for `awake_ns` after a job.
    pub(crate) fn begin(&self, now_ns: u64, awake_ns: u64) {
        if now_ns.saturating_sub(self.end_ns.get()) > awake_ns {
            self.done_alone_ns.set(0); // they would have parked again
        }
    }

    /// Whether so much more work is worth a wake-up.
    pub(crate) fn is_worth_it(&self, left_ns: u64) -> bool {
        left_ns.saturating_add(self.done_alone_ns.get()) >= WORTH_A_WAKE_UP_NS
    }

    /// Some more work has been done alone.
    pub(crate) fn add(&self, ns: u64, now_ns: u64) {
        self.done_alone_ns.bump(ns);
        self.end_ns.set(now_ns);
    }

    /// The workers have been woken.
    pub(crate) fn reset(&self) {
        self.done_alone_ns.set(0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const AWAKE: u64 = 160_000;

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
            let thrift = Thrift::default();
            let mut now = 1_000_000_000;
            let worth = (0..100).find(|_| {
                thrift.begin(now, AWAKE);
                if thrift.is_worth_it(work) {
                    return true;
                }
                now += work;
                thrift.add(work, now);
                now += gap;
                false
            });
            assert_eq!(worth, expected, "{work} ns, then {gap} ns");
        }
    }

    #[test]
    fn after_a_wake_up_it_begins_anew() {
        let thrift = Thrift::default();
        thrift.begin(0, AWAKE);
        thrift.add(49_999, 1000);
        assert!(thrift.is_worth_it(1));
        thrift.reset();
        assert!(!thrift.is_worth_it(1));
    }
}
