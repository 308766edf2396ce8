//! Where the threads of a pool are, as far as it must know to keep out of their way: how many CPUs they have together, and which
//! of them the caller is on.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use crate::sync::{Counter, available_parallelism};
use crate::sys::{cpus_of, current_cpu, thread_id};

/// The threads of one pool.
#[derive(Debug)]
pub(crate) struct Places {
    /// The workers' thread ids; 0 before a worker has registered.
    workers: Box<[Counter]>,
    /// The CPU of the last dispatch, plus one; 0 if that is unknown. Written when it changes, so the line stays shared.
    caller: CachePadded<Counter>,
}

impl Places {
    pub(crate) fn new(participants: usize) -> Self {
        Self {
            workers: (1..participants).map(|_| Counter::default()).collect(),
            caller: CachePadded::default(),
        }
    }

    /// This thread is that worker.
    pub(crate) fn register(&self, worker: usize) {
        self.workers[worker - 1].set(thread_id());
    }

    /// This thread dispatches.
    #[inline]
    pub(crate) fn note_caller(&self) {
        let cpu = current_cpu().map_or(0, |cpu| u64::from(cpu) + 1);
        if cpu != self.caller.get() {
            self.caller.set(cpu);
        }
    }

    /// The CPU of the last dispatch.
    pub(crate) fn caller_cpu(&self) -> Option<u32> {
        self.caller.get().checked_sub(1).map(|cpu| cpu as u32)
    }

    /// How many threads of the pool can run at once, by the masks of all of them and the quota.
    ///
    /// The standard library counts for the calling thread alone, which is right for the quota, and wrong for workers that are
    /// pinned to a CPU each. On a pinned thread it does not see a quota of more than that.
    pub(crate) fn parallelism(&self) -> usize {
        let here = available_parallelism();
        let threads = self.workers.iter().map(Counter::get).filter(|thread| *thread != 0);
        let all = cpus_of(threads.chain([thread_id()]), self.caller_cpu());
        let own = cpus_of([thread_id()].into_iter(), None);
        match (all, own) {
            (Some(all), Some(own)) if here >= own => all.max(1),
            (Some(all), _) => here.min(all.max(1)), // less than the mask has: that is the quota
            _ => here,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_that_nobody_has_moved_have_what_the_standard_library_says() {
        let places = Places::new(3);
        assert_eq!(places.caller_cpu(), None);
        assert_eq!(places.parallelism(), available_parallelism());
        std::thread::scope(|scope| {
            for worker in 1..3 {
                let places = &places;
                scope.spawn(move || {
                    places.register(worker);
                    places.note_caller();
                });
            }
        });
        assert_eq!(places.caller_cpu().is_some(), current_cpu().is_some());
        // The threads have ended; the CPU of the caller is one of ours.
        assert_eq!(places.parallelism(), available_parallelism());
    }
}
