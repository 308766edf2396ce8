//! Where the set of allowed CPUs is to come from, and where it came from.
#![forbid(unsafe_code)]

use std::fmt;

use crate::cpu_set::CpuSet;

/// Which CPUs of a described machine count as allowed.
///
/// ```
/// use cpu_topology::AllowedFrom;
///
/// let some = AllowedFrom::Set([0, 1, 4].into_iter().collect());
/// assert_ne!(some, AllowedFrom::Online);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedFrom {
    /// Those that the process of `proc/self` may use: its status file, else its cpuset, else what is online.
    Process,
    /// All that are online.
    Online,
    /// These.
    Set(CpuSet),
}

/// Where the set of allowed CPUs was found.
///
/// ```
/// use cpu_topology::{AllowedSource, CpuTopology};
///
/// let topology = CpuTopology::from_sibling_lists([(0, vec![0])]);
/// assert_eq!(topology.allowed_source(), AllowedSource::Given);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AllowedSource {
    /// The caller named them.
    Given,
    /// `sched_getaffinity` of the process.
    AffinityMask,
    /// `Cpus_allowed_list` or `Cpus_allowed` in `/proc/self/status`.
    StatusFile,
    /// The cpuset of the process's cgroup.
    Cpuset,
    /// `/sys/devices/system/cpu/online`.
    OnlineList,
    /// `/sys/devices/system/cpu/cpuN/online`, or that there is a `cpuN`.
    CpuDirectories,
    /// The `processor` lines of `/proc/cpuinfo`.
    CpuInfo,
    /// The counts of macOS's `hw.perflevelN` or `hw.physicalcpu`, or FreeBSD's `kern.sched.topology_spec` or `kern.smp.cpus`.
    Sysctl,
    /// The affinity of the process on Windows, within the active processors of all groups.
    ProcessorGroups,
    /// `std::thread::available_parallelism`, for want of anything better.
    Parallelism,
    /// Nowhere: no CPU is known.
    Nowhere,
}

impl fmt::Display for AllowedSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Given => "named by the caller",
            Self::AffinityMask => "affinity mask of the process",
            Self::StatusFile => "/proc/self/status",
            Self::Cpuset => "cpuset of the cgroup",
            Self::OnlineList => "/sys/devices/system/cpu/online",
            Self::CpuDirectories => "/sys/devices/system/cpu/cpuN",
            Self::CpuInfo => "/proc/cpuinfo",
            Self::Sysctl => "sysctl",
            Self::ProcessorGroups => "processor groups and affinity of the process",
            Self::Parallelism => "available_parallelism",
            Self::Nowhere => "nowhere",
        })
    }
}
