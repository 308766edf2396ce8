//! The CPUs that each thread of this process may run on.
#![forbid(unsafe_code)]

use std::fs;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// The CPUs that this process was given.
#[derive(Debug)]
pub(crate) struct Affinity {
    all: CpuSet,
    cpus: Vec<usize>,
}

impl Affinity {
    /// `None` if there is no choice, or the mask cannot be read.
    pub(crate) fn of_this_process() -> Option<Self> {
        let all = sched_getaffinity(None).ok()?;
        let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu)).collect();
        (cpus.len() > 1).then_some(Self { all, cpus })
    }

    /// Gives each thread of this process those CPUs that `choose` keeps, or all where it keeps none. Returns how many masks
    /// were set: threads end meanwhile.
    pub(crate) fn shuffle(&self, mut choose: impl FnMut() -> bool) -> u64 {
        let Ok(threads) = fs::read_dir("/proc/self/task") else { return 0 };
        let ids = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut n_set = 0;
        for thread in ids.filter_map(Pid::from_raw) {
            let mut mask = CpuSet::new();
            self.cpus.iter().filter(|_| choose()).for_each(|&cpu| mask.set(cpu));
            let mask = if mask.count() == 0 { &self.all } else { &mask };
            n_set += u64::from(sched_setaffinity(Some(thread), mask).is_ok());
        }
        n_set
    }
}
