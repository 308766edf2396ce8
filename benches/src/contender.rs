//! What takes part in a comparison: a backend, where its threads run, and how long they spin.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use cpu_topology::CpuPoolPlan;
use rowpar::{Placement, RowPool, Serial, WorkerSetup};
use serde::{Deserialize, Serialize};

use crate::{Backend, PoolError, Spawn};

/// What stands in front of a spin budget in a name.
const SPIN: &str = "spin=";

/// A backend with a placement of its threads and a spin budget: `epoch`, `epoch@one-per-core` if they are bound, `epoch@spin=4000` if
/// their budget is another than the usual one, or `epoch@set@spin=0`.
///
/// ```
/// use benches::{Backend, Contender};
///
/// let contender: Contender = "epoch@set".parse().unwrap();
/// assert_eq!(contender.backend(), Backend::Epoch);
/// assert_eq!("epoch@spin=4000".parse::<Contender>().unwrap().spin(), Some(4000));
/// assert_eq!(Contender::from(Backend::Epoch).to_string(), "epoch");
/// assert!("serial@set".parse::<Contender>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Contender {
    backend: Backend,
    placement: Placement,
    spin: Option<u32>,
}

impl Contender {
    /// Each backend with each placement and each spin budget; once and unbound, if its threads are not started by this workspace's
    /// crates, and with the budget that it has, if that cannot be chosen or none is given here.
    ///
    /// ```
    /// use benches::{Backend, Contender, Placement};
    ///
    /// let all = Contender::all(&[Backend::Serial, Backend::Epoch], &[Placement::None, Placement::Set], &[]);
    /// let names: Vec<String> = all.iter().map(Contender::to_string).collect();
    /// assert_eq!(names, ["serial", "epoch", "epoch@set"]);
    /// ```
    pub fn all(backends: &[Backend], placements: &[Placement], spins: &[u32]) -> Vec<Self> {
        let chosen: Vec<Option<u32>> = spins.iter().copied().map(Some).collect();
        let mut all: Vec<Self> = Vec::new();
        for &backend in backends {
            let placements = if backend.can_be_bound() { placements } else { &[Placement::None] };
            let spins =
                if backend.can_spin() && !chosen.is_empty() { &chosen } else { &[None][..] };
            let each = placements
                .iter()
                .flat_map(|&placement| spins.iter().map(move |&spin| (placement, spin)));
            for (placement, spin) in each {
                let contender = Self { backend, placement, spin };
                if !all.contains(&contender) {
                    all.push(contender);
                }
            }
        }
        all
    }

    /// The pool.
    pub const fn backend(self) -> Backend {
        self.backend
    }

    /// Where its threads run.
    pub const fn placement(self) -> Placement {
        self.placement
    }

    /// Loop turns that a waiter spends before it parks, if it is another number than the backend has by itself.
    pub const fn spin(self) -> Option<u32> {
        self.spin
    }

    /// Whether its threads are bound to CPUs.
    pub fn is_bound(self) -> bool {
        self.placement != Placement::None
    }

    /// Builds the pool for `n_threads`, to be called from a thread outside of it.
    ///
    /// # Errors
    ///
    /// A thread could not be spawned, a worker not be bound, or the backend is a peer.
    pub fn pool(self, n_threads: usize) -> Result<Box<dyn RowPool>, PoolError> {
        self.pool_with(&self.setup(n_threads), n_threads)
    }

    /// Builds the pool and calls `f` where its caller stands: in a worker for `rayon-inside`, and on the CPUs of participant 0 for
    /// bound pools whose caller is one.
    ///
    /// At most one pool may live in a process that measures: two spinning pools measure each other.
    ///
    /// # Errors
    ///
    /// As for [`pool`](Self::pool); the caller could not be bound.
    pub fn with_pool<R: Send>(
        self,
        n_threads: usize,
        f: impl FnOnce(&dyn RowPool) -> R + Send,
    ) -> Result<R, PoolError> {
        let setup = self.setup(n_threads);
        if self.backend == Backend::RayonInside {
            let pool = build_rayon(&setup)?;
            return Ok(pool.install(|| f(&pool)));
        }
        let pool = self.pool_with(&setup, n_threads)?;
        let _bound = if self.backend == Backend::Rayon { None } else { setup.bind_caller()? };
        Ok(f(&*pool))
    }

