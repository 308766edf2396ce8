//! Collecting the files that matter, for a snapshot.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use crate::linux::host::Host;
use crate::linux::places::HYPERVISOR;
use crate::linux::tree::Tree;
use crate::linux::{CPU_DIRECTORY, NODE_DIRECTORY, cgroup};

/// Longer content is none of these files'.
const MAX_LEN: u64 = 1 << 20;

const CPU_LISTS: [&str; 7] =
    ["online", "possible", "present", "offline", "isolated", "smt/active", "smt/control"];

const CPU_FILES: [&str; 26] = [
    "online",
    "cpu_capacity",
    "topology/core_id",
    "topology/physical_package_id",
    "topology/die_id",
    "topology/cluster_id",
    "topology/book_id",
    "topology/drawer_id",
    "topology/core_cpus_list",
    "topology/core_cpus",
    "topology/thread_siblings_list",
    "topology/thread_siblings",
    "topology/package_cpus_list",
    "topology/core_siblings_list",
    "topology/die_cpus_list",
    "topology/cluster_cpus_list",
    "cpufreq/base_frequency",
    "cpufreq/cpuinfo_max_freq",
    "cpufreq/affected_cpus",
    "cpufreq/related_cpus",
    "cpufreq/amd_pstate_prefcore_ranking",
    "acpi_cppc/highest_perf",
    "acpi_cppc/nominal_perf",
    "acpi_cppc/nominal_freq",
    "acpi_cppc/lowest_perf",
    "regs/identification/midr_el1",
];

const CACHE_FILES: [&str; 5] = ["level", "type", "size", "shared_cpu_list", "shared_cpu_map"];

const OTHER_FILES: [&str; 6] = [
    "sys/devices/cpu_core/cpus",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/cpu_lowpower/cpus",
    "sys/devices/system/node/online",
    "sys/devices/system/node/possible",
    "sys/hypervisor/type",
];

/// Keys of `/proc/cpuinfo` that tell of cores and designs.
const CPUINFO_KEYS: [&str; 10] = [
    "processor",
    "vendor_id",
    "model name",
    "physical id",
    "siblings",
    "core id",
    "cpu cores",
    "CPU implementer",
    "CPU variant",
    "CPU part",
];

/// What is found under a root: files by path, and directories, which say something even if nothing is in them.
pub(crate) struct Collected {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) folders: Vec<String>,
}

/// The files under `root`, as far as they are there and can be read.
pub(crate) fn collect(root: &Path) -> Collected {
    let tree = Tree::new(root);
    let mut folders = Vec::new();
    let mut paths = OTHER_FILES.map(str::to_owned).to_vec();
    paths.extend(CPU_LISTS.map(|name| format!("{CPU_DIRECTORY}/{name}")));
    for cpu in tree.numbered(CPU_DIRECTORY, "cpu").unwrap_or_default().iter() {
        paths.extend(of_cpu(&tree, &format!("{CPU_DIRECTORY}/cpu{cpu}")));
        folders.push(format!("{CPU_DIRECTORY}/cpu{cpu}"));
    }
    for node in tree.numbered(NODE_DIRECTORY, "node").unwrap_or_default().iter() {
        let directory = format!("{NODE_DIRECTORY}/node{node}");
        paths.extend(["cpulist", "cpumap", "distance"].map(|name| format!("{directory}/{name}")));
        let cpus = tree.numbered(&directory, "cpu").unwrap_or_default();
        folders.extend(cpus.iter().map(|cpu| format!("{directory}/cpu{cpu}")));
        folders.push(directory);
    }
    folders.extend(tree.exists(HYPERVISOR).then(|| HYPERVISOR.to_owned()));
    let host = Host(tree.text("proc/sys/kernel/hostname").unwrap_or_default());
    let read = |path: &str| Some(tree.head(path, MAX_LEN)?.into_bytes());
    let mut files = reduced(&tree, &host);
    files.extend(paths.into_iter().filter_map(|path| Some((path.clone(), read(&path)?))));
    let limits = cgroup::files(&tree).into_iter();
    files.extend(limits.filter_map(|path| Some((host.in_file(&path), read(&path)?))));
    Collected { files, folders }
}

/// Paths of the files of one CPU.
fn of_cpu(tree: &Tree, directory: &str) -> Vec<String> {
    let mut paths = CPU_FILES.map(|name| format!("{directory}/{name}")).to_vec();
    let caches = format!("{directory}/cache");
    for index in tree.numbered(&caches, "index").unwrap_or_default().iter() {
        paths.extend(CACHE_FILES.map(|name| format!("{caches}/index{index}/{name}")));
    }
    paths
}

/// Files of which only some lines are taken.
fn reduced(tree: &Tree, host: &Host) -> BTreeMap<String, Vec<u8>> {
    let lines = |path: &str, keep: &dyn Fn(&str) -> Option<String>| {
        let text = tree.table(path)?;
        let kept = text.lines().filter_map(keep).map(|line| line + "\n").collect::<String>();
        Some((path.to_owned(), kept.into_bytes()))
    };
    let allowed = |line: &str| line.starts_with("Cpus_allowed").then(|| line.to_owned());
    let limits = |paths: &'static [usize]| {
        move |line: &str| cgroup::is_mount_of_limits(line).then(|| host.in_mount_line(line, paths))
    };
    let membership =
        |line: &str| cgroup::is_membership(line).then(|| host.in_membership_line(line));
    let cpuset = |line: &str| Some(host.in_membership(line));
    let wsl = |line: &str| {
        line.to_ascii_lowercase().contains("microsoft").then(|| "microsoft".to_owned())
    };
    [
        lines("proc/self/status", &allowed),
        lines("proc/self/cgroup", &membership),
        lines("proc/self/cpuset", &cpuset),
        lines("proc/self/mountinfo", &limits(&[3, 4]))
            .or_else(|| lines("proc/mounts", &limits(&[1]))),
        lines("proc/cpuinfo", &of_cpuinfo),
        lines("proc/sys/kernel/osrelease", &wsl).filter(|(_, kept)| !kept.is_empty()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A line of `/proc/cpuinfo` that matters, with the flags reduced to the one that does.
fn of_cpuinfo(line: &str) -> Option<String> {
    let Some((key, value)) = line.split_once(':') else {
        return line.is_empty().then(String::new);
    };
    match key.trim() {
        "flags" => {
            let hypervisor = value.split_ascii_whitespace().any(|flag| flag == "hypervisor");
            Some(format!("flags\t\t:{}", if hypervisor { " hypervisor" } else { "" }))
        }
        key if CPUINFO_KEYS.contains(&key) => Some(line.to_owned()),
        _ => None,
    }
}
