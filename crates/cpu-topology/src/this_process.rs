//! The plan functions for this process: each detects the topology and asks the pure function.
#![forbid(unsafe_code)]

use crate::env::{ThreadCount, report_ignored, resolve_cpu_threads_with};
use crate::plan::{
    CpuPoolPlan, perf_core_count_in, physical_core_count_in, physical_core_cpus_in,
    plan_cpu_pool_in, resolve_threads_and_affinity_in,
};
use crate::sys;
use crate::topology::CpuTopology;

/// The logical CPUs that this process may run on, ascending; never empty.
///
/// On Linux and Android the affinity mask of the process (of its first thread), however wide the kernel's masks are;
/// if that cannot be read, or is empty, `/proc/self/status`, the cpuset, the online CPUs. Elsewhere, and if all of
/// these fail, `0..available_parallelism`.
///
/// ```
/// let cpus = cpu_topology::process_affinity_cpus();
/// assert!(!cpus.is_empty() && cpus.is_sorted());
/// ```
pub fn process_affinity_cpus() -> Vec<usize> {
    sys::process_affinity_cpus().iter().collect()
}

/// One logical CPU per physical core of this process, ascending; see [`physical_core_cpus_in`].
///
/// ```
/// assert!(!cpu_topology::physical_core_cpus().is_empty());
/// ```
pub fn physical_core_cpus() -> Vec<usize> {
    physical_core_cpus_in(&CpuTopology::detect())
}

/// The physical cores of this process, at most what its quota lets run at once. At least 1.
///
/// Never more than `std::thread::available_parallelism`, but on a Windows machine with several processor groups, of which the
/// standard library counts one.
///
/// ```
/// assert!(cpu_topology::physical_core_count() >= 1);
/// ```
pub fn physical_core_count() -> usize {
    physical_core_count_in(&CpuTopology::detect())
}

/// The performance cores of this process, at most what its quota lets run at once. At least 1.
///
/// These are the cores of all classes but the efficiency ones (so of two levels on a chip that has three); every core
/// where classes cannot be told apart. If no topology can be read, `available_parallelism`.
///
/// ```
/// assert!(cpu_topology::perf_core_count() <= cpu_topology::physical_core_count());
/// ```
pub fn perf_core_count() -> usize {
    perf_core_count_in(&CpuTopology::detect())
}

/// How many threads to compute with: `FERROX_CPU_THREADS`, else `RAYON_NUM_THREADS`, else [`perf_core_count`].
///
/// A variable counts if it holds a decimal number above 0, white space around it aside. One that holds anything else
/// is reported on standard error, once per process, and the next one is asked. A number in a variable is not limited by
/// the machine. [`resolve_cpu_threads_with`] tells all this instead of printing it.
///
/// ```
/// assert!(cpu_topology::resolve_cpu_threads() >= 1);
/// ```
pub fn resolve_cpu_threads() -> usize {
    let count = cpu_threads(perf_core_count);
    report_ignored(&count);
    count.threads
}

/// Workers and their CPUs for this process; see [`resolve_threads_and_affinity_in`].
///
/// ```
/// let (threads, core_ids) = cpu_topology::resolve_threads_and_affinity(3);
/// assert_eq!((threads, core_ids.len()), (3, 3));
/// ```
pub fn resolve_threads_and_affinity(requested: usize) -> (usize, Vec<usize>) {
    resolve_threads_and_affinity_in(requested, &CpuTopology::detect())
}

/// A plan for a pool in this process; see [`plan_cpu_pool_in`].
///
/// ```
/// let plan = cpu_topology::plan_cpu_pool(0, true);
/// assert_eq!(plan.num_threads, plan.core_ids.len());
/// ```
pub fn plan_cpu_pool(requested: usize, reserve_coordinator: bool) -> CpuPoolPlan {
    plan_cpu_pool_in(requested, reserve_coordinator, &CpuTopology::detect())
}

/// The number of threads by this process's environment.
pub(crate) fn cpu_threads(default: impl FnOnce() -> usize) -> ThreadCount {
    resolve_cpu_threads_with(|name| std::env::var_os(name), default)
}
