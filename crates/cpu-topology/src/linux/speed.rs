//! The signals of speed of each core.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::class::{CoreDesign, Signal};
use crate::cores::PhysicalCore;
use crate::cpu_list::parse_cpu_list;
use crate::cpu_set::CpuSet;
use crate::linux::cpuinfo::{self, Design};
use crate::linux::tree::{CpuDirectory, Tree};

/// Intel's devices of performance counters, fastest kind of core first, and what the kinds are called here.
const PMUS: [(&str, &str); 3] =
    [("core", "cpu_core"), ("atom", "cpu_atom"), ("lowpower", "cpu_lowpower")];

/// The number of a signal for a core: that of its lowest CPU that is described. CPUs of one core are equally fast.
pub(super) fn number(
    tree: &Tree,
    directory: &CpuDirectory,
    signal: Signal,
    core: &PhysicalCore,
) -> Option<u64> {
    of_cpu(tree, directory, signal, directory.first_of(core)?)
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
    tree.number(&directory.file(cpu, name))
}

/// Designs of low power: in-order Cortex cores and their like at Qualcomm, and Apple's efficiency cores. Implementer and
/// part numbers are those of Arm's and the vendors' technical reference manuals.
const LOW_POWER: [(u8, &[u16]); 3] = [
    (0x41, &[0xC05, 0xC07, 0xD02, 0xD03, 0xD04, 0xD05, 0xD46, 0xD80, 0xD88, 0xD8A]),
    (0x51, &[0x801, 0x803, 0x805]),
    (0x61, &[0x022, 0x024, 0x028, 0x032, 0x034, 0x038]),
];

/// One design under several part numbers: the two clusters of the first Kryo differ in clock rate and cache only.
const SAME_DESIGN: [(Design, u16); 2] = [
    (Design { implementer: 0x51, part: 0x205 }, 0x201),
    (Design { implementer: 0x51, part: 0x211 }, 0x201),
];

/// The designs of ARM CPUs: from `/proc/cpuinfo`, else from the identification registers. Other processors tell none.
pub(super) fn designs(tree: &Tree, directory: &CpuDirectory) -> BTreeMap<usize, CoreDesign> {
    let mut designs = BTreeMap::new();
    if cpuinfo::head(tree).is_arm {
        let processors = cpuinfo::processors(tree).into_iter();
        designs.extend(processors.filter_map(|(cpu, processor)| Some((cpu, processor.design?))));
    }
    if designs.is_empty() {
        let midr = |cpu: usize| {
            let path = directory.file(cpu, "regs/identification/midr_el1");
            Some((cpu, Design::of_midr(cpuinfo::hex(&tree.text(&path)?)?)))
        };
        // One CPU without the register, and no other has it either.
        designs.extend(directory.listed().map_while(midr));
    }
    designs.into_iter().map(|(cpu, design)| (cpu, core_design(design))).collect()
}

fn core_design(design: Design) -> CoreDesign {
    let same = SAME_DESIGN.iter().find(|(other, _)| *other == design);
    let part = same.map_or(design.part, |(_, part)| *part);
    let low_power = LOW_POWER
        .iter()
        .any(|(implementer, parts)| *implementer == design.implementer && parts.contains(&part));
    CoreDesign { key: u64::from(design.implementer) << 16 | u64::from(part), low_power }
}

/// Intel's lists that are there. On a machine of one kind of core there is none: its device is called `cpu`.
pub(super) fn pmu_lists(tree: &Tree) -> Vec<(&'static str, CpuSet)> {
    let list = |device: &str| tree.parsed(&format!("sys/devices/{device}/cpus"), parse_cpu_list);
    PMUS.iter().filter_map(|(kind, device)| Some((*kind, list(device)?))).collect()
}
