//! Waiting: spin for a budget, then block. How a worker blocks is its own protocol, in `worker.rs`; a caller waits at a gate.
#![forbid(unsafe_code)]

use std::sync::PoisonError;

use crate::sync::{Condvar, Mutex, available_parallelism, spin_loop, thread};

/// How long a waiter watches a word before it parks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpinPolicy {
    budget: u32,
    /// There are more participants than CPUs: whom we wait for may need the CPU that we spin on.
    yields: bool,
}

/// Turns that are worth it where each one gives the CPU away. libgomp's throttled spin count is the same.
const YIELDING_BUDGET: u32 = 100;

impl SpinPolicy {
    pub(crate) fn new(budget: u32, participants: usize) -> Self {
        let yields = participants > available_parallelism();
        Self { budget: if yields { budget.min(YIELDING_BUDGET) } else { budget }, yields }
    }

    /// Whether `ready` came true before the budget was spent. Asks at least once.
    #[inline]
    pub(crate) fn until(self, mut ready: impl FnMut() -> bool) -> bool {
        for _ in 0..self.budget {
            if ready() {
                return true;
            }
            if self.yields { thread::yield_now() } else { spin_loop() }
        }
        ready()
    }
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

    fn turns(policy: SpinPolicy, ready_at: u32) -> (bool, u32) {
        let mut asked = 0;
        let ready = policy.until(|| {
            asked += 1;
            asked > ready_at
        });
        (ready, asked)
    }

    #[test]
    fn the_budget_bounds_the_turns() {
        for yields in [false, true] {
            assert_eq!(turns(SpinPolicy { budget: 0, yields }, 0), (true, 1));
            assert_eq!(turns(SpinPolicy { budget: 0, yields }, 9), (false, 1));
            assert_eq!(turns(SpinPolicy { budget: 5, yields }, 5), (true, 6));
            assert_eq!(turns(SpinPolicy { budget: 5, yields }, 9), (false, 6));
        }
    }

    #[test]
    fn more_participants_than_cpus_yield_and_give_up_early() {
        let policy = SpinPolicy::new(u32::MAX, usize::MAX);
        assert_eq!(policy, SpinPolicy { budget: YIELDING_BUDGET, yields: true });
        assert_eq!(SpinPolicy::new(7, 1), SpinPolicy { budget: 7, yields: false });
    }
}
