//! Windows: the topology in the records of `GetLogicalProcessorInformationEx`. Built and tested on every OS.
#![forbid(unsafe_code)]

mod records;

use std::collections::BTreeMap;

use self::records::{Cache, Core, Records};
use crate::class::{Signal, Speeds, classes_of};
use crate::cores::{PhysicalCore, is_core};
use crate::cpu_list::MAX_CPU_ID;
use crate::cpu_set::CpuSet;
use crate::note::Note;
use crate::places::{CacheDomain, Places, cache_domains, groups, numa_nodes};
use crate::quota::Quota;
use crate::source::AllowedSource;
use crate::topology::CpuTopology;

/// `JOB_OBJECT_CPU_RATE_CONTROL_*`.
const RATE_ENABLE: u32 = 1;
const RATE_HARD_CAP: u32 = 4;
const RATE_MIN_MAX: u32 = 16;

/// What a rate of a job is a part of: 10,000 is all CPUs of the machine.
const RATE_UNIT: u64 = 10_000;

/// Processors of one group of up to 64, as in `GROUP_AFFINITY`.
///
/// ```
/// let mask = cpu_topology::GroupMask { group: 1, mask: 0b101 };
/// assert_eq!(mask.cpus().to_string(), "64,66");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMask {
    /// The number of the group.
    pub group: u16,
    /// A bit for each processor.
    pub mask: u64,
}

impl GroupMask {
    /// The ids of these processors in this crate: `group * 64 + bit`. None for a group above 16,383.
    pub fn cpus(&self) -> CpuSet {
        self.ids().collect()
    }

    fn ids(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, mask) = (usize::from(self.group) * 64, self.mask);
        let bits = (0..64).filter(move |bit| mask >> bit & 1 == 1);
        bits.map(move |bit| first + bit).filter(|cpu| *cpu <= MAX_CPU_ID)
    }
}

/// What Windows says of a machine and of a process: the running system's, or played by a test.
///
/// ```
/// use cpu_topology::{CpuTopology, WindowsFacts};
///
/// // Nothing is known, not even one processor.
/// assert!(CpuTopology::from_windows(&WindowsFacts::default()).is_empty());
///
/// // A record of 48 bytes: a core with the first two processors of group 0.
/// let mut facts = WindowsFacts::default();
/// facts.records = [[0, 0, 0, 0, 48, 0, 0, 0], [0; 8], [0; 8], [0, 0, 0, 0, 0, 0, 1, 0], [3, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat();
/// assert_eq!(CpuTopology::from_windows(&facts).cores()[0].cpus().to_string(), "0-1");
/// ```
///
/// More facts may be added, so one starts with those of [`default`](Self::default), which are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowsFacts {
    /// What `GetLogicalProcessorInformationEx` gives for `RelationAll`, followed by what it gives for
    /// `RelationNumaNodeEx` where that exists. Processors of groups above 255 are left out.
    pub records: Vec<u8>,
    /// Whether the records are those of a 32-bit process, whose masks have 4 bytes.
    pub is_32_bit: bool,
    /// What the process is restricted to; empty if it is not.
    pub affinity: Vec<GroupMask>,
    /// `ControlFlags` and the number beside them of `JOBOBJECT_CPU_RATE_CONTROL_INFORMATION`, if the process is in a job.
    pub cpu_rate: Option<(u32, u32)>,
}

/// The machine and process that the facts describe; empty if the records name no processor.
pub(crate) fn read(facts: &WindowsFacts) -> CpuTopology {
    let mut records = Records::parse(&facts.records, if facts.is_32_bit { 4 } else { 8 });
    let active = records.active();
    let mut notes = without_junk(&mut records.cores);
    let wanted = facts.affinity.iter().flat_map(GroupMask::ids);
    let restricted = wanted.collect::<CpuSet>().intersection(&active);
    // A restriction to processors that are not there is no restriction that could be kept.
    let allowed = if restricted.is_empty() { active.clone() } else { restricted };

    let siblings = siblings(&records.cores, &allowed);
    let source =
        if allowed.is_empty() { AllowedSource::Nowhere } else { AllowedSource::ProcessorGroups };
    let mut topology = CpuTopology::build(&siblings, source, &Speeds::unknown());
    classify(&mut topology, &records.cores);
    topology.quota = facts.cpu_rate.and_then(|(flags, rate)| quota(flags, rate, active.len()));
    topology.places = places(&records, &topology.cores, &allowed, |note| notes.push(note));
    topology.places.online = Some(active).filter(|active| !active.is_empty());
    notes.extend(records.cut_off.map(|at| Note::RecordsCutOff { at }));
    if records.n_groups > 1 {
        notes.push(Note::SeveralGroups { count: records.n_groups });
    }
    topology.notes.extend(notes);
    topology
}

