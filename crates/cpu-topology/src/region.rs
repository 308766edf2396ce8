//! The machine as nested regions (packages, nodes, caches) with cores in them, and as a drawing of lines.
#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use crate::cores::PhysicalCore;
use crate::cpu_set::CpuSet;
use crate::places::CpuGroup;
use crate::plan::CpuPoolPlan;
use crate::topology::CpuTopology;

/// A part of the machine: a package, a NUMA node, a cache, or several of them with the same CPUs.
///
/// ```
/// use cpu_topology::{CpuTopology, Part, Region};
///
/// fn count(region: &Region) -> usize {
///     let count = |part: &Part| match part {
///         Part::Region(inner) => count(inner),
///         Part::Core(_) => 1,
///     };
///     region.parts().iter().map(count).sum()
/// }
///
/// let topology = CpuTopology::detect();
/// assert_eq!(count(&topology.region()), topology.cores().len());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    names: Vec<String>,
    cpus: CpuSet,
    parts: Vec<Part>,
}

/// What is in a [`Region`], which has an example. There are these two, so that a drawing can be complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A smaller region.
    Region(Region),
    /// A core that is in no smaller region, as an index into [`CpuTopology::cores`].
    Core(usize),
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

    /// What is in it, ordered by lowest CPU.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn sort(&mut self, cores: &[PhysicalCore]) {
        self.parts.sort_by_key(|part| match part {
            Part::Region(region) => region.cpus.first(),
            Part::Core(index) => cores[*index].cpus().first(),
        });
    }
}

/// Regions while they are put together: each knows the one that it is in, and each CPU the smallest that it is in.
struct Nesting {
    /// The machine first; a region comes after the one around it.
    regions: Vec<(Region, usize)>,
    smallest: HashMap<usize, usize>,
}

impl Nesting {
    fn new(name: &str, cpus: &CpuSet) -> Self {
        let machine =
            Region { names: vec![name.to_owned()], cpus: cpus.clone(), parts: Vec::new() };
        Self { regions: vec![(machine, 0)], smallest: cpus.iter().map(|cpu| (cpu, 0)).collect() }
    }

    /// Puts a region where it belongs; larger ones come first. One that lies across others is left out: regions are a tree.
    fn add(&mut self, name: String, cpus: &CpuSet) {
        let mut around = cpus.iter().map(|cpu| self.smallest.get(&cpu).copied());
        let Some(Some(inside)) = around.next() else { return };
        if !around.all(|other| other == Some(inside)) {
            return;
        }
        let around = &mut self.regions[inside].0;
        if *cpus == around.cpus {
            around.names.push(name);
            return;
        }
        let index = self.regions.len();
        let region = Region { names: vec![name], cpus: cpus.clone(), parts: Vec::new() };
        self.regions.push((region, inside));
        self.smallest.extend(cpus.iter().map(|cpu| (cpu, index)));
    }

    /// Puts a core into the smallest region that has all its CPUs.
    fn add_core(&mut self, index: usize, core: &PhysicalCore) {
        let mut inside = self.smallest.get(&core.first_cpu()).copied().unwrap_or(0);
        while inside > 0 && !core.cpus().is_subset(&self.regions[inside].0.cpus) {
            inside = self.regions[inside].1;
        }
        self.regions[inside].0.parts.push(Part::Core(index));
    }

    /// The machine, with everything where it belongs.
    fn into_tree(mut self, cores: &[PhysicalCore]) -> Region {
        while let Some((mut region, around)) = self.regions.pop() {
            region.sort(cores);
            match self.regions.get_mut(around) {
                Some((outer, _)) => outer.parts.push(Part::Region(region)),
                None => return region,
            }
        }
        Region { names: Vec::new(), cpus: CpuSet::new(), parts: Vec::new() }
    }
}

