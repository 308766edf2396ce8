//! From "who names whom as a sibling" to physical cores.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use crate::cpu_set::CpuSet;

/// No core has more logical CPUs: there have been 8, and a virtual machine may make up some more. A longer list is that of
/// something else, or junk; and as each CPU of a core has a set, work and memory grow with the square of this.
pub(crate) const MAX_CPUS_OF_CORE: usize = 64;

/// The logical CPUs that share one core's execution units, as far as the process may run on them.
///
/// ```
/// use cpu_topology::CpuTopology;
///
/// let topology = CpuTopology::from_sibling_lists([(0, vec![0, 4]), (1, vec![1, 5]), (4, vec![0, 4])]);
/// let cores = topology.cores();
/// assert_eq!(cores[0].cpus().to_string(), "0,4");
/// assert_eq!((cores[1].cpus().len(), cores[1].siblings_total()), (1, 2)); // its other CPU is not ours
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhysicalCore {
    pub(crate) cpus: CpuSet,
    pub(crate) siblings_total: usize,
    pub(crate) class: usize,
}

impl PhysicalCore {
    /// The allowed logical CPUs of this core; at least one.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// The lowest allowed logical CPU of this core.
    pub fn first_cpu(&self) -> usize {
        self.cpus.first().unwrap_or(0)
    }

    /// How many logical CPUs the core has, those that are not allowed included.
    pub fn siblings_total(&self) -> usize {
        self.siblings_total
    }

    /// The index of its class in [`CpuTopology::classes`](crate::CpuTopology::classes), 0 for the fastest.
    pub fn class(&self) -> usize {
        self.class
    }
}

/// Cores out of sibling sets, one set per allowed CPU, and the CPUs whose sets contradict others.
///
/// Two CPUs share a core only if each of them names the other: an unknown (empty) or contradicted set merges nothing.
/// A set of more than [`MAX_CPUS_OF_CORE`] counts as unknown.
/// Where the relation is not one of groups (A with B, B with C, A not with C), all CPUs concerned stay alone.
/// The result is a partition of the keys, ordered by lowest CPU; every core is of class 0.
pub(crate) fn partition(siblings: &BTreeMap<usize, CpuSet>) -> (Vec<PhysicalCore>, Vec<usize>) {
    let allowed = siblings.keys().copied().collect::<CpuSet>();
    let mut cores = agreed_by_all(siblings, &allowed);
    let placed = cores.iter().flat_map(|core| core.cpus.iter()).collect::<CpuSet>();
    let mut contradicted = BTreeSet::new();
    let mut mutual = BTreeMap::new();
    for (&cpu, named) in siblings.iter().filter(|(cpu, _)| !placed.contains(**cpu)) {
        let named_and_allowed = believed(named).filter(|other| allowed.contains(*other));
        let agrees = |other: &usize| siblings.get(other).is_some_and(|back| believes(back, cpu));
        let (agreed, other): (Vec<_>, Vec<_>) =
            named_and_allowed.filter(|other| *other != cpu).partition(agrees);
        if !other.is_empty() {
            contradicted.insert(cpu);
        }
        mutual.insert(cpu, agreed.into_iter().chain([cpu]).collect::<CpuSet>());
    }

    for (&cpu, group) in &mutual {
        let is_group =
            group.len() == 1 || group.iter().all(|other| mutual.get(&other) == Some(group));
        if is_group && group.first() != Some(cpu) {
            continue; // its core was made when its lowest CPU was met
        }
        let cpus = if is_group { group.clone() } else { CpuSet::from_iter([cpu]) };
        if !is_group {
            contradicted.insert(cpu);
        }
        let named = siblings.get(&cpu).filter(|set| is_core(set));
        let named = named.map_or(0, |set| set.len() + usize::from(!set.contains(cpu)));
        let siblings_total = if is_group { named.max(cpus.len()) } else { 1 };
        cores.push(PhysicalCore { cpus, siblings_total, class: 0 });
    }
    cores.sort_unstable_by_key(PhysicalCore::first_cpu);
    (cores, contradicted.into_iter().collect())
}

/// Cores whose CPUs all name the very same set, themselves in it: nearly all cores of nearly all machines.
fn agreed_by_all(siblings: &BTreeMap<usize, CpuSet>, allowed: &CpuSet) -> Vec<PhysicalCore> {
    let core = |(cpu, named): (&usize, &CpuSet)| {
        let mut members = believed(named).filter(|other| allowed.contains(*other));
        let is_first = members.next() == Some(*cpu);
        let is_core = is_first && members.all(|other| siblings.get(&other) == Some(named));
        is_core.then(|| PhysicalCore {
            cpus: believed(named).filter(|other| allowed.contains(*other)).collect(),
            siblings_total: named.len(),
            class: 0,
        })
    };
    siblings.iter().filter_map(core).collect()
}