/// Takes out the cores that are none.
fn without_junk(cores: &mut Vec<Core>) -> Vec<Note> {
    let mut notes = Vec::new();
    cores.retain(|core| {
        let is_core = is_core(&core.cpus);
        let first = core.cpus.first().filter(|_| !is_core);
        notes.extend(first.map(|cpu| Note::CoreTooLarge { cpu, count: core.cpus.len() }));
        is_core
    });
    notes
}

/// Each allowed CPU with the CPUs of the first core that names it; alone if none does.
fn siblings(cores: &[Core], allowed: &CpuSet) -> BTreeMap<usize, CpuSet> {
    let mut siblings = allowed.iter().map(|cpu| (cpu, CpuSet::new())).collect::<BTreeMap<_, _>>();
    for core in cores {
        for cpu in core.cpus.iter() {
            if let Some(of_cpu) = siblings.get_mut(&cpu).filter(|of_cpu| of_cpu.is_empty()) {
                *of_cpu = core.cpus.clone();
            }
        }
    }
    siblings
}

/// Classes by `EfficiencyClass`, of which a higher one is faster. The slowest of several on the machine is the one of
/// efficiency cores.
fn classify(topology: &mut CpuTopology, records: &[Core]) {
    let mut values = records.iter().map(|core| core.efficiency_class).collect::<Vec<_>>();
    values.sort_unstable_by(|left, right| right.cmp(left));
    values.dedup();
    if values.len() < 2 {
        return;
    }
    let mut class_of = BTreeMap::new();
    for record in records {
        for cpu in record.cpus.iter() {
            class_of.entry(cpu).or_insert(record.efficiency_class);
        }
    }
    for core in &mut topology.cores {
        let value = class_of.get(&core.first_cpu()).copied().unwrap_or(0);
        core.class = values.iter().position(|other| *other == value).unwrap_or(values.len() - 1);
    }
    let kinds = (0..values.len()).map(|class| (None, class + 1 == values.len())).collect();
    topology.classes = classes_of(&mut topology.cores, kinds);
    topology.class_signal = (topology.classes.len() > 1).then_some(Signal::EfficiencyClass);
}

/// A hard limit of a job: a part of all CPUs of the machine.
fn quota(flags: u32, rate: u32, n_cpus: usize) -> Option<Quota> {
    // Lower half: the least, upper half: the most.
    let rate = match flags {
        _ if flags & RATE_ENABLE == 0 => return None,
        _ if flags & RATE_MIN_MAX != 0 => rate >> 16,
        _ if flags & RATE_HARD_CAP != 0 => rate,
        _ => return None,
    };
    let whole = u64::from(rate) >= RATE_UNIT || rate == 0;
    if whole { None } else { Quota::new(u64::from(rate) * n_cpus as u64, RATE_UNIT) }
}

fn places(
    records: &Records,
    cores: &[PhysicalCore],
    allowed: &CpuSet,
    mut note: impl FnMut(Note),
) -> Places {
    let mut highest = BTreeMap::<usize, &Cache>::new();
    for cache in &records.caches {
        for cpu in cache.cpus.iter() {
            let of_cpu = highest.entry(cpu).or_insert(cache);
            if cache.level >= of_cpu.level {
                *of_cpu = cache;
            }
        }
    }
    let last_level = |core: &PhysicalCore| {
        let Cache { level, size, cpus } = highest.get(&core.first_cpu())?;
        Some(CacheDomain {
            level: usize::from(*level),
            cpus: cpus.clone(),
            size: Some(u64::from(*size)).filter(|size| *size > 0),
        })
    };
    // They have no numbers of their own. The first one that names a core counts.
    let numbered = |sets: &[CpuSet]| {
        let mut first = BTreeMap::new();
        for (id, set) in sets.iter().enumerate() {
            set.iter().for_each(|cpu| _ = first.entry(cpu).or_insert(id));
        }
        groups(
            cores
                .iter()
                .filter_map(|core| Some(([*first.get(&core.first_cpu())?], core.cpus().clone()))),
        )
    };
    let (nodes, other_nodes) = numa_nodes(records.nodes.iter().cloned(), allowed, &mut note);
    Places {
        packages: numbered(&records.packages),
        dies: numbered(&records.dies),
        clusters: numbered(&records.modules),
        nodes,
        other_nodes,
        caches: cache_domains(cores, allowed, last_level, &mut note),
        ..Places::default()
    }
}
