//! How a pool is built.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::time::Duration;
use std::{fmt, io};

use crate::dispatch::{Dispatcher, Options, Shared};
use crate::error::Error;
use crate::places::Places;
use crate::pool::Pool;
use crate::sync::{Arc, HAS_THREADS, JoinHandle, thread};
use crate::thrift::WORTH_A_WAKE_UP_NS;
use crate::unwind::{Payload, discard};
use crate::wait::{Spin, turns_in};
use crate::worker;

type Hook = std::sync::Arc<dyn Fn(usize) + Send + Sync>;

/// Settings of a pool to be built; [`Pool::builder`] makes one.
///
/// ```
/// let pool = epoch_pool::Pool::builder()
///     .participants(3) // two workers, and whoever calls
///     .spin_budget(1000)
///     .thread_name(|worker| format!("decode-{worker}"))
///     .on_worker_start(|worker| println!("worker {worker} pins itself, sets its priority, …"))
///     .on_worker_stop(|worker| println!("worker {worker} has done its last job"))
///     .build()?;
/// assert_eq!(pool.n_workers(), 2);
/// # Ok::<(), epoch_pool::Error>(())
/// ```
pub struct Builder {
    width: Width,
    spin_turns: u64,
    stack_size: Option<usize>,
    name: Box<dyn Fn(usize) -> String + Send>,
    start: Option<Hook>,
    stop: Option<Hook>,
    floats: FloatEnvironment,
    keep_apart: bool,
    worth_a_wake_up_ns: u64,
    with_times: bool,
}

/// How the number of threads was given.
#[derive(Clone, Copy, Debug)]
enum Width {
    Workers(usize),
    Participants(usize),
}

