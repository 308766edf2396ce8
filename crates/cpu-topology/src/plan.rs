//! Thread counts and pool plans: pure functions of a `CpuTopology`.
#![forbid(unsafe_code)]

use crate::cores::PhysicalCore;
use crate::request::PlanRequest;
use crate::topology::CpuTopology;

/// How wide a pool should be, and which CPU each of its workers should be on.
///
/// `num_threads == core_ids.len()` for every plan made here. The ids are advice, which
/// [`pin_current_thread`](crate::pin_current_thread) can follow; on a system without CPU ids
/// ([`CpuTopology::ids_are_real`]) they are only names.
///
/// ```
/// use cpu_topology::{CpuTopology, plan_cpu_pool_in};
///
/// let cores = (0..8).map(|cpu| (cpu, vec![cpu & !1, cpu | 1]));
/// let plan = plan_cpu_pool_in(0, true, &CpuTopology::from_sibling_lists(cores));
/// assert_eq!((plan.num_threads, plan.core_ids), (3, vec![0, 2, 4]));
/// assert_eq!(plan.coordinator_cpu, Some(6));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CpuPoolPlan {
    /// Workers.
    pub num_threads: usize,
    /// The CPU of each worker; a CPU occurs twice only if there are more workers than CPUs.
    pub core_ids: Vec<usize>,
    /// The CPU left to the thread that hands out work, if one was reserved.
    pub coordinator_cpu: Option<usize>,
}

impl CpuPoolPlan {
    /// How many threads another library may still use beside this pool: [`clamp_intra_op_threads`] with the physical cores
    /// of the topology.
    ///
    /// ```
    /// use cpu_topology::{CpuTopology, PlanRequest};
    ///
    /// let topology = CpuTopology::from_sibling_lists((0..16).map(|cpu| (cpu, vec![cpu])));
    /// let plan = PlanRequest::new().threads(10).plan(&topology);
    /// assert_eq!(plan.left_for_library(16, &topology), 5);
    /// ```
    pub fn left_for_library(&self, configured: usize, topology: &CpuTopology) -> usize {
        clamp_intra_op_threads(configured, self, physical_core_count_in(topology))
    }
}

/// One logical CPU per physical core: its lowest allowed one. Ascending, and never empty: `[0]` if no CPU is known.
///
/// ```
/// use cpu_topology::{CpuTopology, physical_core_cpus_in};
///
/// let topology = CpuTopology::from_sibling_lists([(0, vec![0, 64]), (1, vec![1, 65]), (64, vec![0, 64])]);
/// assert_eq!(physical_core_cpus_in(&topology), [0, 1]);
/// assert_eq!(physical_core_cpus_in(&CpuTopology::default()), [0]);
/// ```
pub fn physical_core_cpus_in(topology: &CpuTopology) -> Vec<usize> {
    if topology.cores().is_empty() {
        return vec![0];
    }
    topology.cores().iter().map(PhysicalCore::first_cpu).collect()
}

/// The physical cores, but not more than the [`thread_limit`](CpuTopology::thread_limit). At least 1.
///
/// ```
/// use cpu_topology::{CpuTopology, Quota, physical_core_count_in};
///
/// let topology = CpuTopology::from_sibling_lists((0..4).map(|cpu| (cpu, vec![])));
/// assert_eq!(physical_core_count_in(&topology), 4);
/// assert_eq!(physical_core_count_in(&topology.with_quota(Quota::new(3, 2))), 1);
/// ```
pub fn physical_core_count_in(topology: &CpuTopology) -> usize {
    limited(topology.cores().len(), topology)
}

/// The performance cores (of all classes but the efficiency ones), but not more than the
/// [`thread_limit`](CpuTopology::thread_limit). At least 1.
///
/// ```
/// use cpu_topology::{CpuTopology, perf_core_count_in};
///
/// let topology = CpuTopology::from_sibling_lists((0..4).map(|cpu| (cpu, vec![])));
/// assert_eq!(perf_core_count_in(&topology), 4);
/// ```
pub fn perf_core_count_in(topology: &CpuTopology) -> usize {
    limited(topology.perf_cores().count(), topology)
}

