//! Platforms without a reader.
#![forbid(unsafe_code)]

use crate::cpu_set::CpuSet;
use crate::sys::{assumed, assumed_cpus};
use crate::topology::CpuTopology;

pub(crate) fn detect() -> CpuTopology {
    assumed::topology()
}

pub(crate) fn process_affinity_cpus() -> CpuSet {
    assumed_cpus()
}
