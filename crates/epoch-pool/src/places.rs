//! Where the threads of a pool are, as far as they must know to keep out of each other's way: how many CPUs they have together,
//! and which of them each is on.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use crate::dispatch::CALLER;
use crate::sync::{Counter, available_parallelism};
use crate::sys::{cpus_of, current_cpu, thread_id};

/// The threads of one pool, the caller's place first.
#[derive(Debug)]
pub(crate) struct Places {
    threads: Box<[CachePadded<Place>]>,
    /// CPUs of the quota, as far as a thread with more CPUs has seen it; 0 if there is none.
    quota: Counter,
}

/// Written by its own thread, and only when something changes, so that the line stays shared.
#[derive(Debug, Default)]
struct Place {
    /// The worker's thread id; 0 before it has registered, and for callers.
    thread: Counter,
    /// The CPU that the thread was seen on last, plus one; 0 if that is unknown, or the thread is parked.
    cpu: Counter,
}

impl Places {
    pub(crate) fn new(participants: usize) -> Self {
        let threads = (0..participants).map(|_| CachePadded::default()).collect();
        Self { threads, quota: Counter::default() }
    }

    /// This thread is that worker.
    pub(crate) fn register(&self, worker: usize) {
        self.threads[worker].thread.set(thread_id());
    }

    /// This thread is that participant and runs.
    #[inline]
    pub(crate) fn note(&self, participant: usize) {
        self.set(participant, current_cpu());
    }

    /// This worker is about to park.
    pub(crate) fn forget(&self, worker: usize) {
        self.set(worker, None);
    }

    #[inline]
    fn set(&self, participant: usize, cpu: Option<u32>) {
        let (place, cpu) =
            (&self.threads[participant].cpu, cpu.map_or(0, |cpu| u64::from(cpu) + 1));
        if cpu != place.get() {
            place.set(cpu);
        }
    }

    fn cpu(&self, participant: usize) -> Option<u32> {
        self.threads[participant].cpu.get().checked_sub(1).map(|cpu| cpu as u32)
    }

    /// The CPUs that other participants were seen on last.
    pub(crate) fn of_others(&self, me: usize) -> impl Iterator<Item = u32> {
        let others = (0..self.threads.len()).filter(move |participant| *participant != me);
        others.filter_map(|participant| self.cpu(participant))
    }

    /// The CPU that this worker is on, if the caller or an earlier worker was seen there last.
    pub(crate) fn shared_cpu(&self, worker: usize) -> Option<u32> {
        current_cpu().filter(|here| (0..worker).any(|other| self.cpu(other) == Some(*here)))
    }

    /// How many threads of the pool can run at once, by the masks of all of them and the quota.
    ///
    /// The standard library counts for the calling thread alone: the CPUs of its mask, or of the quota if those are fewer. A
    /// thread that is pinned to one CPU sees no quota, so the last one seen by another is kept.
    pub(crate) fn parallelism(&self) -> usize {
        let here = available_parallelism();
        let threads =
            self.threads.iter().map(|place| place.thread.get()).filter(|thread| *thread != 0);
        let all = cpus_of(threads.chain([thread_id()]), self.cpu(CALLER));
        let own = cpus_of([thread_id()].into_iter(), None);
        match (all, own) {
            (Some(all), Some(own)) if own > 0 => all.min(self.quota(here, own)).max(1),
            _ => here, // the operating system does not say
        }
    }

    /// The quota, when a thread with `own` CPUs is told that `here` can run at once.
    fn quota(&self, here: usize, own: usize) -> usize {
        let known = self.quota.get() as usize;
        if here < own {
            self.quota.set(here as u64);
        } else if own > known {
            self.quota.set(0); // it would show
        }
        match self.quota.get() {
            0 => usize::MAX,
            quota => quota as usize,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_that_nobody_has_moved_have_what_the_standard_library_says() {
        let places = Places::new(3);
        assert_eq!(places.of_others(1).count(), 0);
        assert_eq!(places.parallelism(), available_parallelism());
        std::thread::scope(|scope| {
            for worker in 1..3 {
                let places = &places;
                scope.spawn(move || {
                    places.register(worker);
                    places.note(worker);
                });
            }
        });
        let known = if current_cpu().is_some() { 2 } else { 0 };
        assert_eq!(places.of_others(CALLER).count(), known);
        places.forget(1);
        assert_eq!(places.of_others(CALLER).count(), known / 2);
        // The threads have ended; this one is one of ours.
        places.note(CALLER);
        assert_eq!(places.parallelism(), available_parallelism());
    }

    /// What a thread is told, and has; the quota that follows.
    #[test]
    fn a_quota_is_kept_where_it_does_not_show() {
        let places = Places::new(2);
        let cases = [
            (8, 8, usize::MAX),
            (2, 8, 2),
            (1, 1, 2), // pinned: it would be the same without a quota
            (2, 2, 2),
            (3, 8, 3),
            (8, 8, usize::MAX),
            (1, 1, usize::MAX),
        ];
        for (here, own, expected) in cases {
            assert_eq!(places.quota(here, own), expected, "{here} of {own}");
        }
    }

    /// Whatever CPU this thread is on, and moves to: one of the others is said to be on each.
    #[test]
    fn a_shared_cpu_is_the_later_workers_matter() {
        let Some(here) = current_cpu() else { return };
        let places = Places::new(4098);
        for participant in 1..4097 {
            places.set(participant, Some(participant as u32 - 1));
        }
        assert!(places.shared_cpu(4097).is_some(), "{here}");
        assert_eq!(places.shared_cpu(1), None, "the caller was not seen anywhere");
        for participant in 1..4097 {
            places.forget(participant);
        }
        assert_eq!(places.shared_cpu(4097), None);
    }
}
