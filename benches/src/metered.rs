//! A pool with a meter: how long dispatches take, and how much of that is the work itself.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rowpar::{Part, RowPool};

/// Another pool, whose dispatches are timed: as a whole on the calling thread, and call by call on whoever runs them.
///
/// That costs two readings of the clock and an addition for every call: what is measured through it shows where time goes, and is
/// no measure of speed.
///
/// ```
/// use benches::metered::Metered;
/// use rowpar::{RowPool, Serial};
///
/// let pool = Metered::new(&Serial);
/// pool.for_each_range(100, 1, &|_| benches::work::spin_work(10_000));
/// let taken = pool.take();
/// assert_eq!(taken.n_dispatches, 1);
/// assert!(taken.overhead(1) < taken.whole);
/// assert_eq!(pool.take().n_dispatches, 0);
/// ```
#[expect(missing_debug_implementations, reason = "a pool need not be `Debug`")]
pub struct Metered<'p> {
    pool: &'p dyn RowPool,
    n_dispatches: AtomicU64,
    whole_ns: AtomicU64,
    work_ns: AtomicU64,
}

/// What dispatches have taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How many there were.
    pub n_dispatches: u64,
    /// From call to return, on the calling thread.
    pub whole: Duration,
    /// In the calls over ranges of rows, summed over all threads.
    pub work: Duration,
}

impl Taken {
    /// What the dispatches took longer than the work would have, evenly shared by so many participants: handing out, waking,
    /// waiting for the last one. Work that was cut unevenly counts here, too: nothing tells a participant that waits from one
    /// that has not been woken.
    pub fn overhead(&self, participants: usize) -> Duration {
        self.whole.saturating_sub(self.work / u32::try_from(participants).unwrap_or(u32::MAX))
    }
}

impl<'p> Metered<'p> {
    /// Nothing taken so far.
    pub fn new(pool: &'p dyn RowPool) -> Self {
        let zero = || AtomicU64::new(0);
        Self { pool, n_dispatches: zero(), whole_ns: zero(), work_ns: zero() }
    }

    /// What was taken since the last time. For whoever dispatches: a dispatch on its way counts in parts.
    pub fn take(&self) -> Taken {
        let time = |counter: &AtomicU64| Duration::from_nanos(counter.swap(0, Ordering::Relaxed));
        Taken {
            n_dispatches: self.n_dispatches.swap(0, Ordering::Relaxed),
            whole: time(&self.whole_ns),
            work: time(&self.work_ns),
        }
    }

    /// Relaxed is enough for all counters: a dispatch returns after its calls, so the caller sees what they have added.
    fn dispatch(&self, run: impl FnOnce()) {
        self.n_dispatches.fetch_add(1, Ordering::Relaxed);
        timed(&self.whole_ns, run);
    }
}

fn timed(counter: &AtomicU64, run: impl FnOnce()) {
    let start = Instant::now();
    run();
    let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    counter.fetch_add(ns, Ordering::Relaxed);
}

// SAFETY: every call goes to a pool that keeps the contract, with the same rows and grain, and what that pool calls calls `f` once
// with the range that it was given.
unsafe impl RowPool for Metered<'_> {
    fn participants(&self) -> usize {
        self.pool.participants()
    }

    fn parallel_bytes(&self) -> usize {
        self.pool.parallel_bytes()
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        let f = |rows| timed(&self.work_ns, || f(rows));
        self.dispatch(|| self.pool.for_each_range(rows, grain, &f));
    }

    fn for_each_range_many(&self, grain: usize, parts: &[Part<'_>]) {
        let run = |f: &'_ (dyn Fn(Range<usize>) + Sync), rows| timed(&self.work_ns, || f(rows));
        let timed: Vec<_> =
            parts.iter().map(|&(rows, f)| (rows, move |range| run(f, range))).collect();
        let parts: Vec<Part<'_>> = timed.iter().map(|(rows, f)| (*rows, f as _)).collect();
        self.dispatch(|| self.pool.for_each_range_many(grain, &parts));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rowpar::Serial;

    use super::*;

    #[test]
    fn the_pool_behind_it_runs_each_part_with_its_own_rows() {
        let seen = Mutex::new(Vec::new());
        let note = |part: usize| {
            let seen = &seen;
            move |rows: Range<usize>| seen.lock().unwrap().push((part, rows))
        };
        let (first, second) = (note(1), note(2));
        let pool = Metered::new(&Serial);
        pool.for_each_range_many(4, &[(9, &first), (5, &second)]);
        pool.for_each_range(3, 1, &first);
        assert_eq!(*seen.lock().unwrap(), [(1, 0..9), (2, 0..5), (1, 0..3)]);
        assert_eq!(pool.take().n_dispatches, 2);
        assert_eq!((pool.participants(), pool.parallel_bytes()), (1, Serial.parallel_bytes()));
    }

    #[test]
    fn overhead_is_what_an_even_share_of_the_work_leaves() {
        let time = Duration::from_micros;
        let taken = Taken { n_dispatches: 1, whole: time(70), work: time(120) };
        assert_eq!(taken.overhead(2), time(10));
        assert_eq!(taken.overhead(1), time(0), "two threads that were not told of");
    }
}
