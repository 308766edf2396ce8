//! What a pool may ask for, and the plan that follows from a topology.
#![forbid(unsafe_code)]

use std::ffi::OsString;

use crate::cores::PhysicalCore;
use crate::cpu_list::MAX_CPU_ID;
use crate::cpu_set::CpuSet;
use crate::env::{ThreadCount, ThreadSource, resolve_cpu_threads_with};
use crate::explain::{PlanReport, report};
use crate::plan::{CpuPoolPlan, limited, perf_core_count_in};
use crate::topology::CpuTopology;

/// A request for a pool plan, by default of one worker per performance core within the quota.
///
/// A plan takes CPUs in this order: one of each core, faster classes first, and in a class the cores of one last-level
/// cache after the other; then the second CPU of each core in the same order, and so on. Cores of classes that are not
/// asked for, and CPUs beyond [`threads_per_core`](Self::threads_per_core), come last and serve explicit counts only. With
/// more workers than CPUs the order starts again.
///
/// ```
/// use cpu_topology::{CpuTopology, PlanRequest, Quota};
///
/// // Four cores of two CPUs.
/// let topology = CpuTopology::from_sibling_lists((0..8).map(|cpu| (cpu, vec![cpu & !1, cpu | 1])));
/// assert_eq!(PlanRequest::new().plan(&topology).core_ids, [0, 2, 4, 6]);
/// let both = PlanRequest::new().threads_per_core(2);
/// assert_eq!(both.plan(&topology).num_threads, 8);
/// let limited = topology.with_quota(Quota::new(350_000, 100_000));
/// assert_eq!(both.plan(&limited).core_ids, [0, 2, 4]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRequest {
    threads: usize,
    threads_per_core: usize,
    all_classes: bool,
    reserve_coordinator: bool,
    variables: Option<ThreadCount>,
}

impl PlanRequest {
    /// One worker per performance core, no more than the quota pays for, and no coordinator.
    pub const fn new() -> Self {
        Self {
            threads: 0,
            threads_per_core: 1,
            all_classes: false,
            reserve_coordinator: false,
            variables: None,
        }
    }

    /// What the functions of two arguments ask for: cores of every class.
    pub(crate) fn of_all_cores(threads: usize, reserve_coordinator: bool) -> Self {
        Self { threads, all_classes: true, reserve_coordinator, ..Self::new() }
    }

    /// Exactly so many workers, up to 1,048,576, whatever the machine and its quota; 0 sizes the pool automatically.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// At most so many workers per core in a pool that is sized automatically; 0 is taken as 1. Cores with fewer allowed
    /// CPUs get fewer. One is best for arithmetic on most machines, and two on POWER.
    #[must_use]
    pub fn threads_per_core(self, threads_per_core: usize) -> Self {
        Self { threads_per_core: threads_per_core.max(1), ..self }
    }

    /// Whether efficiency cores get workers in a pool that is sized automatically.
    #[must_use]
    pub fn all_classes(self, all_classes: bool) -> Self {
        Self { all_classes, ..self }
    }

    /// Whether the thread that hands out work gets a CPU of its own, if the pool is sized automatically and has more than
    /// two workers. It gets a CPU of a core that has no worker (of efficiency cores, say), if the quota pays for one thread
    /// more; else the CPU of the last worker, and the pool has one worker fewer. With more than one worker per core, that CPU
    /// may be of a core that keeps another worker.
    #[must_use]
    pub fn reserve_coordinator(self, reserve_coordinator: bool) -> Self {
        Self { reserve_coordinator, ..self }
    }

    /// Lets [`THREAD_VARIABLES`](crate::THREAD_VARIABLES) decide on the number of workers where
    /// [`threads`](Self::threads) does not. `lookup` gives the value of a variable.
    ///
    /// Variables with junk in them are ignored, which [`explain`](Self::explain) reports.
    ///
    /// ```
    /// use cpu_topology::{CpuTopology, PlanRequest};
    ///
    /// let topology = CpuTopology::detect();
    /// let request = PlanRequest::new().variables(|name| std::env::var_os(name));
    /// println!("{}", request.explain(&topology));
    /// ```
    #[must_use]
    pub fn variables(self, lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        Self { variables: Some(resolve_cpu_threads_with(lookup, || 0)), ..self }
    }

