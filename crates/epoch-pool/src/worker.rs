//! The life of a worker: wait for a home range, work, until it is told to stop.
#![forbid(unsafe_code)]

use crate::dispatch::Shared;
use crate::home::{Found, Home};
use crate::hot::Reading;
use crate::places::Unknown;
use crate::sync::{Ordering, become_worker_of, fence, now_ns, thread};
use crate::sys::{current_cpu, leave};
use crate::wait::Waiter;

/// Offers of the CPU between two looks at whether its CPUs are to be counted: about half a millisecond.
const OFFERS_PER_COUNT: u32 = 200;

/// Offers in a row on a CPU that another participant was seen on, before a worker moves: that one may be gone by then.
const OFFERS_PER_MOVE: u32 = 4;

/// A worker moves at most once in so many nanoseconds.
const MOVES_EVERY_NS: u64 = 10_000_000;

/// Runs worker `me` until [`Home::stop`].
pub(crate) fn work(shared: &Shared, me: usize) {
    become_worker_of(shared.address());
    shared.places.register(me);
    let mut worker = Worker::new(shared, me);
    while worker.wait_for_chunks() {
        shared.participate(me);
    }
}

/// What a worker remembers between two jobs.
struct Worker<'a> {
    shared: &'a Shared,
    me: usize,
    home: &'a Home,
    /// The heat when it last stayed awake or parked on account of it.
    heat: Reading,
    offers: u32,
    /// Offers in a row that found another participant on this CPU.
    crowded: u32,
    next_move_ns: u64,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared, me: usize) -> Self {
        Self {
            shared,
            me,
            home: shared.home(me),
            heat: shared.heat.read(),
            offers: 0,
            crowded: 0,
            next_move_ns: 0,
        }
    }

    /// W1 to W3 of `dispatch.rs`. `false`: the worker is to end.
    fn wait_for_chunks(&mut self) -> bool {
        let (shared, home) = (self.shared, self.home);
        if !shared.spin.until(|| home.look() != Found::Nothing, self) {
            shared.spin.count_cpus();
            self.park();
        }
        home.look() != Found::Stop
    }

    /// W2, W3. Parks once: whoever is woken is needed, so if others have taken its chunks by now it may take some of theirs.
    fn park(&mut self) {
        let (shared, home) = (self.shared, self.home);
        home.set_asleep(true);
        fence(Ordering::SeqCst);
        // Whatever has changed since the budget was found to be spent is a reason to think again.
        if home.look() == Found::Nothing && shared.heat.read() == self.heat {
            shared.counters.parked(self.me);
            shared.places.forget(self.me);
            thread::park();
        }
        home.set_asleep(false);
    }

    /// Gives way to whoever else of the pool is on this CPU, by moving or, if that is not due, by yielding. `true`: yield.
    fn is_to_give_way(&mut self, other: usize) -> bool {
        self.crowded += 1;
        // Of two workers the one that was spawned later moves. The caller never does.
        let is_mine_to_move = self.shared.keep_apart && other < self.me;
        if !is_mine_to_move || self.crowded < OFFERS_PER_MOVE || now_ns() < self.next_move_ns {
            return true;
        }
        let taken = self.shared.places.others(self.me).map(|(_, cpu)| cpu);
        let has_moved = current_cpu().is_some_and(|here| leave(here, taken));
        self.next_move_ns = now_ns() + MOVES_EVERY_NS;
        self.crowded = 0;
        if has_moved {
            self.shared.counters.moved(self.me);
            self.shared.places.note(self.me);
        }
        !has_moved
    }
}

impl Waiter for Worker<'_> {
    fn budget(&mut self) -> u64 {
        let spin = &self.shared.spin;
        let heat = self.shared.heat.read();
        let has_cooled = heat.has_ended_since(self.heat);
        self.heat = heat;
        if heat.is_hot() {
            spin.hot_budget()
        } else if has_cooled {
            0
        } else {
            spin.budget()
        }
    }

    /// If another participant may be waiting for this CPU, and not for strangers: they have the time slices of the scheduler.
    fn is_to_yield(&mut self) -> bool {
        let Shared { spin, places, .. } = self.shared;
        places.note(self.me);
        self.offers += 1;
        if self.offers.is_multiple_of(OFFERS_PER_COUNT) {
            spin.count_cpus();
        }
        if spin.is_oversubscribed() {
            return true;
        }
        match places.who_is_here(self.me) {
            Ok(Some(other)) => self.is_to_give_way(other),
            Ok(None) => {
                self.crowded = 0;
                false
            }
            Err(Unknown) => true,
        }
    }
}