impl CpuTopology {
    /// The whole machine, with packages, dies, NUMA nodes, clusters and last-level caches in it, and the cores in those.
    ///
    /// Parts with the same CPUs are one region. A part that lies across others is left out, and so are dies and clusters of
    /// one core.
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
        // A die or cluster of one core tells nothing that the core does not.
        let core_sets = self.cores().iter().map(PhysicalCore::cpus).collect::<HashSet<_>>();
        parts.retain(|(cpus, kind, _)| !matches!(kind, 2 | 4) || !core_sets.contains(cpus));
        // Large parts first, so that each finds the one that it is in.
        parts.sort_by_key(|(cpus, kind, _)| (std::cmp::Reverse(cpus.len()), *kind, cpus.first()));
        let mut nesting = Nesting::new("Machine", self.allowed_set());
        for (cpus, _, name) in parts {
            nesting.add(name, &cpus);
        }
        for (index, core) in self.cores().iter().enumerate() {
            nesting.add_core(index, core);
        }
        nesting.into_tree(self.cores())
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
    let workers = plan.core_ids.iter().copied().collect::<CpuSet>();
    let core_line = |core: usize| core_line(core, topology, &workers, plan.coordinator_cpu);
    draw(&mut text, "", &machine, &core_line);
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

fn draw(text: &mut String, indent: &str, region: &Region, core_line: &dyn Fn(usize) -> String) {
    for (index, part) in region.parts.iter().enumerate() {
        let is_last = index + 1 == region.parts.len();
        let (here, below) = if is_last { ("└─", "   ") } else { ("├─", "│  ") };
        match part {
            Part::Region(inner) => {
                _ = writeln!(text, "{indent}{here} {}", title(inner));
                draw(text, &format!("{indent}{below}"), inner, core_line);
            }
            Part::Core(core) => {
                _ = writeln!(text, "{indent}{here} {}", core_line(*core));
            }
        }
    }
}

/// Number, class where there are several, CPUs, and what is withheld.
fn core_line(
    index: usize,
    topology: &CpuTopology,
    workers: &CpuSet,
    coordinator: Option<usize>,
) -> String {
    let core = &topology.cores()[index];
    let mark = |cpu: usize| match () {
        () if workers.contains(cpu) => format!(" {cpu}*"),
        () if coordinator == Some(cpu) => format!(" {cpu}+"),
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
    let is_isolated = core.cpus().iter().any(|cpu| topology.isolated().contains(cpu));
    let isolated = if is_isolated { ", isolated" } else { "" };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::CacheDomain;

    /// Cores of one CPU, packages and level-3 caches of these CPUs, and a die of one core.
    fn machine(n_cores: usize, packages: &[&[usize]], caches: &[&[usize]]) -> CpuTopology {
        let mut topology =
            CpuTopology::from_sibling_lists((0..n_cores).map(|cpu| (cpu, vec![cpu])));
        let set = |cpus: &[usize]| cpus.iter().copied().collect::<CpuSet>();
        let packages = packages.iter().enumerate();
        topology.places.packages =
            packages.map(|(id, cpus)| CpuGroup { id, cpus: set(cpus) }).collect();
        topology.places.dies = vec![CpuGroup { id: 0, cpus: set(&[0]) }];
        let cache =
            |cpus: &&[usize]| CacheDomain { level: 3, cpus: set(cpus), size: Some(1 << 20) };
        topology.places.caches = caches.iter().map(cache).collect();
        topology
    }

    fn regions(region: &Region) -> impl Iterator<Item = &Region> {
        region.parts.iter().filter_map(|part| match part {
            Part::Region(region) => Some(region),
            Part::Core(_) => None,
        })
    }

    #[test]
    fn parts_nest_by_their_cpus() {
        let plan = CpuPoolPlan { num_threads: 1, core_ids: vec![0], coordinator_cpu: Some(5) };
        let topology = machine(6, &[&[0, 1, 4, 5], &[2, 3]], &[&[0, 1], &[2, 3]]);
        let expected = "\
Machine: CPUs 0-5
├─ Package 0: CPUs 0-1,4-5
│  ├─ L3 1 MiB: CPUs 0-1
│  │  ├─ core 0: CPU 0*
│  │  └─ core 1: CPU 1
│  ├─ core 4: CPU 4
│  └─ core 5: CPU 5+
└─ Package 1, L3 1 MiB: CPUs 2-3
   ├─ core 2: CPU 2
   └─ core 3: CPU 3
";
        assert_eq!(draw_tree(&topology, &plan), expected);
        // One cache over several packages is outside of them.
        let topology = machine(4, &[&[0], &[1], &[2], &[3]], &[&[0, 1, 2, 3]]);
        assert_eq!(topology.region().names(), ["Machine", "L3 1 MiB"]);
        assert_eq!(regions(&topology.region()).count(), 4);
    }

    #[test]
    fn a_part_across_others_is_left_out_and_no_core_with_it() {
        let topology = machine(4, &[&[0, 1, 2], &[3]], &[&[2, 3]]);
        let region = topology.region();
        let parts = regions(&region).map(|inner| inner.parts.as_slice()).collect::<Vec<_>>();
        let cores = [Part::Core(0), Part::Core(1), Part::Core(2), Part::Core(3)];
        assert_eq!(parts, [&cores[..3], &cores[3..]]);
        assert_eq!(
            draw_tree(&CpuTopology::default(), &CpuPoolPlan::default()),
            "Machine: no CPU is known\n"
        );
    }
}