    /// The plan for this topology. It has at least one worker.
    pub fn plan(&self, topology: &CpuTopology) -> CpuPoolPlan {
        let order = self.order(topology);
        let explicit = self.explicit();
        let threads = match explicit {
            0 => limited(self.slots(topology), topology),
            threads => threads.min(MAX_CPU_ID + 1),
        };
        let core_ids = order.iter().copied().cycle().take(threads).collect::<Vec<_>>();
        let mut plan = CpuPoolPlan { num_threads: threads, core_ids, coordinator_cpu: None };
        if self.reserve_coordinator && explicit == 0 && threads > 2 {
            plan.coordinator_cpu =
                spare_core(&plan, topology, &order).or_else(|| plan.core_ids.pop());
            plan.num_threads = plan.core_ids.len();
        }
        plan
    }

    /// The plan with the reason of each number.
    pub fn explain(&self, topology: &CpuTopology) -> PlanReport {
        let unset =
            || ThreadCount { threads: 0, source: ThreadSource::PerfCores, ignored: Vec::new() };
        let mut count = self.variables.clone().unwrap_or_else(unset);
        if count.source == ThreadSource::PerfCores {
            count.threads = perf_core_count_in(topology);
        }
        report(self, topology, count)
    }

    /// The number of workers that was asked for, here or by a variable; 0 if none was.
    pub(crate) fn explicit(&self) -> usize {
        match &self.variables {
            Some(ThreadCount { threads, source: ThreadSource::Variable(_), .. })
                if self.threads == 0 =>
            {
                *threads
            }
            _ => self.threads,
        }
    }

    pub(crate) fn wants_coordinator(&self) -> bool {
        self.reserve_coordinator
    }

    pub(crate) fn takes_all_classes(&self) -> bool {
        self.all_classes
    }

    pub(crate) fn threads_per_each_core(&self) -> usize {
        self.threads_per_core
    }

    /// How many workers the machine has room for, whatever the quota.
    pub(crate) fn slots(&self, topology: &CpuTopology) -> usize {
        let width = |core: &PhysicalCore| core.cpus().len().min(self.threads_per_core);
        topology.cores().iter().filter(|core| self.wants(topology, core)).map(width).sum()
    }

    fn wants(&self, topology: &CpuTopology, core: &PhysicalCore) -> bool {
        let class = topology.classes().get(core.class());
        self.all_classes || !class.is_some_and(|class| class.is_efficiency())
    }

    /// CPUs in the order in which workers get them; never empty.
    fn order(&self, topology: &CpuTopology) -> Vec<usize> {
        let caches = topology.places.caches_by_cpu();
        let mut slots = Vec::with_capacity(topology.len());
        for core in topology.cores() {
            let wanted = self.wants(topology, core);
            let cache = caches.get(&core.first_cpu()).copied().unwrap_or(usize::MAX);
            slots.extend(core.cpus().iter().enumerate().map(|(rank, cpu)| {
                let last = !wanted || rank >= self.threads_per_core;
                (last, rank, core.class(), cache, cpu)
            }));
        }
        slots.sort_unstable();
        let order = slots.into_iter().map(|(.., cpu)| cpu).collect::<Vec<_>>();
        if order.is_empty() { vec![0] } else { order }
    }
}

impl Default for PlanRequest {
    fn default() -> Self {
        Self::new()
    }
}

/// The first CPU in this order whose core has no worker, if one thread more may run at once.
fn spare_core(plan: &CpuPoolPlan, topology: &CpuTopology, order: &[usize]) -> Option<usize> {
    if topology.thread_limit().is_some_and(|limit| limit <= plan.num_threads) {
        return None;
    }
    let busy = plan.core_ids.iter().copied().collect::<CpuSet>();
    let is_idle = |core: &&PhysicalCore| !core.cpus().iter().any(|cpu| busy.contains(cpu));
    let idle = topology.cores().iter().filter(is_idle);
    let idle = idle.map(PhysicalCore::first_cpu).collect::<CpuSet>();
    order.iter().copied().find(|cpu| idle.contains(*cpu))
}

#[cfg(test)]
#[path = "tests/request.rs"]
mod tests;
