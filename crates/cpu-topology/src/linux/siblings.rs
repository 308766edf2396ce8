//! Which CPUs name which as siblings.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::cores::is_core;
use crate::cpu_list::{parse_cpu_list, parse_cpu_mask, parse_thread_siblings_list};
use crate::cpu_set::CpuSet;
use crate::error::ParseError;
use crate::linux::cpuinfo;
use crate::linux::tree::{CpuDirectory, Tree};
use crate::note::Note;

/// The same fact in four files: newer name and older name, as a list and as a mask. Kernels before 5.3 have only the
/// older names; some snapshots have only masks.
const NAMES: [&str; 4] = ["core_cpus_list", "thread_siblings_list", "core_cpus", "thread_siblings"];

/// How many of the names are of lists.
const N_LISTS: usize = 2;

/// The siblings of each allowed CPU, unknown (empty) where no file tells; `None` if no file tells for any CPU.
pub(super) fn by_files(
    tree: &Tree,
    directory: &CpuDirectory,
    allowed: &CpuSet,
) -> Option<BTreeMap<usize, CpuSet>> {
    // What one CPU has, the next will have: that is asked for first.
    let mut usual = 0;
    let siblings = allowed
        .iter()
        .map(|cpu| (cpu, named_by(tree, directory, cpu, &mut usual)))
        .collect::<BTreeMap<usize, CpuSet>>();
    siblings.values().any(|set| !set.is_empty()).then_some(siblings)
}

/// The siblings that the first sound file of a CPU names; else what can be read of a list that is not sound, which
/// merges nothing unless the other side agrees.
fn named_by(tree: &Tree, directory: &CpuDirectory, cpu: usize, usual: &mut usize) -> CpuSet {
    if !directory.has(cpu) {
        return CpuSet::new();
    }
    let mut unsound = CpuSet::new();
    let others = (0..NAMES.len()).filter(|index| index != usual);
    for index in std::iter::once(*usual).chain(others).collect::<Vec<_>>() {
        let path = directory.file(cpu, &format!("topology/{}", NAMES[index]));
        let Some(text) = tree.text(&path) else { continue };
        let is_list = index < N_LISTS;
        match if is_list { parse_cpu_list(&text) } else { parse_cpu_mask(&text) } {
            Ok(set) if !set.is_empty() => {
                *usual = index;
                return of_core(tree, cpu, set);
            }
            Ok(_) if is_list => tree.malformed(&path, ParseError::Empty),
            Ok(_) => {}
            Err(error) => {
                tree.malformed(&path, error);
                if is_list && unsound.is_empty() {
                    unsound =
                        of_core(tree, cpu, parse_thread_siblings_list(&text).into_iter().collect());
                }
            }
        }
    }
    unsound
}

/// The set, unknown if it is none of a core.
fn of_core(tree: &Tree, cpu: usize, set: CpuSet) -> CpuSet {
    if is_core(&set) {
        return set;
    }
    tree.note(Note::CoreTooLarge { cpu, count: set.len() });
    CpuSet::new()
}

/// For a copy of a machine without any sibling file: what shares the level-1 data cache, else what has the same ids.
///
/// A guess, and noted as one. It is used only if it covers every allowed CPU.
pub(super) fn by_guess(
    tree: &Tree,
    directory: &CpuDirectory,
    allowed: &CpuSet,
) -> Option<BTreeMap<usize, CpuSet>> {
    let (from, siblings) = by_cache(tree, directory, allowed)
        .map(|siblings| ("the level-1 data cache", siblings))
        .or_else(|| by_ids(tree, directory, allowed).map(|siblings| ("core ids", siblings)))
        .or_else(|| {
            by_cpuinfo(tree, allowed).map(|siblings| ("core ids in /proc/cpuinfo", siblings))
        })?;
    tree.note(Note::CoresGuessed { from });
    Some(siblings)
}

fn by_cache(
    tree: &Tree,
    directory: &CpuDirectory,
    allowed: &CpuSet,
) -> Option<BTreeMap<usize, CpuSet>> {
    allowed.iter().map(|cpu| Some((cpu, sharing_cache(tree, directory, cpu)?))).collect()
}

fn sharing_cache(tree: &Tree, directory: &CpuDirectory, cpu: usize) -> Option<CpuSet> {
    let caches = directory.file(cpu, "cache");
    tree.numbered(&caches, "index").ok()?.iter().find_map(|index| {
        let path = |name: &str| format!("{caches}/index{index}/{name}");
        let is_data = tree.text(&path("type"))? == "Data" && tree.number(&path("level"))? == 1;
        let list = || tree.parsed(&path("shared_cpu_list"), parse_cpu_list);
        let mask = || tree.parsed(&path("shared_cpu_map"), parse_cpu_mask);
        let set = is_data.then(|| list().or_else(mask)).flatten()?;
        (!set.is_empty() && is_core(&set)).then_some(set)
    })
}

/// A core id alone is no core: it starts again in each package, die and cluster.
fn by_ids(
    tree: &Tree,
    directory: &CpuDirectory,
    allowed: &CpuSet,
) -> Option<BTreeMap<usize, CpuSet>> {
    let key = |cpu: usize| {
        let id = |name: &str| tree.number(&directory.file(cpu, &format!("topology/{name}")));
        Some([
            id("physical_package_id")?,
            id("die_id").unwrap_or(0),
            id("cluster_id").unwrap_or(0),
            id("core_id")?,
        ])
    };
    let keys = allowed.iter().map(|cpu| Some((cpu, key(cpu)?))).collect::<Option<Vec<_>>>()?;
    group(tree, keys)
}

fn by_cpuinfo(tree: &Tree, allowed: &CpuSet) -> Option<BTreeMap<usize, CpuSet>> {
    let processors = cpuinfo::processors(tree);
    let key = |cpu: usize| {
        let processor = processors.get(&cpu)?;
        Some((cpu, [processor.package?, processor.core?]))
    };
    group(tree, allowed.iter().map(key).collect::<Option<Vec<_>>>()?)
}

/// CPUs with equal keys name each other; `None` if that makes no core at all.
fn group<K: Ord>(tree: &Tree, keys: Vec<(usize, K)>) -> Option<BTreeMap<usize, CpuSet>> {
    let mut groups = BTreeMap::<K, Vec<usize>>::new();
    for (cpu, key) in keys {
        groups.entry(key).or_default().push(cpu);
    }
    let mut siblings = BTreeMap::new();
    for group in groups.into_values() {
        let Some(first) = group.first().copied() else { continue };
        let set = of_core(tree, first, group.iter().copied().collect());
        siblings.extend(group.into_iter().map(|cpu| (cpu, set.clone())));
    }
    siblings.values().any(|set| !set.is_empty()).then_some(siblings)
}