/// How many workers, and the CPU of each.
///
/// `requested == 0` is one worker per physical core, but not more than the
/// [`thread_limit`](CpuTopology::thread_limit). Any other count is honoured exactly (up to 1,048,576): one CPU per core
/// first, then the second CPU of each core, and so on, then from the beginning again. Faster classes come before slower
/// ones, the cores of one last-level cache stand together, and ids ascend there. If no CPU is known all ids are 0.
///
/// ```
/// use cpu_topology::{CpuTopology, resolve_threads_and_affinity_in};
///
/// let topology = CpuTopology::from_sibling_lists((0..8).map(|cpu| (cpu, vec![cpu & !1, cpu | 1])));
/// assert_eq!(resolve_threads_and_affinity_in(0, &topology), (4, vec![0, 2, 4, 6]));
/// assert_eq!(resolve_threads_and_affinity_in(6, &topology), (6, vec![0, 2, 4, 6, 1, 3]));
/// assert_eq!(resolve_threads_and_affinity_in(10, &topology).1[8..], [0, 2]);
/// ```
pub fn resolve_threads_and_affinity_in(
    requested: usize,
    topology: &CpuTopology,
) -> (usize, Vec<usize>) {
    let plan = plan_cpu_pool_in(requested, false, topology);
    (plan.num_threads, plan.core_ids)
}

/// A plan for a pool.
///
/// [`PlanRequest`] has more to ask for. As [`resolve_threads_and_affinity_in`]; and if `reserve_coordinator` is set, the pool is sized automatically
/// (`requested == 0`) and has more than two workers, the last core goes to the coordinator and the pool has one worker
/// fewer. An explicit count is never reduced.
///
/// ```
/// use cpu_topology::{CpuTopology, plan_cpu_pool_in};
///
/// let two_cores = CpuTopology::from_sibling_lists([(0, vec![0]), (1, vec![1])]);
/// assert_eq!(plan_cpu_pool_in(0, true, &two_cores).coordinator_cpu, None);
/// ```
pub fn plan_cpu_pool_in(
    requested: usize,
    reserve_coordinator: bool,
    topology: &CpuTopology,
) -> CpuPoolPlan {
    PlanRequest::of_all_cores(requested, reserve_coordinator).plan(topology)
}

/// How many threads are left for a library's own parallelism inside one operation, next to a pool.
///
/// `physical_cores` less the workers, the coordinator if there is one, and the calling thread; at least 1, and at most
/// `configured` (1 where that is 0).
///
/// ```
/// use cpu_topology::{CpuPoolPlan, clamp_intra_op_threads};
///
/// let plan = CpuPoolPlan { num_threads: 3, core_ids: vec![0, 2, 4], coordinator_cpu: Some(6) };
/// assert_eq!(clamp_intra_op_threads(16, &plan, 16), 11);
/// assert_eq!(clamp_intra_op_threads(4, &plan, 16), 4);
/// assert_eq!(clamp_intra_op_threads(4, &plan, 4), 1);
/// ```
pub fn clamp_intra_op_threads(
    configured: usize,
    plan: &CpuPoolPlan,
    physical_cores: usize,
) -> usize {
    let coordinator = usize::from(plan.coordinator_cpu.is_some());
    let left = physical_cores
        .saturating_sub(plan.num_threads)
        .saturating_sub(coordinator)
        .saturating_sub(1);
    left.clamp(1, configured.max(1))
}

/// A count of cores under the topology's limit; at least 1.
pub(crate) fn limited(cores: usize, topology: &CpuTopology) -> usize {
    cores.min(topology.thread_limit().unwrap_or(usize::MAX)).max(1)
}

#[cfg(test)]
#[path = "tests/plan.rs"]
mod tests;