/// Whether so many CPUs can be those of one core.
pub(crate) fn is_core(named: &CpuSet) -> bool {
    named.len() <= MAX_CPUS_OF_CORE
}

/// The CPUs named, none if they are too many for a core.
fn believed(named: &CpuSet) -> impl Iterator<Item = usize> {
    named.iter().take(if is_core(named) { MAX_CPUS_OF_CORE } else { 0 })
}

fn believes(named: &CpuSet, cpu: usize) -> bool {
    is_core(named) && named.contains(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_list::parse_cpu_list;

    /// CPUs with the lists they name, the cores that follow, and the CPUs that are contradicted.
    type Case = (&'static [(usize, &'static str)], &'static [&'static str], &'static [usize]);

    const CASES: &[Case] = &[
        (&[], &[], &[]),
        (&[(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")], &["0-1", "2-3"], &[]),
        (&[(0, "0,64"), (1, "1,65"), (64, "0,64"), (65, "1,65")], &["0,64", "1,65"], &[]),
        // Only some are allowed: a core keeps what is left of it.
        (&[(1, "0-1"), (3, "2-3"), (4, "4-5"), (5, "4-5")], &["1", "3", "4-5"], &[]),
        // Lists that leave the CPU itself out.
        (&[(0, "1"), (1, "0")], &["0-1"], &[]),
        // Unknown siblings never merge, not even with a CPU that claims them.
        (&[(0, ""), (1, ""), (2, "")], &["0", "1", "2"], &[]),
        (&[(0, "0-1"), (1, "")], &["0", "1"], &[0]),
        // CPU 1 says it belongs to CPU 0, which does not know.
        (&[(0, "0"), (1, "0")], &["0", "1"], &[1]),
        // A chain is no group.
        (&[(0, "0-1"), (1, "0-2"), (2, "1-2")], &["0", "1", "2"], &[0, 1, 2]),
        // One wrong claim does not tear the others apart, whoever makes it.
        (&[(0, "0-2"), (1, "0-1"), (2, "2")], &["0-1", "2"], &[0]),
        (&[(0, "0-1"), (1, "0-1"), (2, "0-2")], &["0-1", "2"], &[2]),
        // As many as a core may have, and one more, which no core has.
        (&[(0, "0-63"), (1, "0-63")], &["0-1"], &[]),
        (&[(0, "0-64"), (1, "0-64")], &["0", "1"], &[]),
        (&[(0, "0-64"), (1, "0-1")], &["0", "1"], &[1]),
        // A core that all its CPUs name, beside one that claims some of them.
        (&[(0, "0,2"), (1, "1-2"), (2, "0,2")], &["0,2", "1"], &[1]),
        // Foreign ids only (a container that renumbers nothing).
        (&[(1, "1,5"), (4, "0,4")], &["1", "4"], &[]),
    ];

    #[test]
    fn cores_follow_from_what_both_sides_say() {
        for (input, expected, contradicted) in CASES {
            let siblings =
                input.iter().map(|(cpu, list)| (*cpu, parse_cpu_list(list).unwrap())).collect();
            let (cores, odd) = partition(&siblings);
            let found = cores.iter().map(|core| core.cpus.to_string()).collect::<Vec<_>>();
            assert_eq!(found, *expected, "input {input:?}");
            assert_eq!(odd, *contradicted, "input {input:?}");
        }
    }

    #[test]
    fn foreign_siblings_count_in_the_total() {
        let siblings = [(1, "1,5"), (4, "0,4"), (6, ""), (7, "8")];
        let siblings =
            siblings.iter().map(|(cpu, list)| (*cpu, parse_cpu_list(list).unwrap())).collect();
        let totals =
            partition(&siblings).0.iter().map(|core| core.siblings_total).collect::<Vec<_>>();
        assert_eq!(totals, [2, 2, 1, 2]);
    }

    #[test]
    fn a_set_that_is_no_core_adds_nothing_to_the_total() {
        let siblings = BTreeMap::from([(3, (0..=MAX_CPUS_OF_CORE).collect::<CpuSet>())]);
        assert_eq!(partition(&siblings).0[0].siblings_total, 1);
    }
}
