//! Apple platforms: `sysctlbyname`.

use crate::apple;
use crate::cpu_set::CpuSet;
use crate::pin::PinError;
use crate::sys::sysctl::System;
use crate::sys::{assumed, assumed_cpus, available_parallelism};
use crate::topology::CpuTopology;

pub(crate) fn detect() -> CpuTopology {
    let mut topology = apple::read(&System);
    if topology.is_empty() {
        return assumed::topology();
    }
    topology.parallelism = Some(available_parallelism());
    topology
}

pub(crate) fn process_affinity_cpus() -> CpuSet {
    assumed_cpus()
}

pub(crate) fn thread_affinity() -> Result<CpuSet, PinError> {
    Err(PinError::Unsupported)
}

pub(crate) fn set_thread_affinity(_cpus: &CpuSet) -> Result<(), PinError> {
    Err(PinError::Unsupported)
}