/// The floating-point environment (rounding mode, flush-to-zero, exception masks) that jobs run in.
///
/// It belongs to a thread, is inherited when one is spawned, and is changed by hosts and libraries that prefer speed to bits.
/// So the threads of a pool may differ, and a result would depend on who computed it.
///
/// There is no setting for flush-to-zero. Rust code assumes the default environment, and has undefined behaviour in any other;
/// a job that needs another one sets it around foreign code, and sets it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FloatEnvironment {
    /// Every call of a job runs in the default environment: to nearest even, subnormals kept, exceptions masked. The thread has
    /// its own back afterwards. Costs a read of a control register per call; on targets other than x86-64 and aarch64 it is as
    /// `AsFound`.
    #[default]
    Default,
    /// Calls run in whatever environment their thread has.
    AsFound,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("width", &self.width)
            .field("spin_turns", &self.spin_turns)
            .field("stack_size", &self.stack_size)
            .field("has_start_hook", &self.start.is_some())
            .field("has_stop_hook", &self.stop.is_some())
            .field("float_environment", &self.floats)
            .field("keep_apart", &self.keep_apart)
            .field("timing", &self.with_times)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            width: Width::Workers(0),
            spin_turns: u64::from(Pool::DEFAULT_SPIN),
            stack_size: None,
            name: Box::new(|worker| format!("epoch-pool-{worker}")),
            start: None,
            stop: None,
            floats: FloatEnvironment::default(),
            keep_apart: true,
            worth_a_wake_up_ns: WORTH_A_WAKE_UP_NS,
            with_times: false,
        }
    }

    /// Threads to spawn, the caller not counted. Default 0: all jobs run on the caller. Takes the place of
    /// [`Builder::participants`].
    #[must_use]
    pub fn workers(mut self, n_workers: usize) -> Self {
        self.width = Width::Workers(n_workers);
        self
    }

    /// Threads that take part in a job, the caller counted: one more than there are workers. Takes the place of
    /// [`Builder::workers`]. 0 is an error, as the caller always takes part.
    #[must_use]
    pub fn participants(mut self, participants: usize) -> Self {
        self.width = Width::Participants(participants);
        self
    }

    /// Turns that a waiter (a worker without work, a caller whose workers still run) spends before it parks. A turn is about
    /// 40 ns, however long the CPU's pause instruction is (calibrated once per process); every 64 turns the CPU is offered to
    /// whoever waits for it. With more participants than CPUs it is offered at every turn, and 100 turns are the most; how many
    /// CPUs there are for the threads of the pool is found out again every 50 ms. Default [`Pool::DEFAULT_SPIN`]; 0 parks at
    /// once. Takes the place of [`Builder::spin_time`].
    #[must_use]
    pub fn spin_budget(mut self, turns: u32) -> Self {
        self.spin_turns = u64::from(turns);
        self
    }

    /// As [`Builder::spin_budget`], whose place it takes, in time, to the next 40 ns below.
    #[must_use]
    pub fn spin_time(mut self, time: Duration) -> Self {
        self.spin_turns = turns_in(time);
        self
    }

    /// Stack size of the workers, in bytes. Default: the standard library's.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// The thread name of each worker, by participant number (from 1). Default `epoch-pool-N`. A NUL in it, and what
    /// follows, is left out.
    #[must_use]
    pub fn thread_name(mut self, name: impl Fn(usize) -> String + Send + 'static) -> Self {
        self.name = Box::new(name);
        self
    }

    /// Called once on each worker, with its participant number (from 1), before it takes part in any job: the place to pin
    /// the thread, to set its quality of service, to note its thread id. [`Builder::build`] returns after all of them have
    /// returned.
    #[must_use]
    pub fn on_worker_start(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.start = Some(std::sync::Arc::new(hook));
        self
    }

    /// Called once on each worker whose start hook did not panic, with its participant number, after its last job: when the
    /// pool is dropped, which returns after all of them have returned, or cannot be built. A panic in it is caught, and its
    /// payload dropped.
    #[must_use]
    pub fn on_worker_stop(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.stop = Some(std::sync::Arc::new(hook));
        self
    }

    /// The floating-point environment of jobs. Default [`FloatEnvironment::Default`].
    #[must_use]
    pub fn float_environment(mut self, environment: FloatEnvironment) -> Self {
        self.floats = environment;
        self
    }

    /// Whether a worker that finds itself on the CPU of another participant, while there are CPUs enough for all, moves to another
    /// of its own CPUs (Linux, Android; elsewhere this changes nothing). Default `true`.
    ///
    /// Schedulers leave two threads on one CPU for longer than one would think, as they yield to each other, or where virtual CPUs
    /// are packed; the pool is serial until then. An idle worker that has seen another participant on its CPU for some 10 µs
    /// takes that CPU out of its affinity mask, which moves it (60 µs), and then gives itself back the mask that it had: by way
    /// of a mask of all CPUs, so that it goes on to follow its cpuset, if that is all that has bound it. At most every 10 ms.
    /// Pinned workers stay where they are, as they have no other CPU.
    ///
    /// Turn it off if somebody else changes the masks of the workers while the pool runs, or if they must not run outside of
    /// their mask for even a microsecond: a mask that is set from outside in the same moment may be lost, and CPUs of the mask
    /// that are offline then are.
    #[must_use]
    pub fn keep_apart(mut self, is_wanted: bool) -> Self {
        self.keep_apart = is_wanted;
        self
    }

    /// Whether [`Statistics::timing`](crate::Statistics::timing) is measured, at the price of two readings of the clock (20 to
    /// 50 ns each) for each claim. Default `false`.
    #[must_use]
    pub fn timing(mut self, is_measured: bool) -> Self {
        self.with_times = is_measured;
        self
    }

    /// For the models: the work that parked workers are woken for.
    #[cfg(all(test, loom))]
    pub(crate) fn worth_a_wake_up_ns(mut self, ns: u64) -> Self {
        self.worth_a_wake_up_ns = ns;
        self
    }

    /// Spawns the workers. On targets without threads (WebAssembly without atomics) there are none, whatever was asked for: the
    /// pool runs on its caller.
    ///
    /// # Errors
    ///
    /// [`Error::Spawn`] if the operating system refuses a thread, [`Error::TooManyWorkers`], and [`Error::NoParticipants`]. No
    /// thread is left behind.
    ///
    /// # Panics
    ///
    /// With the payload of the first start hook that panics, after all workers have been joined; also where a thread was
    /// refused.
    pub fn build(self) -> Result<Pool, Error> {
        let participants = self.n_participants()?;
        let places = std::sync::Arc::new(Places::new(participants));
        let parallelism = {
            let places = places.clone();
            move || places.parallelism()
        };
        let options = Options {
            spin: Spin::new(self.spin_turns, participants, Box::new(parallelism)),
            places,
            with_times: self.with_times && HAS_THREADS,
            default_floats: self.floats == FloatEnvironment::Default,
            keep_apart: self.keep_apart,
            worth_a_wake_up_ns: self.worth_a_wake_up_ns,
        };
        let (started, starts) = mpsc::channel();
        let pool = self.spawn_all(Dispatcher::new(participants, options), started);
        if self.start.is_some() {
            // Ends when every worker has let go of its sender, after its start hook.
            let mut panics = starts.into_iter();
            if let Some(first) = panics.next() {
                panics.for_each(discard);
                drop(pool);
                resume_unwind(first);
            }
            if let Ok(pool) = &pool {
                pool.count_cpus(); // a hook may have moved its worker
            }
        }
        pool
    }

    fn n_participants(&self) -> Result<usize, Error> {
        let workers = match self.width {
            Width::Workers(n) => n,
            Width::Participants(n) => n.checked_sub(1).ok_or(Error::NoParticipants)?,
        };
        if workers > Pool::MAX_WORKERS {
            return Err(Error::TooManyWorkers { requested: workers, max: Pool::MAX_WORKERS });
        }
        Ok(if HAS_THREADS { workers + 1 } else { 1 })
    }

    /// On an error the workers that run already are stopped and joined by the pool's drop.
    fn spawn_all(
        &self,
        dispatcher: Dispatcher,
        started: mpsc::Sender<Payload>,
    ) -> Result<Pool, Error> {
        let shared = dispatcher.shared().clone();
        let mut pool = Pool::without_workers(dispatcher);
        for worker in 1..shared.participants() {
            let spawned = self.spawn(worker, shared.clone(), started.clone());
            pool.add_worker(spawned.map_err(|source| Error::Spawn { worker, source })?);
        }
        Ok(pool)
    }

    fn spawn(
        &self,
        worker: usize,
        shared: Arc<Shared>,
        started: mpsc::Sender<Payload>,
    ) -> io::Result<JoinHandle<()>> {
        let mut name = (self.name)(worker);
        name.truncate(name.find('\0').unwrap_or(name.len()));
        let mut thread = thread::Builder::new().name(name);
        if let Some(bytes) = self.stack_size {
            thread = thread.stack_size(bytes);
        }
        let (start, stop) = (self.start.clone(), self.stop.clone());
        thread.spawn(move || {
            let outcome = call(start.as_ref(), worker);
            let has_started = outcome.is_ok();
            shared.places.register(worker); // where the hook has put it
            if let Err(payload) = outcome {
                // Somebody listens, as there is a hook.
                _ = started.send(payload);
            }
            drop(started);
            worker::work(&shared, worker);
            if has_started && let Err(payload) = call(stop.as_ref(), worker) {
                discard(payload);
            }
        })
    }
}

fn call(hook: Option<&Hook>, worker: usize) -> Result<(), Payload> {
    catch_unwind(AssertUnwindSafe(|| {
        if let Some(hook) = hook {
            hook(worker);
        }
    }))
}
