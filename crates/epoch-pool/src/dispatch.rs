//! One fork-join dispatch: publish a job, claim and run its chunks on whoever is there, return when all are done.
//!
//! Completion is "all chunks are counted", not "all workers have answered": nobody waits for a thread that has claimed nothing.
//!
//! | Word        | Written by                                       | Meaning                                              |
//! |-------------|--------------------------------------------------|------------------------------------------------------|
//! | `busy`      | the thread that dispatches: set, then cleared    | the words below belong to that thread, the *caller*  |
//! | `job`       | caller, only while no chunk is uncounted         | the erased closure; may dangle otherwise             |
//! | `word[p]`   | caller, only while empty; claims take from it    | chunks of participant `p` that nobody has claimed    |
//! | `pending`   | caller `= 2 · chunks`; workers `- 2 · done`      | chunks not yet counted; lowest bit: the caller parks |
//! | `asleep[p]` | worker `p`                                       | worker `p` is parked, or about to park               |
//! | `heat`      | any thread that begins or ends a hot phase       | while one is on, workers stay awake (`hot.rs`)       |
//!
//! ```text
//! caller                                           worker p
//! C1 busy: false -> true (Acquire), or inline      W1 spin until word[p] has chunks, then W4
//! C2 pending = 2·chunks; job = erase(closure)      W2 budget spent: asleep[p] = true; fence(SeqCst)
//! C3 word[p] = home range (Release), invited p     W3 park, unless word[p] or heat has changed; asleep[p] = false
//! C4 fence(SeqCst)                                 W4 claim from word[p] (Acquire); call job; add the chunks to `held`
//! C5 unpark every invited p with asleep[p]         W5 pending -= 2·held (Release); if only the bit is left, open the gate
//! C6 claim and call job: own home, then others'    W6 claim from the back of another's word (Acquire); call job; W5
//! C7 spin until pending == 2·own (Acquire)         W7 nothing left to claim: W1
//! C8 or: pending -= 2·own - 1 (Acquire); wait at
//!    the gate until pending == 1 (Acquire)
//! C9 take the panic; busy = false (Release)
//! ```
//!
//! An exclusive session (`&mut Dispatcher`) leaves out C1 and the release in C9: the borrow checker gives it what `busy` gives
//! others. A hot phase begins by a change of `heat`, then C4 and C5 for all workers.
//!
//! * **I1** Only the *caller* writes `job`: the thread that set `busy`, or that has borrowed the dispatcher exclusively; and only
//!   while every chunk is counted (C2).
//! * **I2** A participant reads and calls `job` only while it holds a claim that is not counted yet (between W4 or W6 and W5;
//!   the caller: in C6).
//! * **I3** `dispatch` neither returns nor unwinds between C3 and the end of C7 or C8: jobs' panics are caught.
//! * **I4** After its decrement in W5 a worker touches only what the pool owns.
//!
//! *No claim outlives its job.* A compare-exchange on a stale reading of a word either fails, or the word holds these very
//! chunks again, now of the current job, and they are claimed for that. The claim is uncounted, so this job cannot end, nor
//! `job` change, before it has been run and counted. So a participant needs no epoch: it may come late, sleep through jobs, or
//! steal without an invitation.
//!
//! *What each ordering is for.* C3 and W4/W6 (`home.rs`, H1 and H2; claims between them continue the release sequence): the
//! claimer sees C2. W5 and C7 or C8 (later decrements continue the release sequence): the caller sees what the job wrote, and
//! its next C2 comes after the last call. C9 and C1: the next caller's C2 comes after this one.
//!
//! *No wake-up is lost.* Of C4 and W2 the fence that comes second makes the load after it see the store before the other:
//! C5 sees `asleep[p]`, or W3 sees the word (or the heat). `pending` needs no fence: both sides change the one word, so either the
//! caller finds in C8 that all is counted, or the last worker finds the bit; the gate is a lock and a condition variable.
//!
//! *Panics.* A participant that catches one claims all that is left of the job and counts it without running it, while it
//! still holds its own claim, so that what it discards is of this job. Pinned chunks (`Pool::run`) are run all the same.
//!
//! *Small jobs wake nobody.* Waking a thread takes longer than a small job. If all invited workers are asleep, and the last such
//! job was small, the caller begins alone, chunk by chunk, and does C5 when it sees that the rest, with what it has done alone
//! just before, would take longer than a wake-up does (`thrift.rs`). They are not waited for in either case. Pinned chunks need
//! their worker, and in a hot phase all are to be awake: there C5 follows at once.
//!
//! *Workers without a CPU.* If a worker was awake and yet the caller has done the whole job, others have the workers' CPUs. Jobs that
//! begin within a millisecond are then not published at all, until a worker is seen to wait, unless most were long of late
//! (`presence.rs`). The caller holds the pool meanwhile, as it does while a job is published.
//!
//! The models in `src/tests/loom.rs` fail without any one of these orderings and fences (`cargo xtask loom --mutants`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_utils::CachePadded;

