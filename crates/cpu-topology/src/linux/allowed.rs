//! Which CPUs are online, and which of them a process may use, from files.
#![forbid(unsafe_code)]

use crate::cpu_list::{parse_cpu_list, parse_cpu_mask};
use crate::cpu_set::CpuSet;
use crate::linux::CPU_DIRECTORY;
use crate::linux::tree::Tree;
use crate::linux::{cgroup, cpuinfo};
use crate::source::AllowedSource;

/// The CPUs of the process of `proc/self`: the first of its status file, its cpuset and the online CPUs that names any.
///
/// The status file stands alone: its mask leaves out what is offline already, and inside some containers the list of
/// online CPUs has other ids.
pub(super) fn of_process(tree: &Tree) -> (CpuSet, AllowedSource) {
    if let Some(set) = by_status(tree) {
        return (set, AllowedSource::StatusFile);
    }
    let (online, source) = online(tree);
    if let Some(cpuset) = cgroup::cpuset(tree) {
        // A configured cpuset may name CPUs that are offline.
        let both = cpuset.intersection(&online);
        return (if both.is_empty() { cpuset } else { both }, AllowedSource::Cpuset);
    }
    (online, source)
}

/// The online CPUs: the list, else the directories of CPUs that do not say they are offline, else `/proc/cpuinfo`.
pub(super) fn online(tree: &Tree) -> (CpuSet, AllowedSource) {
    let list = tree.parsed(&format!("{CPU_DIRECTORY}/online"), parse_cpu_list);
    if let Some(set) = list.filter(|set| !set.is_empty()) {
        return (set, AllowedSource::OnlineList);
    }
    let is_online =
        |cpu: &usize| tree.number(&format!("{CPU_DIRECTORY}/cpu{cpu}/online")) != Some(0);
    let set = tree
        .numbered(CPU_DIRECTORY, "cpu")
        .unwrap_or_default()
        .iter()
        .filter(is_online)
        .collect::<CpuSet>();
    if !set.is_empty() {
        return (set, AllowedSource::CpuDirectories);
    }
    let set = by_cpuinfo(tree);
    let source = if set.is_empty() { AllowedSource::Nowhere } else { AllowedSource::CpuInfo };
    (set, source)
}

/// `Cpus_allowed_list`, else the mask `Cpus_allowed`; `None` if there is none, or it names no CPU.
fn by_status(tree: &Tree) -> Option<CpuSet> {
    const PATH: &str = "proc/self/status";
    let text = tree.table(PATH)?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let list = value("Cpus_allowed_list").map(parse_cpu_list);
    let mask = || value("Cpus_allowed").map(parse_cpu_mask);
    for found in list.into_iter().chain(std::iter::once_with(mask).flatten()) {
        match found {
            Ok(set) if !set.is_empty() => return Some(set),
            Ok(_) => {}
            Err(error) => tree.malformed(PATH, error),
        }
    }
    None
}

fn by_cpuinfo(tree: &Tree) -> CpuSet {
    cpuinfo::processors(tree).into_keys().collect()
}
