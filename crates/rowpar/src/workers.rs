//! What a worker does before its first job: quality of service, and where it runs.

#![forbid(unsafe_code)]

use std::{
    error::Error,
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
};

use cpu_qos::{Current, QosClass};
use cpu_topology::{CpuPoolPlan, CpuSet, PinError, PinGuard, pin_current_thread};

use crate::Placement;

/// Whether this target can spawn threads.
#[cfg(feature = "rayon")]
pub(crate) const HAS_THREADS: bool =
    cfg!(not(all(target_family = "wasm", not(target_feature = "atomics"))));

/// Why a worker is not in the class, or not on the CPUs, that it was meant for. It works all the same.
///
/// ```
/// use cpu_topology::CpuPoolPlan;
/// use rowpar::{Placement, WorkerProblem, WorkerSetup};
///
/// let setup = WorkerSetup::new(CpuPoolPlan::default()).placement(Placement::OnePerCore);
/// setup.start_hook()(0); // in a plan without CPUs there is nothing to bind to
/// assert!(setup.take_problems().iter().any(|problem| matches!(problem, WorkerProblem::Placement { worker: 0, .. })));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerProblem {
    /// The quality-of-service class was not set. A platform without classes is no problem.
    Class {
        /// The worker, as its pool numbers it.
        worker: usize,
        /// Why.
        source: cpu_qos::Error,
    },
    /// The worker was not bound. A platform that cannot bind threads is a problem to whoever asks for it.
    Placement {
        /// The worker, as its pool numbers it.
        worker: usize,
        /// Why.
        source: PinError,
    },
}

impl fmt::Display for WorkerProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class { worker, .. } => write!(f, "worker {worker} is not in its class"),
            Self::Placement { worker, .. } => write!(f, "worker {worker} is not bound to its CPUs"),
        }
    }
}

impl Error for WorkerProblem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Class { source, .. } => Some(source),
            Self::Placement { source, .. } => Some(source),
        }
    }
}

/// What the workers of a pool do before their first job, made from a plan: take a quality-of-service class, and bind themselves.
///
/// What becomes of a pool on a demoted thread, in a blocking task of an async runtime, under a narrowed mask, after a fork, and when
/// a quota changes is told in the README under "In a server".
///
/// It goes into any pool that has a start hook. `rayon_builder` and `epoch_builder` (with the features of these names) give
/// builders that have the width of the plan and the hook in place.
///
/// ```
/// use rowpar::{Placement, WorkerSetup};
///
/// let setup = WorkerSetup::new(cpu_topology::plan_cpu_pool(0, false)).placement(Placement::Set);
/// # #[cfg(feature = "epoch-pool")] {
/// let pool = setup.epoch_builder().build()?;
/// let mut out = [0.0; 2];
/// rowpar::matvec_rows(&pool, &[1.0, 2.0, 3.0, 4.0], &[1.0, 1.0], &mut out);
/// # }
/// for problem in setup.take_problems() {
///     eprintln!("{problem}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WorkerSetup {
    plan: CpuPoolPlan,
    class: QosClass,
    placement: Placement,
    problems: Arc<Mutex<Vec<WorkerProblem>>>,
}

impl WorkerSetup {
    /// Workers in the calling thread's class, or in user-initiated if that is higher, and bound nowhere.
    ///
    /// All participants of a dispatch belong into one class: who waits for a lower one waits at its pace. So this is called on a
    /// thread that is in the class of those that will call the pool. A thread in a lower class than user-initiated still gets
    /// workers in that one; it stays itself where it is, as somebody has put it there.
    pub fn new(plan: CpuPoolPlan) -> Self {
        let class = class_beside(cpu_qos::current());
        Self { plan, class, placement: Placement::None, problems: Arc::default() }
    }

    /// Workers in this class, also if it is a lower one.
    #[must_use]
    pub fn class(self, class: QosClass) -> Self {
        Self { class, ..self }
    }