use crate::counters::Counters;
use crate::gate::Gate;
use crate::home::{Claim, Home};
use crate::hot::Heat;
use crate::job::{Job, RawJob};
use crate::places::Places;
use crate::presence::{ALONE_NS, Presence};
use crate::split::Split;
use crate::sync::{
    Arc, AtomicBool, AtomicU64, Counter, JoinHandle, Ordering, UnsafeCell, fence, is_worker_of,
    now_ns, this_thread,
};
use crate::sys::DefaultFloats;
use crate::thrift::Thrift;
use crate::unwind::{AbortOnUnwind, FirstPanic, Payload};
use crate::wait::Spin;

/// The participant number of the thread that dispatches.
pub(crate) const CALLER: usize = 0;

/// `pending`: the caller parks, or is about to.
const WAITING: u64 = 1;

/// A caller notes on which CPU it is once in so many dispatches: on some systems it takes a system call to know.
const DISPATCHES_PER_NOTE: u64 = 16;

/// What the threads of a pool share. Each word that is written often has cache lines of its own.
#[derive(Debug)]
pub(crate) struct Shared {
    homes: Box<[CachePadded<Home>]>,
    job: CachePadded<Slot>,
    pending: CachePadded<AtomicU64>,
    gate: CachePadded<Gate>,
    first_panic: CachePadded<FirstPanic>,
    pub(crate) heat: CachePadded<Heat>,
    pub(crate) counters: Counters,
    pub(crate) places: std::sync::Arc<Places>,
    pub(crate) spin: Spin,
    pub(crate) thrift: CachePadded<Thrift>,
    pub(crate) presence: Presence,
    /// Jobs run under the default floating-point environment.
    default_floats: bool,
    /// Workers leave a CPU that they share with another participant.
    pub(crate) keep_apart: bool,
}

/// Where the current job is.
#[derive(Debug)]
struct Slot(UnsafeCell<RawJob>);

// SAFETY: it is written by the caller alone, while nobody reads it (I1), and read by participants with an uncounted claim (I2).
unsafe impl Sync for Slot {}

impl Shared {
    pub(crate) fn home(&self, participant: usize) -> &Home {
        &self.homes[participant]
    }

    pub(crate) fn participants(&self) -> usize {
        self.homes.len()
    }

    /// What tells this pool from others.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// C4, C5: wakes all workers that are asleep. What they are to see has been stored.
    pub(crate) fn wake_all(&self, threads: &[JoinHandle<()>]) {
        self.see_who_is_asleep();
        self.unpark(threads);
    }

    /// C4: who falls asleep from now on sees what has been stored; who did before is seen to be asleep.
    fn see_who_is_asleep(&self) {
        fence(Ordering::SeqCst);
    }

    /// C5 for the first workers, which are those behind `threads`.
    fn unpark(&self, threads: &[JoinHandle<()>]) {
        for (worker, thread) in (CALLER + 1..).zip(threads) {
            if self.home(worker).is_asleep() {
                self.counters.unparked();
                thread.thread().unpark();
            }
        }
    }

