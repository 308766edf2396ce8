//! Which CPUs are online, and which of them a process may use, from files.
#![forbid(unsafe_code)]

use crate::cpu_list::{parse_cpu_list, parse_cpu_mask};
use crate::cpu_set::CpuSet;
use crate::linux::CPU_DIRECTORY;
use crate::linux::tree::Tree;
use crate::linux::{cgroup, cpuinfo};
use crate::source::AllowedSource;

/// The CPUs of the process of `proc/self`: the first of its status file, its cpuset and the online CPUs that names any.
pub(super) fn of_process(tree: &Tree) -> (CpuSet, AllowedSource) {
    if let Some(mask) = by_status(tree) {
        return (usable(tree, mask), AllowedSource::StatusFile);
    }
    let (online, source) = online(tree);
    if let Some(cpuset) = cgroup::cpuset(tree) {
        // A configured cpuset may name CPUs that are offline.
        let both = cpuset.intersection(&online);
        return (if both.is_empty() { cpuset } else { both }, AllowedSource::Cpuset);
    }
    (online, source)
}

/// The CPUs of a mask that are online. The status file prints the mask as it was set, with CPUs that are offline or were
/// never there: a virtual machine may have room for hundreds.
///
/// The list of online CPUs does not decide alone, as some containers rewrite it with ids of their own; each CPU's word
/// counts as well. Where nothing of the mask is left, the mask stands.
fn usable(tree: &Tree, mask: CpuSet) -> CpuSet {
    let (online, source) = online(tree);
    let rest = mask.difference(&online);
    // Processors in `/proc/cpuinfo` may be numbered anew.
    if rest.is_empty() || source == AllowedSource::CpuInfo {
        return mask;
    }
    let listed = tree.numbered(CPU_DIRECTORY, "cpu").unwrap_or_default();
    let says_so = |cpu: &usize| is_online(tree, *cpu) == Some(true);
    let others = rest.intersection(&listed).iter().filter(says_so).collect();
    let usable = mask.intersection(&online).union(&others);
    if usable.is_empty() { mask } else { usable }
}

/// What a CPU says itself; CPU 0 often says nothing, as it cannot go offline.
fn is_online(tree: &Tree, cpu: usize) -> Option<bool> {
    tree.number(&format!("{CPU_DIRECTORY}/cpu{cpu}/online")).map(|online| online != 0)
}

/// The online CPUs: the list, else the directories of CPUs that do not say they are offline, else `/proc/cpuinfo`.
pub(super) fn online(tree: &Tree) -> (CpuSet, AllowedSource) {
    tree.online.get_or_init(|| find_online(tree)).clone()
}

fn find_online(tree: &Tree) -> (CpuSet, AllowedSource) {
    let list = tree.parsed(&format!("{CPU_DIRECTORY}/online"), parse_cpu_list);
    if let Some(set) = list.filter(|set| !set.is_empty()) {
        return (set, AllowedSource::OnlineList);
    }
    let set = tree
        .numbered(CPU_DIRECTORY, "cpu")
        .unwrap_or_default()
        .iter()
        .filter(|cpu| is_online(tree, *cpu) != Some(false))
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
