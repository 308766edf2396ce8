//! Apple machines from `hw.perflevelN.*`: any number of levels, from any source of values.
//!
//! Level 0 is the fastest (`<sys/sysctl.h>`). Chips with one, two and three levels exist, and the name of a level tells
//! whether its cores are efficiency cores: the second of two levels need not be.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::class::{Signal, Speeds, classes_of};
use crate::cores::PhysicalCore;
use crate::cpu_list::trim;
use crate::cpu_set::CpuSet;
use crate::note::Note;
use crate::places::{CacheDomain, Places};
use crate::source::AllowedSource;
use crate::topology::CpuTopology;

/// More levels than any chip will have; a count beyond it is not believed.
const MAX_LEVELS: u64 = 64;

/// More logical CPUs than any such machine will have.
const MAX_CPUS: u64 = 4096;

/// Where values of `sysctl` come from: the running system, or a table in a test.
///
/// ```
/// use cpu_topology::{CpuTopology, SysctlSource};
///
/// struct Nothing;
///
/// impl SysctlSource for Nothing {
///     fn read(&self, _name: &str) -> Option<Vec<u8>> {
///         None
///     }
/// }
///
/// assert!(CpuTopology::from_sysctl(&Nothing).is_empty());
/// ```
pub trait SysctlSource {
    /// The bytes of the value as `sysctlbyname` gives them: an integer of 4 or 8 bytes in native order, or a string
    /// with a NUL at its end. `None` if there is no such value.
    fn read(&self, name: &str) -> Option<Vec<u8>>;
}

/// One performance level that has cores.
struct Level {
    physical: u64,
    logical: u64,
    name: Option<String>,
    /// Logical CPUs that share a level-2 cache, and its size in bytes.
    per_l2: Option<u64>,
    l2_size: Option<u64>,
}

/// The machine that `source` describes; empty if it tells nothing.
pub(crate) fn read(source: &impl SysctlSource) -> CpuTopology {
    let mut levels = perf_levels(source);
    let by_level = !levels.is_empty();
    if !by_level {
        levels.extend(whole_machine(source));
    }
    let kinds = kinds(&levels);

    let mut siblings = BTreeMap::new();
    let mut level_of = Vec::new();
    let mut next = 0;
    for (index, level) in levels.iter().enumerate() {
        for core in 0..level.physical {
            // All of the level's logical CPUs, spread evenly over its cores.
            let width =
                level.logical / level.physical + u64::from(core < level.logical % level.physical);
            let cpus = CpuSet::from_ranges(vec![(next, next + width as usize - 1)]);
            next += width as usize;
            siblings.extend(cpus.iter().map(|cpu| (cpu, cpus.clone())));
            level_of.push(index);
        }
    }
    let found = if siblings.is_empty() { AllowedSource::Nowhere } else { AllowedSource::Sysctl };
    let mut topology = CpuTopology::build(&siblings, found, &Speeds::unknown());
    for (core, level) in topology.cores.iter_mut().zip(level_of) {
        core.class = level;
    }
    topology.classes = classes_of(&mut topology.cores, kinds);
    topology.class_signal = (topology.classes.len() > 1).then_some(Signal::PerfLevels);
    topology.places = places(&topology.cores, &levels, source);
    topology.ids_are_real = false;
    topology.notes.push(Note::IdsAreMadeUp);
    if topology.places.virtualized == Some(true) {
        topology.notes.push(Note::Virtualized);
    }
    if integer(source, "sysctl.proc_translated") == Some(1) {
        topology.notes.push(Note::Translated);
    }
    topology
}

