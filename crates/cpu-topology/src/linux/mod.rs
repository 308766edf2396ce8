//! Linux: the topology that lies in files under any root. Built and tested on every OS.
#![forbid(unsafe_code)]

mod allowed;
mod caches;
mod cgroup;
mod collect;
mod cpuinfo;
mod files;
mod host;
mod places;
mod siblings;
mod speed;
mod tree;

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) use self::collect::{Collected, collect};
use self::files::Files;
use self::tree::{CpuDirectory, Tree};
use crate::class::Speeds;
use crate::cores::PhysicalCore;
use crate::cpu_set::CpuSet;
use crate::note::Note;
use crate::snapshot::Snapshot;
use crate::source::{AllowedFrom, AllowedSource};
use crate::topology::CpuTopology;

/// Where the CPUs are described, under a root that holds `sys/`.
const CPU_DIRECTORY: &str = "sys/devices/system/cpu";

/// Where its NUMA nodes are described.
const NODE_DIRECTORY: &str = "sys/devices/system/node";

/// The CPUs `allowed` as the directory `root` describes them; nothing outside of it is read.
pub(crate) fn read_cpu_directory(root: &Path, allowed: &CpuSet) -> CpuTopology {
    let tree = Tree::new(root);
    let directory = CpuDirectory::new(&tree, "");
    let siblings =
        siblings::by_files(&tree, &directory, allowed).unwrap_or_else(|| unknown(allowed));
    let topology = build(&tree, &directory, &siblings, AllowedSource::Given, false);
    with_notes(topology, tree)
}

/// The machine under `root`, with the quota of the process that `root/proc/self` is of.
pub(crate) fn read_root(root: &Path, allowed: &AllowedFrom) -> CpuTopology {
    read_process(Tree::new(root), allowed)
}

/// The same of a machine whose files are in memory.
pub(crate) fn read_snapshot(snapshot: &Snapshot, allowed: &AllowedFrom) -> CpuTopology {
    read_process(Tree::of(Files::Memory(snapshot.clone())), allowed)
}

fn read_process(tree: Tree, allowed: &AllowedFrom) -> CpuTopology {
    let (allowed, source) = match allowed {
        AllowedFrom::Set(set) => (set.clone(), AllowedSource::Given),
        AllowedFrom::Online => allowed::online(&tree),
        AllowedFrom::Process => noted(&tree, allowed::of_process(&tree)),
    };
    read_machine(tree, &allowed, source)
}

/// The running machine, for the CPUs of the affinity mask where it can be read.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn read_running(
    mask: impl Fn() -> Option<CpuSet>,
    fallback: impl Fn() -> CpuSet,
) -> CpuTopology {
    let read = || {
        let tree = Tree::new(Path::new("/"));
        let (allowed, source) = running_cpus(&tree, mask(), &fallback);
        read_machine(tree, &allowed, source)
    };
    until_steady(read, || allowed::online(&Tree::new(Path::new("/"))).0)
}

/// Reads again if CPUs have come or gone while it was read, as files of before and after do not fit together.
#[cfg(any(target_os = "linux", target_os = "android", test))]
fn until_steady(
    mut read: impl FnMut() -> CpuTopology,
    mut online: impl FnMut() -> CpuSet,
) -> CpuTopology {
    const TRIES: usize = 3;
    let mut topology = read();
    for _ in 1..TRIES {
        if topology.online().is_none_or(|before| *before == online()) {
            return topology;
        }
        topology = read();
    }
    if topology.online().is_some_and(|before| *before != online()) {
        topology.notes.push(Note::CpusChanging);
    }
    topology
}