    /// Chunks of the first `invited` homes that nobody has claimed.
    fn left(&self, invited: usize) -> u64 {
        self.homes[..invited].iter().map(|home| home.left() as u64).sum()
    }

    /// Runs chunks one by one, the caller's first, until the rest is worth a wake-up or none are left. Returns the chunks that are
    /// to be counted, and whether it is worth it.
    fn run_while_small(&self, invited: usize) -> (u64, bool) {
        let (mut own, mut left_ns) = (0, 0);
        let mut chunk_ns = 0_u64; // the longest so far
        while !self.thrift.is_worth_it(left_ns) {
            let others = || (1..invited).find_map(|home| self.home(home).claim_back(usize::MAX));
            let Some(claim) = self.home(CALLER).claim_one().or_else(others) else {
                return (own, false);
            };
            let start = now_ns();
            own += self.run_claim(CALLER, claim);
            let now = now_ns();
            self.thrift.add(now.saturating_sub(start), now);
            chunk_ns = chunk_ns.max(now.saturating_sub(start));
            left_ns = chunk_ns.saturating_mul(self.left(invited));
        }
        (own, true)
    }

    /// W4 to W6: runs what there is to run for worker `me`, at home first.
    pub(crate) fn participate(&self, me: usize) {
        self.home(me).prefetch_job();
        let held = self.run_home(me);
        if held > 0 {
            self.count(held);
        }
        self.run_others(me, self.participants(), |stolen| self.count(stolen));
    }

    /// Runs the own home until it is empty; returns the chunks that are to be counted.
    fn run_home(&self, me: usize) -> u64 {
        let mut held = 0;
        while let Some(claim) = self.home(me).claim_front() {
            if held == 0 {
                self.counters.joined(me);
            }
            held += self.run_claim(me, claim);
        }
        held
    }

    /// Takes from the homes `0..n` of others until all are empty; `count`s each claim as soon as it is run.
    fn run_others(&self, me: usize, n: usize, mut count: impl FnMut(u64)) {
        for victim in (me + 1..n).chain(0..me) {
            while let Some(claim) = self.home(victim).claim_back(n) {
                self.counters.stole(me);
                count(self.run_claim(me, claim));
            }
        }
    }

    /// Runs one claim; returns the chunks to be counted for it, with those that its panic discarded.
    fn run_claim(&self, me: usize, claim: Claim) -> u64 {
        let Claim { chunks, pinned } = claim;
        let claimed = chunks.len() as u64;
        // SAFETY: valid and not written meanwhile: we hold an uncounted claim (I2), so the caller is between C3 and C7 (I1).
        let job = self.job.0.with(|job| unsafe { *job });
        let run = || {
            let _floats = self.floats();
            // SAFETY: the closure behind `job` outlives the dispatch that published it, which waits for our claim (I2, I3).
            unsafe { job.call(me, chunks) }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| match &self.counters.clock {
            None => run(),
            Some(clock) => clock.time(me, run),
        }));
        match outcome {
            Ok(()) => claimed,
            Err(payload) => {
                self.first_panic.keep(payload);
                claimed + if pinned { 0 } else { self.discard_unclaimed() }
            }
        }
    }

    /// Claims all that is left. The caller of this function holds an uncounted claim, so what is left is of the same job.
    fn discard_unclaimed(&self) -> u64 {
        let claims = self.homes.iter().filter_map(|home| home.claim_all());
        claims.map(|claim| claim.chunks.len() as u64).sum()
    }

    /// The environment that the calls of a job are to be made in, for as long as the result lives.
    pub(crate) fn floats(&self) -> Option<DefaultFloats> {
        self.default_floats.then(DefaultFloats::enter)
    }

    /// W5: counts chunks that this worker has run.
    fn count(&self, done: u64) {
        let before = self.pending.fetch_sub(done << 1, Ordering::Release);
        if before == done << 1 | WAITING {
            self.gate.open();
        }
    }
}

