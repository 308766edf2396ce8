//! Waiting: spin for a budget, then block. How a worker blocks is its own protocol, in `worker.rs`; a caller waits at a gate.
#![forbid(unsafe_code)]

use std::sync::{OnceLock, PoisonError};

use crate::sync::{Condvar, Mutex, available_parallelism, spin_loop, thread, time_spin_hints};

/// How long a waiter watches a word before it blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpinPolicy {
    /// Looks at the word, each followed by a spin hint.
    looks: u32,
    /// After this many looks the CPU is offered to whoever waits for it. With more participants than CPUs that is every time.
    looks_per_yield: u32,
}

/// Spin turns after which the CPU is offered, about 2 µs. Whom we wait for may be runnable on this very CPU: a worker that has
/// just been woken, or the caller that a worker has displaced. Without the offer each would spin its whole budget first.
const TURNS_PER_YIELD: u32 = 64;

/// Turns that are worth it where each one gives the CPU away. libgomp's throttled spin count is the same.
const YIELDING_BUDGET: u32 = 100;

impl SpinPolicy {
    /// A policy that spends `turns` turns of [`looks_per_turn`], in a pool of so many participants.
    pub(crate) fn new(turns: u32, participants: usize) -> Self {
        if participants > available_parallelism() {
            return Self { looks: turns.min(YIELDING_BUDGET), looks_per_yield: 1 };
        }
        if participants == 1 || turns == 0 {
            return Self { looks: 0, looks_per_yield: 1 }; // nobody to wait for, or no waiting
        }
        let looks = looks_per_turn();
        Self { looks: turns.saturating_mul(looks), looks_per_yield: TURNS_PER_YIELD * looks }
    }

    /// Whether `ready` came true before the budget was spent. Asks at least once.
    #[inline]
    pub(crate) fn until(self, mut ready: impl FnMut() -> bool) -> bool {
        for look in 1..=self.looks {
            if ready() {
                return true;
            }
            if look.is_multiple_of(self.looks_per_yield) {
                thread::yield_now()
            } else {
                spin_loop()
            }
        }
        ready()
    }
}

/// Spin hints in a turn of about 40 ns, so that a budget means the same time on all machines: `pause` takes 140 cycles on some
/// x86-64 CPUs and 40 or fewer on others, and the hint of other architectures may take one.
fn looks_per_turn() -> u32 {
    static LOOKS: OnceLock<u32> = OnceLock::new();
    const TURN_NS: u128 = 40;
    const SAMPLE: u32 = 256;
    *LOOKS.get_or_init(|| {
        // The fastest: interruptions only ever add time.
        let fastest = (0..8).map(|_| time_spin_hints(SAMPLE).as_nanos()).min().unwrap_or(0).max(1);
        let looks = u128::from(SAMPLE) * TURN_NS / fastest;
        looks.clamp(1, 64) as u32
    })
}

/// Where a caller blocks whose workers still run. Not its thread's park token: that may be in use by whoever called us.
#[derive(Debug)]
pub(crate) struct Gate {
    lock: Mutex<()>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { lock: Mutex::new(()), opened: Condvar::new() }
    }

    /// Blocks until `ready`. It must have come true before [`Gate::open`] is called for it.
    pub(crate) fn wait_until(&self, ready: impl Fn() -> bool) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !ready() {
            guard = self.opened.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the waiter look again. Passing through the lock, we know that it is not between its look and its wait.
    pub(crate) fn open(&self) {
        drop(self.lock.lock());
        self.opened.notify_one();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn looks(policy: SpinPolicy, ready_at: u32) -> (bool, u32) {
        let mut asked = 0;
        let ready = policy.until(|| {
            asked += 1;
            asked > ready_at
        });
        (ready, asked)
    }

    #[test]
    fn the_budget_bounds_the_looks() {
        for looks_per_yield in [1, 2, 64] {
            let policy = |looks| SpinPolicy { looks, looks_per_yield };
            assert_eq!(looks(policy(0), 0), (true, 1));
            assert_eq!(looks(policy(0), 9), (false, 1));
            assert_eq!(looks(policy(5), 5), (true, 6));
            assert_eq!(looks(policy(5), 9), (false, 6));
        }
    }

    #[test]
    fn more_participants_than_cpus_yield_and_give_up_early() {
        let policy = SpinPolicy::new(u32::MAX, usize::MAX);
        assert_eq!(policy, SpinPolicy { looks: YIELDING_BUDGET, looks_per_yield: 1 });
    }

    #[test]
    fn a_turn_has_a_few_looks() {
        let looks = looks_per_turn();
        assert!((1..=64).contains(&looks));
        if available_parallelism() > 1 {
            let policy = SpinPolicy::new(7, 2);
            assert_eq!(policy, SpinPolicy { looks: 7 * looks, looks_per_yield: 64 * looks });
            assert_eq!(SpinPolicy::new(u32::MAX, 2).looks, u32::MAX.saturating_mul(looks));
        }
        assert_eq!(SpinPolicy::new(u32::MAX, 1).looks, 0);
    }
}