/// The CPUs of the running process: the affinity mask, else what the files say, else `fallback`.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn running_process_cpus(
    mask: Option<CpuSet>,
    fallback: impl FnOnce() -> CpuSet,
) -> CpuSet {
    running_cpus(&Tree::new(Path::new("/")), mask, fallback).0
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn running_cpus(
    tree: &Tree,
    mask: Option<CpuSet>,
    fallback: impl FnOnce() -> CpuSet,
) -> (CpuSet, AllowedSource) {
    // A mask of zeros, which some old kernels gave, says nothing.
    if let Some(mask) = mask.filter(|mask| !mask.is_empty()) {
        return (mask, AllowedSource::AffinityMask);
    }
    let found = match allowed::of_process(tree) {
        (set, _) if set.is_empty() => (fallback(), AllowedSource::Parallelism),
        found => found,
    };
    noted(tree, found)
}

/// Says so if the allowed CPUs are not from a mask of the process.
fn noted(tree: &Tree, (allowed, source): (CpuSet, AllowedSource)) -> (CpuSet, AllowedSource) {
    if source != AllowedSource::StatusFile {
        tree.note(Note::AllowedGuessed { source });
    }
    (allowed, source)
}

fn read_machine(tree: Tree, allowed: &CpuSet, source: AllowedSource) -> CpuTopology {
    let directory = CpuDirectory::new(&tree, CPU_DIRECTORY);
    let siblings = siblings::by_files(&tree, &directory, allowed)
        .or_else(|| siblings::by_guess(&tree, &directory, allowed))
        .unwrap_or_else(|| {
            if allowed.len() > 1 {
                tree.note(Note::SiblingsUnknown);
            }
            unknown(allowed)
        });
    let topology = build(&tree, &directory, &siblings, source, true);
    let topology = topology.with_quota(cgroup::tightest_quota(&tree));
    with_notes(topology, tree)
}

/// Cores and classes. Facts outside of the directory of the CPUs count only if a whole machine is described.
fn build(
    tree: &Tree,
    directory: &CpuDirectory,
    siblings: &BTreeMap<usize, CpuSet>,
    source: AllowedSource,
    whole_machine: bool,
) -> CpuTopology {
    let number = |signal, core: &_| speed::number(tree, directory, signal, core);
    let cpus = siblings.keys().copied().collect();
    let others = |signal| speed::of_others(tree, directory, signal, &cpus);
    let pmu = if whole_machine { speed::pmu_lists(tree) } else { Vec::new() };
    let designs = LazyCell::new(|| {
        if whole_machine { speed::designs(tree, directory) } else { BTreeMap::new() }
    });
    let design = |core: &PhysicalCore| designs.get(&core.first_cpu()).copied();
    let speeds = Speeds {
        pmu,
        number: Box::new(number),
        others: Box::new(others),
        design: Box::new(design),
    };
    let mut topology = CpuTopology::build(siblings, source, &speeds);
    topology.places = places::in_cpu_directory(tree, directory, &topology.cores, &cpus);
    if whole_machine {
        topology.places =
            places::on_machine(tree, &topology.cores, &cpus, std::mem::take(&mut topology.places));
    }
    topology
}

/// Every CPU with siblings unknown.
fn unknown(allowed: &CpuSet) -> BTreeMap<usize, CpuSet> {
    allowed.iter().map(|cpu| (cpu, CpuSet::new())).collect()
}

/// Adds what was met in the files to what was met in their contents.
fn with_notes(mut topology: CpuTopology, tree: Tree) -> CpuTopology {
    const KEPT: usize = 200;
    topology.n_files = tree.n_opened();
    topology.notes.splice(0..0, tree.into_notes());
    if topology.notes.len() > KEPT {
        let count = topology.notes.len() - KEPT;
        topology.notes.truncate(KEPT);
        topology.notes.push(Note::More { count });
    }
    topology
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_changes_is_read_again_and_not_for_ever() {
        /// CPUs online in turn, as each reading and each look after it finds them; readings; whether that is noted.
        const CASES: &[(&[usize], usize, bool)] = &[
            (&[4, 4], 1, false),
            (&[4, 5, 5, 5], 2, false),
            (&[4, 5, 6, 7, 7, 7], 3, false),
            (&[4, 5, 6, 7, 8, 9], 3, true),
        ];
        for (counts, expected, noted) in CASES {
            let counts = std::cell::RefCell::new(counts.iter());
            let next =
                || (0..*counts.borrow_mut().next().expect("no more looks than that")).collect();
            let mut n_readings = 0;
            let read = || {
                n_readings += 1;
                let mut topology = CpuTopology::default();
                topology.places.online = Some(next());
                topology
            };
            let topology = until_steady(read, next);
            assert_eq!(topology.notes().contains(&Note::CpusChanging), *noted);
            assert_eq!(n_readings, *expected);
        }
        let mut n_readings = 0;
        let unknown = || {
            n_readings += 1;
            CpuTopology::default()
        };
        until_steady(unknown, || unreachable!("nothing to compare with"));
        assert_eq!(n_readings, 1);
    }
}
