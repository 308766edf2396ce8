//! Packages, dies, clusters, NUMA nodes, isolated CPUs, and whether the machine looks virtual.
#![forbid(unsafe_code)]

use crate::cores::PhysicalCore;
use crate::cpu_list::{parse_cpu_list, parse_cpu_mask};
use crate::cpu_set::CpuSet;
use crate::linux::tree::{CpuDirectory, Tree};
use crate::linux::{CPU_DIRECTORY, NODE_DIRECTORY, allowed, caches, cpuinfo};
use crate::note::Note;
use crate::places::{CpuGroup, Places, cache_domains, groups, numa_nodes};

/// What x86 kernels print as the number of a cluster that they do not know.
const NO_CLUSTER: usize = 0xFFFF;

/// A directory of a device tree that is there if a hypervisor is.
pub(super) const HYPERVISOR: &str = "proc/device-tree/hypervisor";

/// Everything that lies in the directory of the CPUs.
pub(super) fn in_cpu_directory(
    tree: &Tree,
    directory: &CpuDirectory,
    cores: &[PhysicalCore],
    allowed: &CpuSet,
) -> Places {
    let id = |core: &PhysicalCore, name: &str| {
        let cpu = directory.first_of(core)?;
        let id = tree.number(&directory.file(cpu, &format!("topology/{name}")))?;
        usize::try_from(id).ok()
    };
    let packages = cores.iter().map(|core| id(core, "physical_package_id")).collect::<Vec<_>>();
    let inside = |name: &str| {
        // Where neither the first core nor the last has such a number, the kernel knows none.
        let is_there =
            |core: Option<&PhysicalCore>| core.is_some_and(|core| id(core, name).is_some());
        if !is_there(cores.first()) && !is_there(cores.last()) {
            return Vec::new();
        }
        groups(cores.iter().zip(&packages).filter_map(|(core, package)| {
            let id = id(core, name).filter(|id| name != "cluster_id" || *id != NO_CLUSTER)?;
            Some(([package.unwrap_or(usize::MAX), id], core.cpus().clone()))
        }))
    };
    let dies = inside("die_id");
    let clusters = inside("cluster_id");
    let known = cores.iter().zip(&packages);
    let packages =
        groups(known.filter_map(|(core, package)| Some(([(*package)?], core.cpus().clone()))));
    let last_level = |core: &PhysicalCore| {
        core.cpus().iter().find_map(|cpu| caches::last_level(tree, directory, cpu))
    };
    let caches = cache_domains(cores, allowed, last_level, |note| tree.note(note));
    Places { packages, dies, clusters, caches, ..Places::default() }
}

/// Adds what lies elsewhere on a machine.
pub(super) fn on_machine(
    tree: &Tree,
    cores: &[PhysicalCore],
    allowed: &CpuSet,
    mut places: Places,
) -> Places {
    if places.packages.is_empty() {
        places.packages = packages_of_cpuinfo(tree, cores);
    }
    (places.nodes, places.other_nodes) = nodes(tree, allowed);
    places.online = Some(allowed::online(tree).0).filter(|online| !online.is_empty());
    let isolated = tree.parsed(&format!("{CPU_DIRECTORY}/isolated"), parse_cpu_list);
    places.isolated = isolated.unwrap_or_default().intersection(allowed);
    places.virtualized = virtualized(tree);
    report(tree, allowed, &places);
    places
}

fn packages_of_cpuinfo(tree: &Tree, cores: &[PhysicalCore]) -> Vec<CpuGroup> {
    // Only x86 prints packages there, and where `sys` is missing all that is known is in this file.
    if cpuinfo::head(tree).is_arm {
        return Vec::new();
    }
    let processors = cpuinfo::processors(tree);
    let package = |cpu: usize| processors.get(&cpu)?.package;
    groups(
        cores.iter().filter_map(|core| {
            Some(([core.cpus().iter().find_map(package)?], core.cpus().clone()))
        }),
    )
}

fn nodes(tree: &Tree, allowed: &CpuSet) -> (Vec<CpuGroup>, Vec<usize>) {
    let ids = tree.numbered(NODE_DIRECTORY, "node").unwrap_or_default();
    let nodes = ids.iter().map(|id| (id, cpus_of_node(tree, id)));
    numa_nodes(nodes, allowed, |note| tree.note(note))
}

/// Its list, else its mask, else its entries `cpuN`.
fn cpus_of_node(tree: &Tree, id: usize) -> CpuSet {
    let path = |name: &str| format!("{NODE_DIRECTORY}/node{id}/{name}");
    tree.parsed(&path("cpulist"), parse_cpu_list)
        .or_else(|| tree.parsed(&path("cpumap"), parse_cpu_mask))
        .or_else(|| tree.numbered(&format!("{NODE_DIRECTORY}/node{id}"), "cpu").ok())
        .unwrap_or_default()
}

/// By the flag of x86 CPUs, by what Xen and device trees say of a hypervisor, and by WSL's kernel name.
fn virtualized(tree: &Tree) -> Option<bool> {
    let says_so = tree.text("sys/hypervisor/type").is_some_and(|text| !text.is_empty())
        || tree.exists(HYPERVISOR)
        || tree
            .text("proc/sys/kernel/osrelease")
            .is_some_and(|text| text.to_ascii_lowercase().contains("microsoft"));
    if says_so { Some(true) } else { cpuinfo::head(tree).hypervisor }
}

fn report(tree: &Tree, allowed: &CpuSet, places: &Places) {
    if places.virtualized == Some(true) {
        tree.note(Note::Virtualized);
    }
    if !places.isolated.is_empty() {
        tree.note(Note::IsolatedAllowed { cpus: places.isolated.clone() });
    }
    if let Some(online) = &places.online {
        let missing = allowed.difference(online);
        if !missing.is_empty() {
            tree.note(Note::AllowedNotOnline { cpus: missing });
        }
    }
}
