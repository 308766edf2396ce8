//! Waiting: watch a word for a budget of time, and offer the CPU meanwhile.
#![forbid(unsafe_code)]

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use crate::sync::{Counter, now_ns, spin_loop, thread, time_spin_hints};

/// How many threads can run at once, for who asks.
pub(crate) type Parallelism = dyn Fn() -> usize + Send + Sync;

/// Spin turns after which the CPU is offered, about 2 µs. Whom it waits for may be runnable on this very CPU: a
/// worker that has just been woken, or the caller that a worker has displaced. Without the offer each would spin its whole budget
/// first.
const TURNS_PER_YIELD: u64 = 64;

/// Turns that are worth it where each one gives the CPU away. libgomp's throttled spin count is the same.
const YIELDING_BUDGET: u64 = 100;

/// A turn is so long, so that a budget in turns means the same time on all machines.
const TURN_NS: u64 = 40;

/// How long a worker stays awake in a hot phase without any work, in nanoseconds: a phase may be forgotten, or its caller blocked.
pub(crate) const HOT_NS: u64 = if cfg!(all(test, loom)) { 0 } else { 100_000_000 };

/// About what a look takes where each one gives the CPU away, if nobody takes it.
const YIELD_NS: u64 = 500;

/// The number of CPUs is asked for at most once in so many nanoseconds: it takes some 30 µs on Linux, where the quota is in files.
const CPUS_EVERY_NS: u64 = 50_000_000;

/// How long a waiter watches a word before it blocks.
pub(crate) struct Spin {
    /// Turns before a waiter blocks.
    turns: u64,
    looks_per_turn: u64,
    participants: usize,
    parallelism: Box<Parallelism>,
    /// CPUs at the last count; fewer than participants turn spinning into yielding.
    cpus: Counter,
    /// How often they have been counted since.
    counts: Counter,
    /// When the next count is due.
    next_count_ns: Counter,
}

impl fmt::Debug for Spin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spin")
            .field("turns", &self.turns)
            .field("participants", &self.participants)
            .field("cpus", &self.cpus)
            .finish_non_exhaustive()
    }
}

impl Spin {
    /// A policy that spends `turns`, in a pool of so many participants.
    pub(crate) fn new(turns: u64, participants: usize, parallelism: Box<Parallelism>) -> Self {
        let cpus = Counter::default();
        cpus.set(parallelism() as u64);
        // Where there is nobody to wait for, there may be no clock.
        let looks_per_turn = if participants > 1 { looks_per_turn() } else { 1 };
        Self {
            turns,
            looks_per_turn,
            participants,
            parallelism,
            cpus,
            counts: Counter::default(),
            next_count_ns: Counter::default(),
        }
    }

    pub(crate) fn is_oversubscribed(&self) -> bool {
        self.participants as u64 > self.cpus.get()
    }

    /// Looks that a waiter has before it blocks.
    pub(crate) fn budget(&self) -> u64 {
        if self.is_oversubscribed() {
            self.turns.min(YIELDING_BUDGET)
        } else if self.participants == 1 {
            0 // nobody to wait for
        } else {
            self.turns.saturating_mul(self.looks_per_turn)
        }
    }

    /// How long a worker stays awake without work, in nanoseconds.
    pub(crate) fn awake_ns(&self) -> u64 {
        if self.is_oversubscribed() {
            self.turns.min(YIELDING_BUDGET) * YIELD_NS
        } else {
            self.turns.saturating_mul(TURN_NS)
        }
    }

    /// Looks before the CPU is offered: always, where there are more participants than CPUs.
    fn looks_per_yield(&self) -> u64 {
        if self.is_oversubscribed() { 1 } else { TURNS_PER_YIELD * self.looks_per_turn }
    }

    /// Whether `ready` came true before the budget was spent. Looks at least once. `budget`, in looks, is asked for again after
    /// each offer of the CPU.
    #[inline]
    pub(crate) fn until(
        &self,
        mut ready: impl FnMut() -> bool,
        mut budget: impl FnMut() -> u64,
    ) -> bool {
        if ready() {
            return true;
        }
        let mut spent = 1; // looks
        loop {
            let left = budget().saturating_sub(spent);
            if left == 0 {
                return false;
            }
            let looks = left.min(self.looks_per_yield());
            for _ in 0..looks {
                spin_loop();
                if ready() {
                    return true;
                }
            }
            spent += looks;
            thread::yield_now();
        }
    }

    /// Counts the CPUs anew, as the threads of the pool are all there now.
    pub(crate) fn count_cpus_now(&self) {
        self.cpus.set((self.parallelism)() as u64);
    }

    /// Counts the CPUs again, if that is due. For a waiter that has nothing better to do.
    pub(crate) fn count_cpus(&self) {
        let due = self.next_count_ns.get();
        let now = now_ns();
        // One of the waiters does it.
        if now >= due && self.next_count_ns.replace(due, now.saturating_add(CPUS_EVERY_NS)) {
            self.counts.add(1);
            self.cpus.set((self.parallelism)() as u64);
        }
    }

    pub(crate) fn cpu_counts(&self) -> u64 {
        self.counts.get()
    }
}

