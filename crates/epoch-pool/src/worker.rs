//! The life of a worker: wait for a home range, work, until it is told to stop.
#![forbid(unsafe_code)]

use crate::dispatch::Shared;
use crate::home::{Found, Home};
use crate::hot::Reading;
use crate::sync::{Ordering, become_worker_of, fence, now_ns, thread};
use crate::sys::current_cpu;

/// Offers of the CPU between two looks at whether its CPUs are to be counted: about half a millisecond.
const OFFERS_PER_COUNT: u32 = 200;

/// A worker that shares a CPU with its caller moves on at most once in so many nanoseconds, as the wake-up costs the caller 20 µs.
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
            next_move_ns: 0,
        }
    }

    /// W1 to W3 of `dispatch.rs`. `false`: the worker is to end.
    fn wait_for_chunks(&mut self) -> bool {
        let (shared, home) = (self.shared, self.home);
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
            thread::park();
        }
        home.set_asleep(false);
    }

    /// Looks that it has in this wait. Asked whenever it offers its CPU.
    fn budget(&mut self) -> u64 {
        let spin = &self.shared.spin;
        self.offers += 1;
        if self.offers.is_multiple_of(OFFERS_PER_COUNT) {
            spin.count_cpus();
        }
        let heat = self.shared.heat.read();
        let has_cooled = heat.has_ended_since(self.heat);
        self.heat = heat;
        if self.is_to_move() {
            0
        } else if heat.is_hot() {
            spin.hot_budget()
        } else if has_cooled {
            0
        } else {
            spin.budget()
        }
    }

    /// Whether it is in its caller's way: on the same CPU, while there are enough for all. The scheduler sees no reason to part
    /// two threads that yield to each other, but looks for an idle CPU when it wakes one.
    fn is_to_move(&mut self) -> bool {
        let cpu = current_cpu();
        if cpu.is_none()
            || cpu != self.shared.places.caller_cpu()
            || self.shared.spin.is_oversubscribed()
        {
            return false;
        }
        let now = now_ns();
        let is_due = now >= self.next_move_ns;
        if is_due {
            self.next_move_ns = now + MOVES_EVERY_NS;
            self.shared.counters.moves(self.me);
        }
        is_due
    }
}
