//! The pool, as its users see it.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::panic::resume_unwind;

use crate::builder::Builder;
use crate::counters::Inline;
use crate::dispatch::{CALLER, Caller, Dispatcher, Shared};
use crate::env::Settings;
use crate::error::{Busy, Error};
use crate::hot::Hot;
use crate::session::Session;
use crate::split::Split;
use crate::statistics::Statistics;
use crate::sync::{JoinHandle, count_dispatch, forks};
use crate::sys::watch_forks;
use crate::work::{Many, Rows, Visit, Work};

/// One row space of [`Pool::run_many`]: its number of rows, and what to do with a range of them.
pub type Part<'a> = (usize, &'a (dyn Fn(Range<usize>) + Sync));

/// Persistent threads that, with the thread that calls them, run one fork-join job at a time.
///
/// A job is a borrowed closure; when a `run…` method returns, every call of it has returned. Its parts are claimed in small
/// chunks: each *participant* (a worker, or the caller, who works too) has a home range of rows, the same one in every job of
/// the same shape, and takes from the others' when its own is done. The caller never waits for a worker that has not started,
/// except in [`Pool::run`], whose job is to visit each.
///
/// A job may run on its caller alone, whatever the size of the pool: the workers may be late, or parked while the job is too
/// small to wake them for (about 50 µs of work, or less if such jobs follow each other closely), or others have all their CPUs. So calls of one job must not wait
/// for each other, but for those of [`Pool::run`]. While it waits, no participant runs anything but this job: a caller may hold a
/// lock. What is local to the caller's thread is not the workers'.
///
/// What happens in the corners:
///
/// | case | result |
/// |---|---|
/// | dispatch from inside a job of the same pool | runs inline: serially, on the thread that dispatches; a `try_run…` method answers [`Busy`] |
/// | dispatch while another thread's job runs | the same |
/// | no workers, or a job too small to share | runs inline |
/// | others have the workers' CPUs | a job that begins within a millisecond after one that no worker came to may be kept from them: it runs undivided on its caller, who holds the pool ([`Statistics::deserted`]) |
/// | a job panics on a worker, on the caller, or on several | rows that nobody has claimed are left out as far as possible; when the calls that run have ended, the first payload is raised on the caller, the others are dropped; the pool works on |
/// | a fork (Linux, Android, Apple) | the pool of the child has no workers, and jobs run on the caller. A fork from inside a job is not supported: the child's copy of that job does not end |
/// | drop | the workers end and are joined |
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let pool = epoch_pool::Pool::new(3)?; // three threads, and whoever calls
/// let sum = AtomicUsize::new(0);
/// pool.run_rows(1000, |rows| {
///     sum.fetch_add(rows.sum::<usize>(), Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// # Ok::<(), epoch_pool::Error>(())
/// ```
#[derive(Debug)]
pub struct Pool {
    dispatcher: Dispatcher,
    workers: Vec<JoinHandle<()>>,
    /// The count of forks when the workers were spawned: a fork does not take them along.
    forks: u64,
}

impl Pool {
    /// The spin budget of [`Pool::new`], in turns. A turn is about 40 ns, so this is 160 µs: a few times what
    /// it takes to wake a thread.
    pub const DEFAULT_SPIN: u32 = 4000;

    /// The largest number of workers that a pool takes.
    pub const MAX_WORKERS: usize = (1 << 20) - 1;

    /// A pool with `n_workers` threads, the caller not counted. 0 is legal: all jobs run on the caller.
    ///
    /// # Errors
    ///
    /// If a thread cannot be spawned, or there are more than [`Pool::MAX_WORKERS`]. No thread is left behind.
    pub fn new(n_workers: usize) -> Result<Self, Error> {
        Self::builder().workers(n_workers).build()
    }

    /// As [`Pool::new`], with a spin budget: the turns (of about 40 ns) that a worker without work, and a caller whose workers
    /// still run, spend before they park. 0 parks at once.
    ///
    /// # Errors
    ///
    /// As [`Pool::new`].
    pub fn with_spin(n_workers: usize, spin_iterations: u32) -> Result<Self, Error> {
        Self::builder().workers(n_workers).spin_budget(spin_iterations).build()
    }