/// The turns that fit into a time.
pub(crate) fn turns_in(time: Duration) -> u64 {
    u64::try_from(time.as_nanos() / u128::from(TURN_NS)).unwrap_or(u64::MAX)
}

/// Spin hints in a turn, measured once per process: `pause` takes 140 cycles on some x86-64 CPUs and 40 or fewer on others, and
/// the hint of other architectures may take one.
fn looks_per_turn() -> u64 {
    static LOOKS: OnceLock<u64> = OnceLock::new();
    const SAMPLE: u32 = 256;
    if cfg!(all(test, loom)) {
        return 1; // a model runs the same way wherever it runs
    }
    *LOOKS.get_or_init(|| {
        // The fastest: interruptions only ever add time.
        let fastest = (0..8).map(|_| time_spin_hints(SAMPLE).as_nanos() as u64).min();
        (u64::from(SAMPLE) * TURN_NS / fastest.unwrap_or(1).max(1)).clamp(1, 64)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn spin(turns: u64, participants: usize, cpus: usize) -> Spin {
        Spin::new(turns, participants, Box::new(move || cpus))
    }

    /// Whether it came true, and how often it was asked.
    fn looks(spin: &Spin, budget: u64, ready_at: u64) -> (bool, u64) {
        let mut asked = 0;
        let ready = || {
            asked += 1;
            asked > ready_at
        };
        (spin.until(ready, || budget), asked)
    }

    #[test]
    fn the_budget_bounds_the_looks() {
        for cpus in [1, 2] {
            let spin = spin(4000, 2, cpus);
            for (budget, ready_at, expected) in [
                (0, 0, (true, 1)),
                (0, 9, (false, 1)),
                (5, 4, (true, 5)),
                (5, 9, (false, 5)),
                (1000, 900, (true, 901)),
            ] {
                assert_eq!(looks(&spin, budget, ready_at), expected, "{cpus} {budget} {ready_at}");
            }
        }
    }

    #[test]
    fn a_budget_that_changes_counts_when_the_cpu_is_offered() {
        let spin = spin(4000, 2, 2);
        let mut budgets = [u64::MAX, u64::MAX, 0].into_iter();
        let mut asked = 0;
        let ready = || {
            asked += 1;
            false
        };
        assert!(!spin.until(ready, || budgets.next().unwrap()));
        assert_eq!(asked, 1 + 2 * spin.looks_per_yield());
    }

    #[test]
    fn budgets_are_turns_and_end_early_where_cpus_are_few() {
        let looks = looks_per_turn();
        assert!((1..=64).contains(&looks));
        let budgets = |turns, participants, cpus| {
            let spin = spin(turns, participants, cpus);
            (spin.budget(), spin.looks_per_yield(), spin.is_oversubscribed())
        };
        let per_yield = 64 * looks;
        assert_eq!(budgets(7, 2, 2), (7 * looks, per_yield, false));
        assert_eq!(budgets(0, 2, 2), (0, per_yield, false));
        assert_eq!(budgets(u64::MAX, 2, 2), (u64::MAX, per_yield, false));
        assert_eq!(budgets(u64::MAX, 3, 2), (YIELDING_BUDGET, 1, true));
        assert_eq!(budgets(0, 3, 2), (0, 1, true));
        assert_eq!(budgets(7, 1, 1).0, 0);
    }

    #[test]
    fn who_yields_stays_awake_for_as_long_as_that_takes() {
        assert_eq!(spin(4000, 2, 2).awake_ns(), 160_000);
        assert_eq!(spin(u64::MAX, 2, 2).awake_ns(), u64::MAX);
        assert_eq!(spin(u64::MAX, 3, 2).awake_ns(), 50_000);
        assert_eq!(spin(0, 3, 2).awake_ns(), 0);
    }

    #[test]
    fn times_are_turns() {
        assert_eq!(turns_in(Duration::ZERO), 0);
        assert_eq!(turns_in(Duration::from_micros(160)), 4000);
        assert_eq!(turns_in(Duration::MAX), u64::MAX);
    }

    /// CPUs that go away and come back are found out, but not at every look.
    #[test]
    fn the_cpus_are_counted_again_when_it_is_due() {
        let cpus = Arc::new(AtomicUsize::new(2));
        let asked = Arc::new(AtomicUsize::new(0));
        let parallelism = {
            let (cpus, asked) = (cpus.clone(), asked.clone());
            move || {
                asked.fetch_add(1, Ordering::Relaxed);
                cpus.load(Ordering::Relaxed)
            }
        };
        let spin = Spin::new(4000, 2, Box::new(parallelism));
        for (n, oversubscribed) in [(1, true), (2, false), (1, true)] {
            cpus.store(n, Ordering::Relaxed);
            spin.next_count_ns.set(0); // due
            spin.count_cpus();
            assert_eq!(spin.is_oversubscribed(), oversubscribed);
        }
        let before = asked.load(Ordering::Relaxed);
        spin.next_count_ns.set(u64::MAX - 1); // not due for long
        (0..1000).for_each(|_| spin.count_cpus());
        assert_eq!(asked.load(Ordering::Relaxed), before);
    }
}
