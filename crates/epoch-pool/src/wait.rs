//! Spin for a budget. What comes after it, parking, is the waiter's own protocol.
#![forbid(unsafe_code)]

use crate::sync::{available_parallelism, spin_loop, thread};

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
