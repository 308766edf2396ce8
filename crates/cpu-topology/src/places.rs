//! Where cores lie: packages, dies, clusters, NUMA nodes and last-level caches, as far as the system tells.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::cores::PhysicalCore;
use crate::cpu_set::{CpuSet, Taken};
use crate::note::Note;
use crate::topology::CpuTopology;

/// Allowed CPUs under one number of the system's: a package, a die, a cluster or a NUMA node.
///
/// Numbers have gaps, and on some machines they number something else than their name says (phones number clusters as
/// packages). Nothing in this crate is computed from packages, dies and clusters.
///
/// ```
/// use cpu_topology::CpuTopology;
///
/// for node in CpuTopology::detect().numa_nodes() {
///     println!("node {}: CPUs {}", node.id(), node.cpus());
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuGroup {
    pub(crate) id: usize,
    pub(crate) cpus: CpuSet,
}

impl CpuGroup {
    /// The number that the system gives it. That of a die or cluster is unique inside its package only.
    pub fn id(&self) -> usize {
        self.id
    }

    /// The allowed logical CPUs in it; at least one.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }
}

/// The allowed CPUs that share a cache of the highest level that they have: the unit in which workers that share data
/// should be placed.
///
/// ```
/// use cpu_topology::CpuTopology;
///
/// for cache in CpuTopology::detect().last_level_caches() {
///     println!("level {}: CPUs {}", cache.level(), cache.cpus());
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDomain {
    pub(crate) level: usize,
    pub(crate) cpus: CpuSet,
    pub(crate) size: Option<u64>,
}

impl CacheDomain {
    /// The level of the cache. It may differ between domains: low-power cores may have no level 3.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The allowed logical CPUs that share it; at least one.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Its size in bytes, if the system tells.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}

/// What is known about where cores lie. Each list is ordered by lowest CPU, its sets are disjoint, and it is empty
/// where nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) packages: Vec<CpuGroup>,
    pub(crate) dies: Vec<CpuGroup>,
    pub(crate) clusters: Vec<CpuGroup>,
    pub(crate) nodes: Vec<CpuGroup>,
    /// NUMA nodes with no allowed CPU.
    pub(crate) other_nodes: Vec<usize>,
    pub(crate) caches: Vec<CacheDomain>,
    pub(crate) online: Option<CpuSet>,
    /// Allowed CPUs among which the scheduler does not balance.
    pub(crate) isolated: CpuSet,
    pub(crate) virtualized: Option<bool>,
}

impl Places {
    /// The domain of each CPU that is in one, as an index.
    pub(crate) fn caches_by_cpu(&self) -> BTreeMap<usize, usize> {
        let of_cache = |(index, cache): (usize, &CacheDomain)| {
            cache.cpus.iter().map(|cpu| (cpu, index)).collect::<Vec<_>>()
        };
        self.caches.iter().enumerate().flat_map(of_cache).collect()
    }
}

/// Groups out of pairs of a key and CPUs. The id of a group is the last part of its key.
pub(crate) fn groups<const N: usize>(
    members: impl IntoIterator<Item = ([usize; N], CpuSet)>,
) -> Vec<CpuGroup> {
    let mut by_key = BTreeMap::<[usize; N], Vec<usize>>::new();
    for (key, cpus) in members {
        by_key.entry(key).or_default().extend(cpus.iter());
    }
    let id = |key: [usize; N]| key.last().copied().unwrap_or(0);
    let mut groups = by_key
        .into_iter()
        .map(|(key, cpus)| CpuGroup { id: id(key), cpus: cpus.into_iter().collect() })
        .collect::<Vec<_>>();
    groups.sort_by_key(|group| group.cpus.first());
    groups
}

