//! A topology for want of any facts: as many cores as can run at once.
#![forbid(unsafe_code)]

use crate::class::Speeds;
use crate::cpu_set::CpuSet;
use crate::note::Note;
use crate::source::AllowedSource;
use crate::sys::{assumed_cpus, available_parallelism};
use crate::topology::CpuTopology;

pub(super) fn topology() -> CpuTopology {
    let siblings = assumed_cpus().iter().map(|cpu| (cpu, CpuSet::new())).collect();
    let mut topology =
        CpuTopology::build(&siblings, AllowedSource::Parallelism, &Speeds::unknown());
    topology.parallelism = Some(available_parallelism());
    topology.ids_are_real = false;
    topology.notes.extend([Note::SiblingsUnknown, Note::IdsAreMadeUp]);
    topology
}
