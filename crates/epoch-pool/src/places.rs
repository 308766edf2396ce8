//! Where the threads of a pool are, as far as they must know to keep out of each other's way: how many CPUs they have together,
//! and which of them each is on.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use crate::dispatch::CALLER;
use crate::sync::{Counter, available_parallelism};
use crate::sys::{cpus_of, current_cpu, thread_id};

/// The threads of one pool, the caller's place first.
#[derive(Debug)]
pub(crate) struct Places(Box<[CachePadded<Place>]>);

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
        Self((0..participants).map(|_| CachePadded::default()).collect())
    }

    /// This thread is that worker.
    pub(crate) fn register(&self, worker: usize) {
        self.0[worker].thread.set(thread_id());
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
        let (place, cpu) = (&self.0[participant].cpu, cpu.map_or(0, |cpu| u64::from(cpu) + 1));
        if cpu != place.get() {
            place.set(cpu);
        }
    }

    fn cpu(&self, participant: usize) -> Option<u32> {
        self.0[participant].cpu.get().checked_sub(1).map(|cpu| cpu as u32)
    }

    /// The CPUs that other participants were seen on last.
    pub(crate) fn of_others(&self, me: usize) -> impl Iterator<Item = u32> {
        let others = (0..self.0.len()).filter(move |participant| *participant != me);
        others.filter_map(|participant| self.cpu(participant))
    }

    /// The CPU that this worker is on, if the caller or an earlier worker was seen there last.
    pub(crate) fn shared_cpu(&self, worker: usize) -> Option<u32> {
        current_cpu().filter(|here| (0..worker).any(|other| self.cpu(other) == Some(*here)))
    }

    /// How many threads of the pool can run at once, by the masks of all of them and the quota.
    ///
    /// The standard library counts for the calling thread alone, which is right for the quota, and wrong for workers that are
    /// pinned to a CPU each. On a pinned thread it does not see a quota of more than that.
    pub(crate) fn parallelism(&self) -> usize {
        let here = available_parallelism();
        let threads = self.0.iter().map(|place| place.thread.get()).filter(|thread| *thread != 0);
        let all = cpus_of(threads.chain([thread_id()]), self.cpu(CALLER));
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