/// The last-level caches of these cores, ordered by lowest CPU. `of_core` tells the cache of a core with all CPUs that
/// are said to share it, and is not asked about a core that an earlier cache names.
pub(crate) fn cache_domains(
    cores: &[PhysicalCore],
    allowed: &CpuSet,
    of_core: impl Fn(&PhysicalCore) -> Option<CacheDomain>,
    mut note: impl FnMut(Note),
) -> Vec<CacheDomain> {
    let mut domains: Vec<CacheDomain> = Vec::new();
    let mut placed = Taken::default();
    for core in cores {
        let cpu = core.first_cpu();
        if placed.contains(cpu) {
            continue;
        }
        let Some(domain) = of_core(core) else { continue };
        let level = domain.level;
        let cpus = domain.cpus.intersection(allowed);
        if !cpus.contains(cpu) {
            note(Note::CacheSharingUnknown { cpu, level });
            continue;
        }
        // Two caches of one CPU cannot both be its last. The lower CPU's word counts.
        let free = placed.take(&cpus);
        if free != cpus {
            note(Note::CachesOverlap { cpu, level });
        }
        domains.push(CacheDomain { cpus: free, ..domain });
    }
    // A cache may name CPUs below its core that tell of no cache themselves.
    domains.sort_by_key(|domain| domain.cpus.first());
    domains
}

/// The nodes with allowed CPUs, and the numbers of the others. Nothing if a CPU is in two of them.
pub(crate) fn numa_nodes(
    nodes: impl IntoIterator<Item = (usize, CpuSet)>,
    allowed: &CpuSet,
    mut note: impl FnMut(Note),
) -> (Vec<CpuGroup>, Vec<usize>) {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut placed = Taken::default();
    for (id, cpus) in nodes {
        let cpus = cpus.intersection(allowed);
        if cpus.is_empty() {
            others.push(id);
            continue;
        }
        if placed.take(&cpus) != cpus {
            note(Note::NodesOverlap { node: id });
            return (Vec::new(), Vec::new());
        }
        found.push(CpuGroup { id, cpus });
    }
    let outside = allowed.difference(&CpuSet::union_of(found.iter().map(|node| &node.cpus)));
    if !found.is_empty() && !outside.is_empty() {
        note(Note::OutsideOfNodes { cpus: outside });
    }
    found.sort_by_key(|node| node.cpus.first());
    (found, others)
}

/// Where cores lie.
impl CpuTopology {
    /// The domains of the last-level caches, ordered by lowest CPU. Disjoint; a CPU whose cache is not known is in none.
    pub fn last_level_caches(&self) -> &[CacheDomain] {
        &self.places.caches
    }

    /// The NUMA nodes that have allowed CPUs, ordered by lowest CPU. Disjoint; empty if nothing is known of nodes, or if
    /// they overlap.
    pub fn numa_nodes(&self) -> &[CpuGroup] {
        &self.places.nodes
    }

    /// The numbers of the NUMA nodes without any allowed CPU: nodes of memory only, and nodes of other processes.
    pub fn other_numa_nodes(&self) -> &[usize] {
        &self.places.other_nodes
    }

    /// The packages (sockets) as the system reports them, ordered by lowest CPU; empty if it does not.
    pub fn packages(&self) -> &[CpuGroup] {
        &self.places.packages
    }

    /// The dies of each package as the system reports them, ordered by lowest CPU; empty if it does not.
    pub fn dies(&self) -> &[CpuGroup] {
        &self.places.dies
    }

    /// The clusters of each package as the system reports them, ordered by lowest CPU; empty if it does not.
    pub fn clusters(&self) -> &[CpuGroup] {
        &self.places.clusters
    }

    /// The CPUs that are online, whether or not the process may use them; `None` if that is not known.
    pub fn online(&self) -> Option<&CpuSet> {
        self.places.online.as_ref()
    }

    /// The allowed CPUs that are isolated from the scheduler: it never moves a thread that is on one of them, so threads
    /// there have to be pinned. A process has such CPUs only if somebody gave them to it.
    pub fn isolated(&self) -> &CpuSet {
        &self.places.isolated
    }

    /// Whether this is a virtual machine, as far as can be told from files; `None` if it cannot.
    pub fn is_virtualized(&self) -> Option<bool> {
        self.places.virtualized
    }

    /// The domain of its last-level cache that a core is in, as an index into
    /// [`last_level_caches`](Self::last_level_caches).
    pub fn cache_of(&self, core: &PhysicalCore) -> Option<usize> {
        self.places.caches.iter().position(|cache| cache.cpus.contains(core.first_cpu()))
    }
}
