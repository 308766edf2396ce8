//! The signals of speed of each core.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::class::Signal;
use crate::cores::PhysicalCore;
use crate::cpu_list::parse_cpu_list;
use crate::cpu_set::CpuSet;
use crate::linux::tree::{CpuDirectory, Tree};

/// Intel's devices of performance counters, fastest kind of core first, and what the kinds are called here.
const PMUS: [(&str, &str); 3] =
    [("core", "cpu_core"), ("atom", "cpu_atom"), ("lowpower", "cpu_lowpower")];

/// The number of a signal for a core: that of its lowest CPU that has one. CPUs of one core are equally fast.
pub(super) fn number(
    tree: &Tree,
    directory: &CpuDirectory,
    signal: Signal,
    core: &PhysicalCore,
) -> Option<u64> {
    core.cpus().iter().find_map(|cpu| of_cpu(tree, directory, signal, cpu))
}

/// The numbers of a signal for the CPUs that are described and not among these.
pub(super) fn of_others(
    tree: &Tree,
    directory: &CpuDirectory,
    signal: Signal,
    cpus: &CpuSet,
) -> Vec<u64> {
    let others = directory.listed().filter(|cpu| !cpus.contains(*cpu));
    others
        .filter_map(|cpu| of_cpu(tree, directory, signal, cpu))
        .filter(|value| *value > 0)
        .collect()
}

fn of_cpu(tree: &Tree, directory: &CpuDirectory, signal: Signal, cpu: usize) -> Option<u64> {
    let name = match signal {
        Signal::CpuCapacity => "cpu_capacity",
        Signal::BaseFrequency => "cpufreq/base_frequency",
        Signal::HighestPerf => "acpi_cppc/highest_perf",
        Signal::MaxFreq => "cpufreq/cpuinfo_max_freq",
        _ => return None,
    };
    directory.has(cpu).then(|| tree.number(&directory.file(cpu, name))).flatten()
}

/// The designs of ARM CPUs: implementer and part number, from `/proc/cpuinfo`. Other processors tell no part, and some
/// old kernels tell one for all CPUs, which is taken for that of the last.
pub(super) fn designs(tree: &Tree) -> BTreeMap<usize, u64> {
    let mut designs = BTreeMap::new();
    let (mut cpu, mut implementer) = (None, None);
    for line in tree.table("proc/cpuinfo").unwrap_or_default().lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let hex = || u64::from_str_radix(value.strip_prefix("0x")?, 16).ok();
        match name.trim() {
            "processor" => (cpu, implementer) = (value.parse::<usize>().ok(), None),
            "CPU implementer" => implementer = hex(),
            "CPU part" => {
                if let (Some(cpu), Some(implementer), Some(part)) = (cpu, implementer, hex()) {
                    designs.insert(cpu, implementer << 32 | (part & 0xFFFF_FFFF));
                }
            }
            _ => {}
        }
    }
    designs
}

/// Intel's lists that are there. On a machine of one kind of core there is none: its device is called `cpu`.
pub(super) fn pmu_lists(tree: &Tree) -> Vec<(&'static str, CpuSet)> {
    let list = |device: &str| tree.parsed(&format!("sys/devices/{device}/cpus"), parse_cpu_list);
    PMUS.iter().filter_map(|(kind, device)| Some((*kind, list(device)?))).collect()
}