    /// The pool that the environment asks for, or `None` for serial work.
    ///
    /// * `CMF_THREADS`: 0 or 1 means serial, N means N workers (and the caller). Unset: one worker less than
    ///   [`std::thread::available_parallelism`], at most 8; serial if that leaves none.
    /// * `CMF_POOL_SPIN`: spin iterations (turns of about 40 ns) before parking; 0 parks at once. Unset:
    ///   [`Pool::DEFAULT_SPIN`].
    ///
    /// An empty variable counts as unset, and so does one with junk in it, or a number that is too large, which is reported on
    /// standard error, once per process. To report it
    /// elsewhere, use [`Settings`].
    ///
    /// # Errors
    ///
    /// As [`Pool::new`].
    pub fn from_env() -> Result<Option<Self>, Error> {
        let settings = Settings::from_env();
        settings.report_ignored();
        match settings.n_workers {
            0 => Ok(None),
            n_workers => Self::with_spin(n_workers, settings.spin_iterations).map(Some),
        }
    }

    /// Settings for a pool to be built.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Spawned threads, without the caller.
    pub fn n_workers(&self) -> usize {
        self.workers.len()
    }

    /// Threads that take part in a job: the workers and the caller.
    pub fn participants(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `f(participant, participants)` exactly once on each worker and on the caller, who is participant 0.
    ///
    /// This is the one job that every worker must take part in, so the caller waits for each of them. Where it runs inline
    /// (see [`Pool`]), it is one call, `f(0, 1)`. That may be while another thread's job runs, whose caller is participant 0 as
    /// well: a participant number is no key to something exclusive, unless one thread alone dispatches.
    ///
    /// # Panics
    ///
    /// With the first payload, if `f` panics; the other participants' calls are made all the same.
    pub fn run<F: Fn(usize, usize) + Sync>(&self, f: F) {
        self.execute(&Visit::new(f, self.participants()));
    }

    /// Calls `f` with disjoint, non-empty ranges that cover `0..rows`, on as many participants as are free.
    ///
    /// # Panics
    ///
    /// With the first payload, if `f` panics. Rows that nobody had started by then are left out.
    pub fn run_rows<F: Fn(Range<usize>) + Sync>(&self, rows: usize, f: F) {
        self.run_rows_by(1, rows, f);
    }

    /// As [`Pool::run_rows`], with ranges that start at multiples of `grain` (0 counts as 1): the fewest rows worth handing
    /// out, and the number of outputs on one cache line.
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn run_rows_by<F: Fn(Range<usize>) + Sync>(&self, grain: usize, rows: usize, f: F) {
        self.execute(&Rows::new(f, grain, rows, self.participants()));
    }

    /// Runs several row spaces in one dispatch (the projections q, k and v, say): each part is called with disjoint ranges of
    /// *its own* rows which together cover them, as by [`Pool::run_rows`].
    ///
    /// ```
    /// # use std::sync::atomic::{AtomicUsize, Ordering};
    /// # let pool = epoch_pool::Pool::new(1)?;
    /// let (q, kv) = (AtomicUsize::new(0), AtomicUsize::new(0));
    /// pool.run_many(&[
    ///     (576, &|rows| _ = q.fetch_add(rows.len(), Ordering::Relaxed)),
    ///     (192, &|rows| _ = kv.fetch_add(rows.len(), Ordering::Relaxed)),
    /// ]);
    /// assert_eq!((q.into_inner(), kv.into_inner()), (576, 192));
    /// # Ok::<(), epoch_pool::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn run_many(&self, parts: &[Part<'_>]) {
        self.run_many_by(1, parts);
    }

    /// As [`Pool::run_many`], with ranges that start at multiples of `grain` (0 counts as 1).
    ///
    /// Each claim looks its rows up in the list of parts, so parts should be few: tens, not thousands.
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn run_many_by(&self, grain: usize, parts: &[Part<'_>]) {
        self.execute(&Many::new(grain, parts, self.participants()));
    }

    /// The pool for one thread alone, whose dispatches need not check whether it is free.
    pub fn session(&mut self) -> Session<'_> {
        Session::new(self)
    }

    /// Begins a hot phase: the workers are woken, and stay awake between jobs until the guard is dropped, whatever the spin
    /// budget. Then they park at once, within a few microseconds, unless another such phase is on. Guards that are forgotten keep a
    /// phase on for ever.
    ///
    /// For the dispatches of one token, say: between two of them lies some serial work, and after the last a pause. The bound
    /// is 100 ms without any job, or the spin budget if that is longer, after which a worker parks even so. Where there are
    /// more participants than CPUs a hot phase changes nothing but its end.
    ///
    /// ```
    /// let pool = epoch_pool::Pool::with_spin(1, 0)?; // parks at once
    /// let hot = pool.hot();
    /// for _layer in 0..30 {
    ///     pool.run_rows(576, |_rows| {}); // the worker spins in between
    /// }
    /// drop(hot);
    /// # Ok::<(), epoch_pool::Error>(())
    /// ```
    pub fn hot(&self) -> Hot<'_> {
        Hot::begin(self)
    }

    /// What the pool has done so far.
    pub fn statistics(&self) -> Statistics {
        let shared = self.shared();
        shared.counters.statistics(&shared.spin)
    }
}