/// What is not the same for every pool.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) spin: Spin,
    pub(crate) places: std::sync::Arc<Places>,
    pub(crate) with_times: bool,
    pub(crate) default_floats: bool,
    pub(crate) keep_apart: bool,
    pub(crate) worth_a_wake_up_ns: u64,
}

/// The dispatching side of a pool: the only way to what its workers share that leads to a [`Caller`].
#[derive(Debug)]
pub(crate) struct Dispatcher {
    shared: Arc<Shared>,
    busy: CachePadded<AtomicBool>,
    /// The thread that is the caller, while one is, by [`this_thread`].
    thread: Counter,
}

/// The right to dispatch; at most one per pool exists.
#[derive(Debug)]
pub(crate) struct Caller<'a> {
    dispatcher: &'a Dispatcher,
    /// It was had without `busy`, by an exclusive borrow.
    is_exclusive: bool,
}

impl Dispatcher {
    pub(crate) fn new(participants: usize, options: Options) -> Self {
        let Options { spin, places, with_times, default_floats, keep_apart, worth_a_wake_up_ns } =
            options;
        let shared = Shared {
            homes: (0..participants).map(|_| CachePadded::new(Home::new())).collect(),
            job: CachePadded::new(Slot(UnsafeCell::new(RawJob::nothing()))),
            pending: CachePadded::new(AtomicU64::new(0)),
            gate: CachePadded::new(Gate::new()),
            first_panic: CachePadded::new(FirstPanic::new()),
            heat: CachePadded::new(Heat::new()),
            counters: Counters::new(participants, with_times),
            places,
            spin,
            thrift: CachePadded::new(Thrift::new(worth_a_wake_up_ns)),
            presence: Presence::new(ALONE_NS),
            default_floats,
            keep_apart,
        };
        Self {
            shared: Arc::new(shared),
            busy: CachePadded::new(AtomicBool::new(false)),
            thread: Counter::default(),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// C1: the right to dispatch, unless a dispatch is running.
    pub(crate) fn try_caller(&self) -> Option<Caller<'_>> {
        if self.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        self.thread.set(this_thread());
        Some(Caller { dispatcher: self, is_exclusive: false })
    }

    /// The right to dispatch of who has borrowed the dispatcher alone: no other caller can exist meanwhile.
    pub(crate) fn caller(&mut self) -> Caller<'_> {
        Caller { dispatcher: self, is_exclusive: true }
    }

    /// Whether this thread is inside a job of the pool. Of use where [`Dispatcher::try_caller`] has just failed.
    pub(crate) fn is_nested(&self) -> bool {
        is_worker_of(self.shared.address()) || self.thread.get() == this_thread()
    }
}