    /// Where the workers run. Default [`Placement::None`].
    #[must_use]
    pub fn placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// The hook, to be called on each worker with the worker's number, which is that of its CPU in the plan.
    ///
    /// A pool that counts its caller among the participants, as [`epoch_pool`](https://docs.rs/epoch-pool) does, leaves the first
    /// CPU to the caller, which [`bind_caller`](Self::bind_caller) puts there.
    pub fn start_hook(&self) -> impl Fn(usize) + Clone + Send + Sync + 'static {
        let Self { class, problems, .. } = self.clone();
        let targets = self.targets();
        move |worker| {
            let classed = check_class(worker, cpu_qos::set_current(class));
            let bound = targets.of(worker).map(pin_current_thread).transpose();
            let placed = bound
                .map(|guard| guard.map(PinGuard::keep))
                .map_err(|source| WorkerProblem::Placement { worker, source });
            lock(&problems).extend(classed.err().into_iter().chain(placed.err()));
        }
    }

    /// Binds the calling thread as participant 0 until the guard is dropped; `None` where nobody is bound. It is for callers that
    /// take part in the work, as those of an epoch-pool do: once workers have a CPU each, a caller that wanders shares theirs.
    ///
    /// Threads and pools that the caller starts meanwhile are born with its CPUs alone, so this comes after they are built.
    ///
    /// ```
    /// use rowpar::{Placement, WorkerSetup};
    ///
    /// let setup = WorkerSetup::new(cpu_topology::plan_cpu_pool(0, false)).placement(Placement::OnePerCore);
    /// # #[cfg(feature = "epoch-pool")]
    /// let pool = setup.epoch_builder().build()?;
    /// match setup.bind_caller() {
    ///     Ok(_bound) => println!("decoding, each participant on a core of its own"),
    ///     Err(error) => println!("decoding wherever the system puts the caller: {error}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`pin_current_thread`], which leave the thread as it was.
    pub fn bind_caller(&self) -> Result<Option<PinGuard>, PinError> {
        self.targets().of(0).map(pin_current_thread).transpose()
    }

    /// What has gone wrong on workers since the last call. A pool may report itself built before all of its workers have run
    /// the hook: rayon does, and epoch-pool does not.
    pub fn take_problems(&self) -> Vec<WorkerProblem> {
        mem::take(&mut *lock(&self.problems))
    }

    /// A builder of a rayon pool with the plan's number of workers, the hook, and names. A start handler that is set on it
    /// afterwards takes the place of the hook.
    ///
    /// On targets without threads (WebAssembly without atomics) the pool is the thread that builds it, which can be in one pool
    /// only: rayon refuses to build a second one there.
    #[cfg(feature = "rayon")]
    pub fn rayon_builder(&self) -> rayon::ThreadPoolBuilder {
        self.rayon_builder_where(HAS_THREADS)
    }

    #[cfg(feature = "rayon")]
    fn rayon_builder_where(&self, has_threads: bool) -> rayon::ThreadPoolBuilder {
        let builder = rayon::ThreadPoolBuilder::new()
            .thread_name(|index| format!("rowpar-{index}"))
            .start_handler(self.start_hook());
        match has_threads {
            true => builder.num_threads(self.plan.num_threads.clamp(1, rayon::max_num_threads())),
            false => builder.num_threads(1).use_current_thread(),
        }
    }

    /// A builder of an epoch-pool whose participants, the caller included, are as many as the plan has workers, with the hook. A
    /// start hook that is set on it afterwards takes the place of this one.
    #[cfg(feature = "epoch-pool")]
    pub fn epoch_builder(&self) -> epoch_pool::Builder {
        epoch_pool::Pool::builder()
            .participants(self.plan.num_threads.max(1))
            .thread_name(|worker| format!("rowpar-{worker}"))
            .on_worker_start(self.start_hook())
    }

    fn targets(&self) -> Targets {
        let one = |cpu: &usize| [*cpu].into_iter().collect();
        let of_each = match self.placement {
            Placement::None => Vec::new(),
            Placement::OnePerCore if !self.plan.core_ids.is_empty() => {
                self.plan.core_ids.iter().map(one).collect()
            }
            // Of a plan without CPUs this is the empty set, which binding refuses with a reason.
            Placement::OnePerCore | Placement::Set => {
                vec![self.plan.core_ids.iter().copied().collect()]
            }
        };
        Targets(of_each)
    }
}