/// Dispatching.
impl Pool {
    /// Runs `job` on all, or inline.
    pub(crate) fn execute<W: Work>(&self, job: &W) {
        if let Err(cause) = self.dispatch(job) {
            self.run_inline(cause, job);
        }
    }

    /// Runs `job`, unless another one is running.
    pub(crate) fn try_execute<W: Work>(&self, job: &W) -> Result<(), Busy> {
        let busy = match self.dispatch(job) {
            Ok(()) => return Ok(()),
            Err(Inline::Nested) => Busy::Nested,
            Err(Inline::Busy) => Busy::Elsewhere,
            Err(cause) => {
                self.run_inline(cause, job);
                return Ok(());
            }
        };
        self.shared().counters.refused();
        Err(busy)
    }

    /// Runs `job` for who has the pool alone.
    pub(crate) fn execute_alone<W: Work>(&mut self, job: &W) {
        match self.splittable(job) {
            Ok(split) => run_shared(self.dispatcher.caller(), &self.workers, split, job),
            Err(cause) => self.run_inline(cause, job),
        }
    }

    fn dispatch<W: Work>(&self, job: &W) -> Result<(), Inline> {
        let split = self.splittable(job)?;
        let Some(caller) = self.dispatcher.try_caller() else {
            return Err(if self.dispatcher.is_nested() { Inline::Nested } else { Inline::Busy });
        };
        run_shared(caller, &self.workers, split, job);
        Ok(())
    }

    /// How `job` is shared, if it can be.
    fn splittable<W: Work>(&self, job: &W) -> Result<Split, Inline> {
        if self.workers.is_empty() {
            return Err(Inline::NoWorkers);
        }
        let split = job.split().filter(|split| split.invited() > 1).ok_or(Inline::Small)?;
        if self.is_forked() { Err(Inline::Forked) } else { Ok(split) }
    }

    fn run_inline<W: Work>(&self, cause: Inline, job: &W) {
        if !job.is_empty() {
            self.shared().counters.ran_inline(cause); // before it can panic
            let _floats = self.shared().floats();
            job.run_inline();
        }
    }

    pub(crate) fn count_cpus(&self) {
        self.shared().spin.count_cpus_now();
    }

    pub(crate) fn heat_up(&self) {
        self.shared().heat.begin();
        if !self.is_forked() {
            self.shared().wake_all(&self.workers);
        }
    }

    pub(crate) fn cool_down(&self) {
        self.shared().heat.end();
    }

    fn shared(&self) -> &Shared {
        self.dispatcher.shared()
    }

    /// Whether this is a copy in a forked child, without workers.
    fn is_forked(&self) -> bool {
        forks() != self.forks
    }
}

/// Publishes `job` and waits for it. Raises its first panic when the pool is free again.
fn run_shared<W: Work>(caller: Caller<'_>, workers: &[JoinHandle<()>], split: Split, job: &W) {
    count_dispatch();
    let outcome = caller.run(workers, split, job, || job.run_inline());
    drop(caller);
    if let Err(payload) = outcome {
        resume_unwind(payload);
    }
}

/// For the builder.
impl Pool {
    pub(crate) fn without_workers(dispatcher: Dispatcher) -> Self {
        watch_forks();
        Self { dispatcher, workers: Vec::new(), forks: forks() }
    }

    pub(crate) fn add_worker(&mut self, worker: JoinHandle<()>) {
        self.workers.push(worker);
    }
}

// A panic of a job leaves nothing behind that the next job could see.
impl std::panic::UnwindSafe for Pool {}
impl std::panic::RefUnwindSafe for Pool {}

impl Drop for Pool {
    fn drop(&mut self) {
        let workers = std::mem::take(&mut self.workers);
        if self.is_forked() {
            // We are a fork, where these threads do not exist: there is nothing to join, and nothing to detach.
            workers.into_iter().for_each(std::mem::forget);
            return;
        }
        for (worker, handle) in (CALLER + 1..).zip(&workers) {
            self.shared().home(worker).stop();
            handle.thread().unpark();
        }
        for handle in workers {
            // A worker catches its jobs' panics, so it has ended by itself.
            _ = handle.join();
        }
    }
}

/// Jobs that all pools have published since the process started, or kept from workers without a CPU: one tick a job. Work that ran
/// inline does not tick.
///
/// For "dispatches per token" take the difference of two readings.
pub fn dispatch_count() -> u64 {
    crate::sync::dispatches()
}
