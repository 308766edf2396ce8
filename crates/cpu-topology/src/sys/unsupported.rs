//! Platforms without a reader.
#![forbid(unsafe_code)]

use crate::cpu_set::CpuSet;
use crate::pin::PinError;
use crate::sys::{assumed, assumed_cpus};
use crate::topology::CpuTopology;

pub(crate) fn detect() -> CpuTopology {
    assumed::topology()
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
