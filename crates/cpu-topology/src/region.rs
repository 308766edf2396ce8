//! The machine as nested regions (packages, nodes, caches) with cores in them, and as a drawing of lines.
#![forbid(unsafe_code)]

use std::fmt::Write;

use crate::cores::PhysicalCore;
use crate::cpu_set::CpuSet;
use crate::places::CpuGroup;
use crate::plan::CpuPoolPlan;
use crate::topology::CpuTopology;

/// A part of the machine: a package, a NUMA node, a cache, or several of them with the same CPUs.
///
/// ```
/// use cpu_topology::{CpuTopology, Region};
///
/// fn count(region: &Region) -> usize {
///     region.cores().len() + region.regions().iter().map(count).sum::<usize>()
/// }
///
/// let topology = CpuTopology::detect();
/// assert_eq!(count(&topology.region()), topology.cores().len());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    names: Vec<String>,
    cpus: CpuSet,
    regions: Vec<Region>,
    cores: Vec<usize>,
}

impl Region {
    /// What it is, the outermost first: `Package 0`, `NUMA node 0`, `L3 32 MiB`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The allowed CPUs in it.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// The regions in it, ordered by lowest CPU.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The cores that are in none of its regions, as indexes into [`CpuTopology::cores`], ascending.
    pub fn cores(&self) -> &[usize] {
        &self.cores
    }

    fn new(name: String, cpus: CpuSet) -> Self {
        Self { names: vec![name], cpus, regions: Vec::new(), cores: Vec::new() }
    }

    /// Puts a part where it belongs. One that lies across others is left out: regions are a tree.
    fn add(&mut self, name: String, cpus: &CpuSet) {
        if *cpus == self.cpus {
            self.names.push(name);
        } else if let Some(inner) =
            self.regions.iter_mut().find(|inner| cpus.is_subset(&inner.cpus))
        {
            inner.add(name, cpus);
        } else if self.regions.iter().all(|inner| cpus.intersection(&inner.cpus).is_empty()) {
            self.regions.push(Self::new(name, cpus.clone()));
        }
    }

    fn add_core(&mut self, index: usize, core: &PhysicalCore) {
        match self.regions.iter_mut().find(|inner| core.cpus().is_subset(&inner.cpus)) {
            Some(inner) => inner.add_core(index, core),
            None => self.cores.push(index),
        }
    }

    fn sort(&mut self) {
        self.regions.sort_by_key(|region| region.cpus.first());
        self.regions.iter_mut().for_each(Self::sort);
    }
}

impl CpuTopology {
    /// The whole machine, with packages, dies, NUMA nodes, clusters and last-level caches in it, and the cores in those.
    ///
    /// Parts with the same CPUs are one region. A part that lies across others is left out.
    pub fn region(&self) -> Region {
        let mut parts = Vec::new();
        let mut add = |kind: usize, name: &str, groups: &[CpuGroup]| {
            parts.extend(
                groups
                    .iter()
                    .map(|group| (group.cpus().clone(), kind, format!("{name} {}", group.id()))),
            );
        };
        add(0, "Package", self.packages());
        add(1, "NUMA node", self.numa_nodes());
        add(2, "Die", self.dies());
        add(4, "Cluster", self.clusters());
        for cache in self.last_level_caches() {
            let size = cache.size().map(|size| format!(" {}", readable(size))).unwrap_or_default();
            parts.push((cache.cpus().clone(), 3, format!("L{}{size}", cache.level())));
        }
        // Large parts first, so that each finds the one that it is in.
        parts.sort_by_key(|(cpus, kind, _)| (std::cmp::Reverse(cpus.len()), *kind, cpus.first()));
        let mut machine = Region::new("Machine".to_owned(), self.allowed_set().clone());
        for (cpus, _, name) in parts {
            machine.add(name, &cpus);
        }
        for (index, core) in self.cores().iter().enumerate() {
            machine.add_core(index, core);
        }
        machine.sort();
        machine
    }
}

/// Bytes in the largest unit that divides them.
fn readable(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// The machine as a tree of lines: packages, nodes and caches, and in them each core with its class and CPUs. CPUs of
/// workers have a `*`, that of the coordinator a `+`.
///
/// ```
/// use cpu_topology::{CpuTopology, PlanRequest, draw_tree};
///
/// let topology = CpuTopology::from_sibling_lists([(0, vec![0, 4]), (1, vec![1, 5]), (4, vec![0, 4])]);
/// let plan = PlanRequest::new().plan(&topology);
/// let expected = "\
/// Machine: CPUs 0-1,4
/// ├─ core 0: CPUs 0* 4
/// └─ core 1: CPU 1* (and 1 that is not allowed)
/// ";
/// assert_eq!(draw_tree(&topology, &plan), expected);
/// ```
pub fn draw_tree(topology: &CpuTopology, plan: &CpuPoolPlan) -> String {
    let machine = topology.region();
    let mut text = format!("{}\n", title(&machine));
    draw(&mut text, "", &machine, topology, plan);
    text
}

fn title(region: &Region) -> String {
    let cpus = match region.cpus.len() {
        0 => return format!("{}: no CPU is known", region.names.join(", ")),
        1 => "CPU",
        _ => "CPUs",
    };
    format!("{}: {cpus} {}", region.names.join(", "), region.cpus)
}

fn draw(
    text: &mut String,
    indent: &str,
    region: &Region,
    topology: &CpuTopology,
    plan: &CpuPoolPlan,
) {
    let n_parts = region.regions.len() + region.cores.len();
    let branch =
        |index: usize| if index + 1 == n_parts { ("└─", "   ") } else { ("├─", "│  ") };
    for (index, inner) in region.regions.iter().enumerate() {
        let (here, below) = branch(index);
        _ = writeln!(text, "{indent}{here} {}", title(inner));
        draw(text, &format!("{indent}{below}"), inner, topology, plan);
    }
    for (index, core) in region.cores.iter().enumerate() {
        let (here, _) = branch(region.regions.len() + index);
        _ = writeln!(text, "{indent}{here} {}", core_line(*core, topology, plan));
    }
}

/// Number, class where there are several, CPUs, and what is withheld.
fn core_line(index: usize, topology: &CpuTopology, plan: &CpuPoolPlan) -> String {
    let core = &topology.cores()[index];
    let mark = |cpu: usize| match () {
        () if plan.core_ids.contains(&cpu) => format!(" {cpu}*"),
        () if plan.coordinator_cpu == Some(cpu) => format!(" {cpu}+"),
        () => format!(" {cpu}"),
    };
    let cpus = core.cpus().iter().map(mark).collect::<String>();
    let plural = if core.cpus().len() == 1 { "" } else { "s" };
    let class = match topology.classes() {
        [_, _, ..] => format!(" of class {}{}", core.class(), kind(topology, core.class())),
        _ => String::new(),
    };
    let withheld = match core.siblings_total().saturating_sub(core.cpus().len()) {
        0 => "",
        1 => " (and 1 that is not allowed)",
        n => &format!(" (and {n} that are not allowed)"),
    };
    let isolated = core.cpus().intersection(topology.isolated());
    let isolated = if isolated.is_empty() { "" } else { ", isolated" };
    format!("core {index}{class}: CPU{plural}{cpus}{withheld}{isolated}")
}

fn kind(topology: &CpuTopology, class: usize) -> String {
    let class = &topology.classes()[class];
    let kind = if class.is_efficiency() { "efficiency" } else { "performance" };
    match class.label() {
        Some(label) => format!(" ({kind}, \"{label}\")"),
        None => format!(" ({kind})"),
    }
}