/// The CPUs of each worker; those beyond begin again with the first.
#[derive(Clone, Debug)]
struct Targets(Vec<CpuSet>);

impl Targets {
    fn of(&self, worker: usize) -> Option<&CpuSet> {
        self.0.get(worker.checked_rem(self.0.len())?)
    }
}

/// Whether there is something to report. Platforms without classes have nothing to set.
fn check_class(worker: usize, outcome: Result<(), cpu_qos::Error>) -> Result<(), WorkerProblem> {
    match outcome {
        Ok(()) | Err(cpu_qos::Error::Unsupported) => Ok(()),
        Err(source) => Err(WorkerProblem::Class { worker, source }),
    }
}

/// The class of workers that a thread found in this one waits for.
fn class_beside(caller: Current) -> QosClass {
    caller.class().map_or(QosClass::UserInitiated, |class| class.max(QosClass::UserInitiated))
}

fn lock(problems: &Mutex<Vec<WorkerProblem>>) -> std::sync::MutexGuard<'_, Vec<WorkerProblem>> {
    problems.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(core_ids: &[usize], placement: Placement) -> WorkerSetup {
        let plan = CpuPoolPlan {
            num_threads: core_ids.len(),
            core_ids: core_ids.to_vec(),
            coordinator_cpu: None,
        };
        WorkerSetup::new(plan).placement(placement)
    }

    #[test]
    fn workers_are_not_below_their_caller_nor_below_user_initiated() {
        let found = |class| Current::Class { class, relative_priority: -3 };
        for class in QosClass::ALL {
            let expected = match class {
                QosClass::UserInteractive => QosClass::UserInteractive,
                _ => QosClass::UserInitiated,
            };
            assert_eq!(class_beside(found(class)), expected, "{class}");
        }
        for none in [Current::Unspecified, Current::Other(0x30), Current::Unsupported] {
            assert_eq!(class_beside(none), QosClass::UserInitiated, "{none:?}");
        }
        let told = setup(&[0], Placement::None).class(QosClass::Utility);
        assert_eq!(told.class, QosClass::Utility);
    }

    #[test]
    fn a_class_that_is_refused_is_reported_and_none_to_set_is_not() {
        assert!(check_class(3, Ok(())).is_ok());
        assert!(check_class(3, Err(cpu_qos::Error::Unsupported)).is_ok());
        for refused in [cpu_qos::Error::OptedOut, cpu_qos::Error::Os(22)] {
            let problem = check_class(3, Err(refused)).expect_err("it was refused");
            let WorkerProblem::Class { worker: 3, source } = problem else {
                panic!("{problem:?}");
            };
            assert_eq!(source, refused);
        }
    }

    #[test]
    #[cfg(feature = "rayon")]
    fn without_threads_a_pool_of_rayon_is_the_caller() {
        // On a thread of its own, as that stays in the pool until it ends.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let setup = setup(&[0, 1, 2], Placement::None);
                let pool = setup.rayon_builder_where(false).build().expect("nothing is spawned");
                let caller = std::thread::current().id();
                let mut out = [None; 100];
                crate::for_each_range_mut(&pool, &mut out, 1, |_, part| {
                    part.fill(Some(std::thread::current().id()));
                });
                assert_eq!(out, [Some(caller); 100]);
                assert_eq!(crate::RowPool::participants(&pool), 1);
            });
        });
    }

    #[test]
    fn each_policy_has_its_cpus() {
        let targets = |placement, worker| {
            let targets = setup(&[4, 0, 6], placement).targets();
            targets.of(worker).map(|cpus| cpus.iter().collect::<Vec<_>>())
        };
        for worker in 0..7 {
            assert_eq!(targets(Placement::None, worker), None);
            assert_eq!(targets(Placement::Set, worker), Some(vec![0, 4, 6]));
            let own = [4, 0, 6][worker % 3];
            assert_eq!(targets(Placement::OnePerCore, worker), Some(vec![own]));
        }
    }
}
