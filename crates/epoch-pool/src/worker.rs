//! The life of a worker: wait for a home range, work, until it is told to stop.
#![forbid(unsafe_code)]

use crate::dispatch::Shared;
use crate::home::{Found, Home};
use crate::hot::Reading;
use crate::sync::{Ordering, become_worker_of, fence, now_ns, thread};
use crate::sys::leave;
use crate::wait::HOT_NS;

/// Offers of the CPU between two looks at whether its CPUs are to be counted: about half a millisecond.
const OFFERS_PER_COUNT: u32 = 200;

/// Offers in a row on a CPU that another participant was seen on, before a worker moves: that one may have gone by itself.
const OFFERS_PER_MOVE: u32 = 4;

/// A worker moves at most once in so many nanoseconds.
const MOVES_EVERY_NS: u64 = 10_000_000;

/// Runs worker `me` until [`Home::stop`].
pub(crate) fn work(shared: &Shared, me: usize) {
    become_worker_of(shared.address());
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
    /// Until when a hot phase keeps it awake in this wait.
    hot_until_ns: Option<u64>,
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
            hot_until_ns: None,
            crowded: 0,
            next_move_ns: 0,
        }
    }

    /// W1 to W3 of `dispatch.rs`. `false`: the worker is to end.
    fn wait_for_chunks(&mut self) -> bool {
        let (shared, home) = (self.shared, self.home);
        self.hot_until_ns = None;
        if !shared.spin.until(|| home.look() != Found::Nothing, || self.budget()) {
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

    /// Looks that it has in this wait. Asked before it waits, and after each offer of its CPU.
    fn budget(&mut self) -> u64 {
        let Shared { spin, heat, presence, .. } = self.shared;
        presence.show();
        self.offers += 1;
        if self.offers.is_multiple_of(OFFERS_PER_COUNT) {
            spin.count_cpus();
        }
        if self.shared.keep_apart && !spin.is_oversubscribed() {
            self.keep_apart();
        }
        let heat = heat.read();
        let has_cooled = heat.has_ended_since(self.heat);
        self.heat = heat;
        if heat.is_hot() && !spin.is_oversubscribed() && self.is_kept_awake() {
            u64::MAX
        } else if has_cooled && !heat.is_hot() {
            0
        } else {
            spin.budget()
        }
    }

    /// Whether it has not waited in a hot phase for too long.
    fn is_kept_awake(&mut self) -> bool {
        let now = now_ns();
        now < *self.hot_until_ns.get_or_insert(now.saturating_add(HOT_NS))
    }

    /// Moves to another CPU, if it has been on that of the caller or of an earlier worker for a while.
    fn keep_apart(&mut self) {
        let places = &self.shared.places;
        let Some(here) = places.shared_cpu(self.me) else {
            places.note(self.me);
            self.crowded = 0;
            return;
        };
        self.crowded += 1;
        if self.crowded >= OFFERS_PER_MOVE && now_ns() >= self.next_move_ns {
            self.crowded = 0;
            if leave(here, places.of_others(self.me)) {
                self.shared.counters.moved(self.me);
            }
            self.next_move_ns = now_ns() + MOVES_EVERY_NS;
        }
        places.note(self.me);
    }
}
