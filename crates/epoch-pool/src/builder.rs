//! How a pool is built.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::{fmt, io};

use crate::dispatch::Shared;
use crate::error::Error;
use crate::pool::Pool;
use crate::sync::{Arc, JoinHandle, thread};
use crate::unwind::FirstPanic;
use crate::wait::SpinPolicy;
use crate::worker;

type StartHook = dyn Fn(usize) + Send + Sync;

/// Settings of a pool to be built; [`Pool::builder`] makes one.
///
/// ```
/// let pool = epoch_pool::Pool::builder()
///     .workers(2)
///     .spin_budget(1000)
///     .thread_name(|worker| format!("decode-{worker}"))
///     .on_worker_start(|worker| println!("worker {worker} pins itself, sets its priority, …"))
///     .build()?;
/// assert_eq!(pool.participants(), 3);
/// # Ok::<(), epoch_pool::Error>(())
/// ```
pub struct Builder {
    workers: usize,
    spin_budget: u32,
    stack_size: Option<usize>,
    name: Box<dyn Fn(usize) -> String>,
    start: Option<std::sync::Arc<StartHook>>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("spin_budget", &self.spin_budget)
            .field("stack_size", &self.stack_size)
            .field("has_start_hook", &self.start.is_some())
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            workers: 0,
            spin_budget: Pool::DEFAULT_SPIN,
            stack_size: None,
            name: Box::new(|worker| format!("epoch-pool-{worker}")),
            start: None,
        }
    }

    /// Threads to spawn, the caller not counted. Default 0: all jobs run on the caller.
    #[must_use]
    pub fn workers(mut self, n_workers: usize) -> Self {
        self.workers = n_workers;
        self
    }

    /// Turns that a waiter (a worker without work, a caller whose workers still run) spends before it parks. A turn is about
    /// 40 ns, however long the CPU's pause instruction is; every 64 turns the CPU is offered to whoever waits for it. With more
    /// participants than CPUs it is offered at every turn, and 100 turns are the most. Default [`Pool::DEFAULT_SPIN`]; 0 parks
    /// at once.
    #[must_use]
    pub fn spin_budget(mut self, iterations: u32) -> Self {
        self.spin_budget = iterations;
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
    pub fn thread_name(mut self, name: impl Fn(usize) -> String + 'static) -> Self {
        self.name = Box::new(name);
        self
    }

    /// Called once on each worker, with its participant number (from 1), before it takes part in any job: the place to pin
    /// the thread or to set its quality of service. [`Builder::build`] returns after all of them have returned.
    #[must_use]
    pub fn on_worker_start(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.start = Some(std::sync::Arc::new(hook));
        self
    }

    /// Spawns the workers.
    ///
    /// # Errors
    ///
    /// [`Error::Spawn`] if the operating system refuses a thread, and [`Error::TooManyWorkers`]. No thread is left behind.
    ///
    /// # Panics
    ///
    /// With the payload of the first start hook that panics, after all workers have been joined; also where a thread was
    /// refused.
    pub fn build(self) -> Result<Pool, Error> {
        let n_workers = self.workers;
        if n_workers > Pool::MAX_WORKERS {
            return Err(Error::TooManyWorkers { requested: n_workers, max: Pool::MAX_WORKERS });
        }
        let participants = n_workers + 1;
        let spin = SpinPolicy::new(self.spin_budget, participants);
        let shared = Arc::new(Shared::new(participants, spin));
        let start_panic = std::sync::Arc::new(FirstPanic::new());
        let pool = self.spawn_all(&shared, &start_panic);
        if let (Ok(pool), true) = (&pool, self.start.is_some()) {
            // Who has taken part in a job has run its start hook.
            pool.visit_every_worker();
        }
        if let Some(payload) = start_panic.take() {
            drop(pool);
            resume_unwind(payload);
        }
        pool
    }

    /// On an error the workers that run already are stopped and joined by the pool's drop.
    fn spawn_all(
        &self,
        shared: &Arc<Shared>,
        start_panic: &std::sync::Arc<FirstPanic>,
    ) -> Result<Pool, Error> {
        let mut pool = Pool::without_workers(shared.clone());
        for worker in 1..shared.participants() {
            let spawned = self.spawn(worker, shared.clone(), start_panic.clone());
            pool.add_worker(spawned.map_err(|source| Error::Spawn { worker, source })?);
        }
        Ok(pool)
    }

    fn spawn(
        &self,
        worker: usize,
        shared: Arc<Shared>,
        start_panic: std::sync::Arc<FirstPanic>,
    ) -> io::Result<JoinHandle<()>> {
        let mut name = (self.name)(worker);
        name.truncate(name.find('\0').unwrap_or(name.len()));
        let mut thread = thread::Builder::new().name(name);
        if let Some(bytes) = self.stack_size {
            thread = thread.stack_size(bytes);
        }
        let start = self.start.clone();
        thread.spawn(move || {
            if let Some(start) = start
                && let Err(payload) = catch_unwind(AssertUnwindSafe(|| start(worker)))
            {
                start_panic.keep(payload);
            }
            worker::work(&shared, worker);
        })
    }
}