    fn pool_with(
        self,
        setup: &WorkerSetup,
        n_threads: usize,
    ) -> Result<Box<dyn RowPool>, PoolError> {
        let backend = self.backend;
        Ok(match backend {
            Backend::Serial => Box::new(Serial),
            Backend::Spawn => Box::new(Spawn::new(backend.participants(n_threads))),
            Backend::Rayon | Backend::RayonInside => Box::new(build_rayon(setup)?),
            Backend::Epoch | Backend::EpochX2 | Backend::EpochX4 => {
                let spin = self.spin.unwrap_or(epoch_pool::Pool::DEFAULT_SPIN);
                Box::new(build_epoch(setup, spin)?)
            }
            Backend::EpochSpin0 => Box::new(build_epoch(setup, 0)?),
            Backend::Original
            | Backend::Spindle
            | Backend::Paralight
            | Backend::Chili
            | Backend::Libgomp
            | Backend::Pthreadpool
            | Backend::Openblas
            | Backend::Matrixmultiply
            | Backend::Gemm
            | Backend::Candle
            | Backend::OriginalMatvec => {
                return Err(format!("{self} is built by the package in benches/peers").into());
            }
            Backend::LlamaCpp => {
                return Err(format!("{self} is an engine of its own, and no pool").into());
            }
        })
    }

    /// What the workers do first: participant `i` belongs to the `i`-th CPU of the plan for so many.
    fn setup(self, n_threads: usize) -> WorkerSetup {
        let num_threads = self.backend.participants(n_threads);
        let (_, core_ids) = cpu_topology::resolve_threads_and_affinity(num_threads);
        let plan = CpuPoolPlan { num_threads, core_ids, coordinator_cpu: None };
        WorkerSetup::new(plan).placement(self.placement)
    }
}

fn build_rayon(setup: &WorkerSetup) -> Result<rayon::ThreadPool, PoolError> {
    let pool = setup.rayon_builder().build()?;
    // After this, every worker has started and said what went wrong.
    pool.broadcast(|_| ());
    refuse_problems(setup)?;
    Ok(pool)
}

fn build_epoch(setup: &WorkerSetup, spin_budget: u32) -> Result<epoch_pool::Pool, PoolError> {
    let pool = setup.epoch_builder().spin_budget(spin_budget).build()?;
    refuse_problems(setup)?;
    Ok(pool)
}

/// A worker that is elsewhere than its name says would be measured all the same.
fn refuse_problems(setup: &WorkerSetup) -> Result<(), PoolError> {
    match setup.take_problems().first() {
        Some(problem) => {
            let why = problem.source().map(|source| format!(": {source}")).unwrap_or_default();
            Err(format!("{problem}{why}").into())
        }
        None => Ok(()),
    }
}

impl From<Backend> for Contender {
    /// Unbound, and with the spin budget that it has.
    fn from(backend: Backend) -> Self {
        Self { backend, placement: Placement::None, spin: None }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = self.backend.name().to_owned();
        if self.is_bound() {
            name += &format!("@{}", self.placement);
        }
        if let Some(spin) = self.spin {
            name += &format!("@{SPIN}{spin}");
        }
        f.pad(&name)
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut words = name.split('@');
        let backend: Backend = words.next().unwrap_or_default().parse()?;
        let mut contender = Self::from(backend);
        let mut words = words.peekable();
        if let Some(word) = words.next_if(|word| !word.starts_with(SPIN)) {
            contender.placement = word.parse().map_err(|error| format!("{error}"))?;
        }
        if let Some(word) = words.next() {
            let digits = word.strip_prefix(SPIN).and_then(|digits| digits.parse().ok());
            contender.spin = Some(digits.ok_or_else(|| format!("`{word}` is no spin budget"))?);
        }
        if let Some(word) = words.next() {
            return Err(format!("`@{word}` is one word too many in `{name}`"));
        }
        if contender.is_bound() && !backend.can_be_bound() {
            return Err(format!("the threads of {backend} cannot be bound from here"));
        }
        if contender.spin.is_some() && !backend.can_spin() {
            return Err(format!("{backend} has no spin budget to choose"));
        }
        Ok(contender)
    }
}