/// Level-2 caches, which are the last level that these values tell of: so many logical CPUs of a level share one. Their
/// ids are as made up as those of the CPUs.
fn places(cores: &[PhysicalCore], levels: &[Level], source: &impl SysctlSource) -> Places {
    let mut caches: Vec<CacheDomain> = Vec::new();
    // CPUs in the cache that is being filled, and whose it is.
    let mut filled = (usize::MAX, 0);
    for core in cores {
        let Some((level, per_l2)) = levels.get(core.class).and_then(|l| Some((l, l.per_l2?)))
        else {
            continue;
        };
        let width = core.cpus.len() as u64;
        match caches.last_mut() {
            Some(cache) if filled.0 == core.class && filled.1 + width <= per_l2 => {
                cache.cpus = cache.cpus.union(&core.cpus);
                filled.1 += width;
            }
            _ => {
                caches.push(CacheDomain { level: 2, cpus: core.cpus.clone(), size: level.l2_size });
                filled = (core.class, width);
            }
        }
    }
    let all = cores.iter().flat_map(|core| core.cpus.iter()).collect::<CpuSet>();
    Places {
        caches,
        online: Some(all).filter(|all| !all.is_empty()),
        virtualized: integer(source, "kern.hv_vmm_present").map(|present| present == 1),
        ..Places::default()
    }
}

/// Label of each level and whether its cores are efficiency cores. The name decides; where no level has one, the last
/// of several is taken for the efficiency level, as on the first chips.
fn kinds(levels: &[Level]) -> Vec<(Option<String>, bool)> {
    let last = levels.len().saturating_sub(1);
    let efficiency = |index: usize, level: &Level| match &level.name {
        Some(name) => name.eq_ignore_ascii_case("efficiency"),
        None => index > 0 && index == last,
    };
    levels
        .iter()
        .enumerate()
        .map(|(index, level)| (level.name.clone(), efficiency(index, level)))
        .collect()
}

/// The levels that have cores, the fastest first. A level that cannot be read, or has none, is left out.
fn perf_levels(source: &impl SysctlSource) -> Vec<Level> {
    let count = integer(source, "hw.nperflevels");
    let mut levels = Vec::new();
    let mut cpus = 0;
    for index in 0..count.unwrap_or(MAX_LEVELS).min(MAX_LEVELS) {
        let Some(physical) = integer(source, &format!("hw.perflevel{index}.physicalcpu")) else {
            if count.is_none() {
                break;
            }
            continue;
        };
        let logical = integer(source, &format!("hw.perflevel{index}.logicalcpu"))
            .unwrap_or(physical)
            .max(physical);
        if physical == 0 || logical > MAX_CPUS - cpus {
            continue;
        }
        cpus += logical;
        let name = source.read(&format!("hw.perflevel{index}.name")).and_then(|bytes| text(&bytes));
        let above_zero = |value: &str| {
            integer(source, &format!("hw.perflevel{index}.{value}")).filter(|value| *value > 0)
        };
        let (per_l2, l2_size) = (above_zero("cpusperl2"), above_zero("l2cachesize"));
        levels.push(Level { physical, logical, name, per_l2, l2_size });
    }
    levels
}

/// A machine without levels: an Intel Mac, or an old system.
fn whole_machine(source: &impl SysctlSource) -> Option<Level> {
    let physical = integer(source, "hw.physicalcpu").or_else(|| integer(source, "hw.ncpu"))?;
    let logical = integer(source, "hw.logicalcpu").unwrap_or(physical).max(physical);
    (physical > 0 && logical <= MAX_CPUS).then_some(Level {
        physical,
        logical,
        name: None,
        per_l2: None,
        l2_size: None,
    })
}

/// An integer of 4 or 8 bytes. A negative one is no count.
pub(crate) fn integer(source: &impl SysctlSource, name: &str) -> Option<u64> {
    let bytes = source.read(name)?;
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return u64::try_from(i32::from_ne_bytes(four)).ok();
    }
    u64::try_from(i64::from_ne_bytes(<[u8; 8]>::try_from(bytes.as_slice()).ok()?)).ok()
}

/// A string without its NUL, or nothing if it is empty.
pub(crate) fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    let text = trim(&text);
    (!text.is_empty()).then(|| text.to_owned())
}