impl Caller<'_> {
    /// Runs a job: `inline` on this thread, if workers are awake and have no CPU, else as [`Caller::dispatch`] does.
    pub(crate) fn run<J: Job>(
        &self,
        threads: &[JoinHandle<()>],
        split: Split,
        job: &J,
        inline: impl FnOnce(),
    ) -> Result<(), Payload> {
        let presence = &self.dispatcher.shared.presence;
        let start_ns = if split.pinned { None } else { presence.begin(now_ns) };
        let outcome = match presence.is_alone(start_ns) {
            true => self.run_alone(inline),
            false => self.dispatch(threads, split, job),
        };
        if let Some(start_ns) = start_ns {
            presence.finish(now_ns().saturating_sub(start_ns));
        }
        outcome
    }

    /// Runs `job` on this thread, as one that is not published.
    fn run_alone(&self, job: impl FnOnce()) -> Result<(), Payload> {
        let shared = &*self.dispatcher.shared;
        self.note_place();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _floats = shared.floats();
            job();
        }));
        shared.counters.deserted(outcome.is_err());
        outcome
    }

    /// Notes once in a while which CPU the caller is on.
    fn note_place(&self) {
        let shared = &*self.dispatcher.shared;
        if shared.counters.dispatches().is_multiple_of(DISPATCHES_PER_NOTE) {
            shared.places.note(CALLER);
        }
    }

    /// C2 to C9: runs `job` over the chunks of `split`, on the workers behind `threads` and on this thread.
    ///
    /// Returns the payload of the first panic, which is the caller's to raise.
    pub(crate) fn dispatch<J: Job>(
        &self,
        threads: &[JoinHandle<()>],
        split: Split,
        job: &J,
    ) -> Result<(), Payload> {
        let shared = &*self.dispatcher.shared;
        // I3, should anything between publication and the last count unwind, which nothing is meant to do.
        let abort = AbortOnUnwind;
        self.publish(split, RawJob::erase(job));
        let invited = &threads[..threads.len().min(split.invited() - 1)];
        let (start_ns, mut own) = self.wake(invited, split);
        own += shared.run_home(CALLER);
        shared.run_others(CALLER, split.invited(), |stolen| own += stolen);
        self.wait(own);
        std::mem::forget(abort);
        let panic = shared.first_panic.take();
        match start_ns {
            Some(start_ns) => shared.thrift.finish(now_ns().saturating_sub(start_ns)),
            // What a panic has discarded was nobody's work.
            None if own == u64::from(split.chunks()) && panic.is_none() => {
                shared.presence.nobody_came(now_ns());
            }
            None => {}
        }
        shared.counters.finished(split.invited(), panic.is_some());
        panic.map_or(Ok(()), Err)
    }

    /// C2, C3.
    fn publish(&self, split: Split, job: RawJob) {
        let shared = &*self.dispatcher.shared;
        let invited = split.invited();
        self.note_place();
        shared.counters.dispatched(invited);
        shared.pending.store(u64::from(split.chunks()) << 1, Ordering::Relaxed);
        // SAFETY: nobody reads or writes `job` now: we are the caller, and the last dispatch has seen every chunk counted (I1, I2).
        shared.job.0.with_mut(|slot| unsafe { *slot = job });
        for participant in 0..invited {
            shared.home(participant).open(split.home(participant), split.pinned, job.address());
        }
    }

    /// C4, C5: wakes the workers that are asleep, if the job is worth it. Returns the chunks that were run to find out, and, if all
    /// were asleep, the time before that.
    fn wake(&self, threads: &[JoinHandle<()>], split: Split) -> (Option<u64>, u64) {
        let shared = &*self.dispatcher.shared;
        shared.see_who_is_asleep();
        let is_asleep = |worker| shared.home(worker).is_asleep();
        let needs_all = split.pinned || shared.heat.read().is_hot();
        if needs_all || !(1..=threads.len()).all(is_asleep) {
            shared.unpark(threads);
            return (None, 0);
        }
        if shared.spin.is_oversubscribed() {
            // If that is over by now, workers that sleep through small jobs would not find out.
            shared.spin.count_cpus();
        }
        let start_ns = now_ns();
        let is_worth_it = shared.thrift.begin(start_ns, shared.spin.awake_ns());
        let (own, is_worth_it) =
            if is_worth_it { (0, true) } else { shared.run_while_small(split.invited()) };
        if is_worth_it {
            shared.thrift.reset();
            shared.unpark(threads);
        } else {
            shared.counters.done_alone();
        }
        (Some(start_ns), own)
    }

    /// C7, C8: returns when the chunks that are not among our `own` are counted.
    fn wait(&self, own: u64) {
        let (shared, own) = (&*self.dispatcher.shared, own << 1);
        let is_done = || shared.pending.load(Ordering::Acquire) == own;
        if shared.spin.until(is_done, || shared.spin.budget()) {
            return;
        }
        let before = shared.pending.fetch_sub(own.wrapping_sub(WAITING), Ordering::Acquire);
        if before != own {
            shared.counters.caller_waited();
            shared.gate.wait_until(|| shared.pending.load(Ordering::Acquire) == WAITING);
        }
    }
}

impl Drop for Caller<'_> {
    /// C9's release.
    fn drop(&mut self) {
        if !self.is_exclusive {
            self.dispatcher.thread.set(0);
            self.dispatcher.busy.store(false, Ordering::Release);
        }
    }
}