impl TryFrom<String> for Contender {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<Contender> for String {
    fn from(contender: Contender) -> Self {
        contender.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use cpu_topology::{CpuSet, current_thread_affinity};

    use super::*;

    #[test]
    fn names_parse_and_serialize_alike() {
        let unspun = Contender::all(Backend::ALL, Placement::ALL, &[]);
        assert_eq!(unspun.len(), Backend::ALL.len() + 2 * 6, "six of them can be bound");
        let all = Contender::all(Backend::ALL, Placement::ALL, &[0, 4000]);
        assert_eq!(all.len(), unspun.len() + 3 * 3, "three of those have a spin budget to choose");
        for contender in all {
            assert_eq!(contender.to_string().parse::<Contender>().unwrap(), contender);
            let json = serde_json::to_string(&contender).unwrap();
            assert_eq!(json, format!("\"{contender}\""));
            assert_eq!(serde_json::from_str::<Contender>(&json).unwrap(), contender);
        }
        for name in [
            "",
            "@",
            "epoch@",
            "@set",
            "tbb",
            "tbb@set",
            "epoch@core",
            "chili@set",
            "rayon@spin=1",
            "epoch-spin0@spin=1",
            "llama.cpp@spin=1",
            "epoch@spin=",
            "epoch@spin=-1",
            "epoch@spin=4294967296",
            "epoch@spin=1@set",
            "epoch@set@set",
            "epoch@set@spin=1@spin=1",
        ] {
            assert!(name.parse::<Contender>().is_err(), "{name:?}");
        }
        assert_eq!("epoch@none".parse(), Ok(Contender::from(Backend::Epoch)));
    }

    /// The CPUs of each thread that runs a part of a job, of a pool of three.
    fn found(contender: Contender) -> Vec<CpuSet> {
        let found = Mutex::new(Vec::new());
        let look = |pool: &dyn RowPool| {
            pool.for_each_range(300, 1, &|_| {
                found.lock().unwrap().push(current_thread_affinity().unwrap());
            });
        };
        contender.with_pool(3, look).unwrap();
        found.into_inner().unwrap()
    }

    #[test]
    fn whoever_takes_part_is_where_the_name_says_and_the_caller_gets_its_own_back() {
        let Ok(before) = current_thread_affinity() else { return };
        let (_, cpus) = cpu_topology::resolve_threads_and_affinity(3);
        let plan: CpuSet = cpus.into_iter().collect();
        for contender in Contender::all(Backend::ALL, Placement::ALL, &[]) {
            if !contender.backend.can_be_bound() {
                continue;
            }
            for cpus in found(contender) {
                match contender.placement {
                    Placement::Set => assert_eq!(cpus, plan, "{contender}"),
                    Placement::OnePerCore => {
                        assert_eq!(cpus.len(), 1, "{contender}");
                        assert!(cpus.is_subset(&plan), "{contender}");
                    }
                    _ => assert_eq!(cpus, before, "{contender}"),
                }
            }
            assert_eq!(current_thread_affinity().unwrap(), before, "{contender}");
        }
    }

    #[test]
    fn a_worker_that_is_not_where_it_belongs_is_an_error() {
        let plan = CpuPoolPlan {
            num_threads: 2,
            core_ids: vec![cpu_topology::MAX_CPU_ID],
            coordinator_cpu: None,
        };
        let setup = WorkerSetup::new(plan).placement(Placement::OnePerCore);
        assert!(build_rayon(&setup).is_err());
        assert!(build_epoch(&setup, 0).is_err());
    }
}
