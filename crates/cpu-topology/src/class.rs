//! Core classes: which cores are equally fast, and which of them are efficiency cores.
#![forbid(unsafe_code)]

use std::fmt;

use crate::cores::PhysicalCore;
use crate::cpu_set::CpuSet;

/// The cores of one speed on this machine.
///
/// ```
/// use cpu_topology::CpuTopology;
///
/// let topology = CpuTopology::from_sibling_lists([(0, vec![0]), (1, vec![1])]);
/// let classes = topology.classes();
/// assert_eq!(classes.len(), 1); // nothing is known of their speed, so they are all the same
/// assert!(!classes[0].is_efficiency());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreClass {
    pub(crate) cpus: CpuSet,
    pub(crate) n_cores: usize,
    pub(crate) efficiency: bool,
    pub(crate) label: Option<String>,
}

impl CoreClass {
    /// The allowed logical CPUs of this class.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// How many physical cores it has.
    pub fn n_cores(&self) -> usize {
        self.n_cores
    }

    /// Whether these are efficiency cores, on which a fork-join pool should have no worker. Never true of all classes.
    pub fn is_efficiency(&self) -> bool {
        self.efficiency
    }

    /// The system's name for them, where it has one. For people to read: nothing is decided by it.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

/// Where the classes were seen.
///
/// ```
/// use cpu_topology::CpuTopology;
///
/// match CpuTopology::detect().class_signal() {
///     Some(signal) => println!("several classes, told apart by {signal}"),
///     None => println!("one class"),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// `/sys/devices/cpu_core/cpus`, `cpu_atom/cpus` and `cpu_lowpower/cpus`: the performance counters of an Intel
    /// hybrid, one device per kind of core.
    PmuLists,
    /// `cpu_capacity`: the scheduler's own measure, 1024 for the fastest CPU (kernel documentation, `sched-capacity`).
    CpuCapacity,
    /// The design of ARM cores (`CPU part` in `/proc/cpuinfo`, or `midr_el1`): designs of low power next to others.
    Design,
    /// `cpufreq/base_frequency` of `intel_pstate`, in kHz.
    BaseFrequency,
    /// `acpi_cppc/highest_perf`, an abstract scale (ACPI specification, CPPC).
    HighestPerf,
    /// Cores with several logical CPUs, all of them with a higher `cpufreq/cpuinfo_max_freq` than those with one.
    SmtAndMaxFreq,
    /// `cpufreq/cpuinfo_max_freq`, in kHz.
    MaxFreq,
    /// `hw.perflevelN` of macOS.
    PerfLevels,
    /// `EfficiencyClass` of Windows.
    EfficiencyClass,
}

impl fmt::Display for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::PmuLists => "cpu_core/cpus and cpu_atom/cpus",
            Self::CpuCapacity => "cpu_capacity",
            Self::BaseFrequency => "cpufreq/base_frequency",
            Self::HighestPerf => "acpi_cppc/highest_perf",
            Self::SmtAndMaxFreq => "siblings with cpufreq/cpuinfo_max_freq",
            Self::MaxFreq => "cpufreq/cpuinfo_max_freq",
            Self::PerfLevels => "hw.perflevel",
            Self::Design => "core designs (CPU part)",
            Self::EfficiencyClass => "EfficiencyClass",
        })
    }
}

/// A signal's number for one core; zero or absent is unknown.
type NumberOf<'a> = dyn Fn(Signal, &PhysicalCore) -> Option<u64> + 'a;

/// A signal's numbers for CPUs beside the cores in question.
type OthersOf<'a> = dyn Fn(Signal) -> Vec<u64> + 'a;

/// The design of a core, where the machine tells.
type DesignOf<'a> = dyn Fn(&PhysicalCore) -> Option<CoreDesign> + 'a;

/// What a core is by its design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoreDesign {
    /// The same for cores of one design.
    pub(crate) key: u64,
    /// Whether the design is one for low power.
    pub(crate) low_power: bool,
}

/// What is known about the speed of the cores.
pub(crate) struct Speeds<'a> {
    /// Intel's lists, fastest first: kind of core, its CPUs.
    pub(crate) pmu: Vec<(&'static str, CpuSet)>,
    /// Asked only for signals that may decide, as reading some of them takes the firmware a while.
    pub(crate) number: Box<NumberOf<'a>>,
    /// A signal's numbers for the machine's other CPUs, which the process may not use.
    pub(crate) others: Box<OthersOf<'a>>,
    pub(crate) design: Box<DesignOf<'a>>,
}

impl Speeds<'_> {
    /// Nothing is known.
    pub(crate) fn unknown() -> Self {
        Self {
            pmu: Vec::new(),
            number: Box::new(|_, _| None),
            others: Box::new(|_| Vec::new()),
            design: Box::new(|_| None),
        }
    }

    fn of_all(&self, signal: Signal, cores: &[PhysicalCore]) -> Vec<Option<u64>> {
        cores.iter().map(|core| (self.number)(signal, core)).collect()
    }

    /// The numbers of all cores; else the first core that has none, if there is one that has, or nothing.
    ///
    /// A signal that misses a core is no use, so no further core is asked then, but for the last one: it tells whether the
    /// signal exists at all.
    fn complete(&self, signal: Signal, cores: &[PhysicalCore]) -> Result<Vec<u64>, Option<usize>> {
        let known = |core: &PhysicalCore| (self.number)(signal, core).filter(|value| *value > 0);
        let mut values = Vec::with_capacity(cores.len());
        for core in cores {
            match known(core) {
                Some(value) => values.push(value),
                None => {
                    let exists = !values.is_empty() || cores.last().and_then(known).is_some();
                    return Err(exists.then(|| core.first_cpu()));
                }
            }
        }
        if values.is_empty() { Err(None) } else { Ok(values) }
    }
}

/// A division of the cores: class of each, 0 the fastest, and which classes are of efficiency cores.
struct Split {
    class_of: Vec<usize>,
    efficiency: Vec<bool>,
    labels: Vec<Option<String>>,
}

/// Classes of the cores, by the first signal that knows all of them and tells any apart. Sets the class of each core.
///
/// Also reports signals that know only some of the cores, with the lowest CPU of one that has none.
pub(crate) fn classify(
    cores: &mut [PhysicalCore],
    speeds: &Speeds<'_>,
) -> (Vec<CoreClass>, Option<Signal>, Vec<(Signal, usize)>) {
    const SIGNALS: [Signal; 5] = [
        Signal::CpuCapacity,
        Signal::Design,
        Signal::BaseFrequency,
        Signal::HighestPerf,
        Signal::MaxFreq,
    ];
    let mut incomplete = Vec::new();
    let mut found = split_by_pmu(cores, speeds).map(|split| (Signal::PmuLists, split));
    // Capacities that differ are the kernel's own judgement, even if the difference makes no class.
    let mut judged = false;
    for signal in SIGNALS {
        if found.is_some() {
            break;
        }
        if signal == Signal::Design {
            found = if judged { None } else { split_by_design(cores, speeds) }
                .map(|split| (signal, split));
            continue;
        }
        match speeds.complete(signal, cores) {
            Ok(values) => {
                judged = values.iter().any(|value| *value != values[0]);
                found = split_by_values(signal, &values, cores, speeds);
            }
            Err(missing) => incomplete.extend(missing.map(|cpu| (signal, cpu))),
        }
    }
    let (signal, split) = match found {
        Some((signal, split)) => (Some(signal), split),
        None => (
            None,
            Split { class_of: vec![0; cores.len()], efficiency: vec![false], labels: vec![None] },
        ),
    };
    let classes = apply(cores, split);
    let signal = signal.filter(|_| classes.len() > 1);
    (classes, signal, incomplete)
}

/// By the numbers of one signal, which every core has.
fn split_by_values(
    signal: Signal,
    values: &[u64],
    cores: &[PhysicalCore],
    speeds: &Speeds<'_>,
) -> Option<(Signal, Split)> {
    if signal == Signal::MaxFreq
        && let Some(split) = split_by_smt(cores, values)
    {
        return Some((Signal::SmtAndMaxFreq, split));
    }
    let split = split_by_number(values, || (speeds.others)(signal))?;
    Some((signal, without_slow_twins(split, cores, speeds)))
}

/// Builds the classes of a division made elsewhere; `kinds` has label and efficiency of each, fastest first.
pub(crate) fn classes_of(
    cores: &mut [PhysicalCore],
    kinds: Vec<(Option<String>, bool)>,
) -> Vec<CoreClass> {
    let class_of = cores.iter().map(|core| core.class).collect();
    let (labels, efficiency) = kinds.into_iter().unzip();
    apply(cores, Split { class_of, efficiency, labels })
}

fn apply(cores: &mut [PhysicalCore], split: Split) -> Vec<CoreClass> {
    let mut classes = Vec::new();
    for (index, (mut efficiency, label)) in
        split.efficiency.iter().copied().zip(split.labels).enumerate()
    {
        let members =
            || split.class_of.iter().enumerate().filter(move |(_, class)| **class == index);
        if members().next().is_none() {
            continue;
        }
        // Never an empty set of performance cores: the fastest class there is counts as one.
        efficiency &= !classes.is_empty();
        let cpus = members().flat_map(|(core, _)| cores[core].cpus.iter()).collect();
        let n_cores = members().count();
        for (core, _) in members() {
            cores[core].class = classes.len();
        }
        classes.push(CoreClass { cpus, n_cores, efficiency, label });
    }
    classes
}

/// All values, if every core has one.
fn complete(values: &[Option<u64>]) -> Option<Vec<u64>> {
    values.iter().map(|value| value.filter(|value| *value > 0)).collect()
}

/// Ranks of the values, 0 for the largest: a new rank where a value is at least 1.25 times the next smaller one.
///
/// The gap keeps the spread inside one kind of core together (favoured cores, binning) and is smaller than the step
/// between any two kinds that were seen.
fn ranks(values: &[u64]) -> Vec<usize> {
    let mut distinct = values.to_vec();
    distinct.sort_unstable_by(|left, right| right.cmp(left));
    distinct.dedup();
    let mut steps = vec![0; distinct.len()];
    for index in 1..distinct.len() {
        let gap = u128::from(distinct[index - 1]) * 4 >= u128::from(distinct[index]) * 5;
        steps[index] = steps[index - 1] + usize::from(gap);
    }
    values.iter().map(|value| steps[distinct.partition_point(|other| other > value)]).collect()
}

/// By one number per core. With several classes, the slowest on the machine is of efficiency cores.
///
/// Where there is a gap, the machine's other CPUs are asked as well: a process that may use the best and the worst of a
/// row of equal cores sees a gap where there is none.
fn split_by_number(values: &[u64], others: impl FnOnce() -> Vec<u64>) -> Option<Split> {
    if ranks(values).iter().all(|rank| *rank == 0) {
        return None;
    }
    let all = [values, &others()].concat();
    let mut class_of = ranks(&all);
    let n_classes = class_of.iter().max()? + 1;
    class_of.truncate(values.len());
    if class_of.iter().all(|class| *class == class_of[0]) {
        return None;
    }
    let efficiency = (0..n_classes).map(|class| class == n_classes - 1).collect();
    Some(Split { class_of, efficiency, labels: vec![None; n_classes] })
}

/// Slow cores of the design that the fast ones have are slow, and no efficiency cores: phones have clusters of one
/// design at two clock rates.
fn without_slow_twins(mut split: Split, cores: &[PhysicalCore], speeds: &Speeds<'_>) -> Split {
    let of_kind = |efficiency: bool| {
        let members = cores.iter().zip(&split.class_of);
        let members = members.filter(|(_, class)| split.efficiency[**class] == efficiency);
        members.map(|(core, _)| Some((speeds.design)(core)?.key)).collect::<Option<Vec<_>>>()
    };
    if let (Some(slow), Some(fast)) = (of_kind(true), of_kind(false))
        && slow.iter().all(|design| fast.contains(design))
    {
        split.efficiency.fill(false);
    }
    split
}

/// By Intel's lists, if they name every core. Cores of one kind with a gap between their frequencies are told apart
/// as well: one list names the efficiency cores and the low-power ones of some chips.
fn split_by_pmu(cores: &[PhysicalCore], speeds: &Speeds<'_>) -> Option<Split> {
    if speeds.pmu.is_empty() || cores.is_empty() {
        return None;
    }
    // The last list that names a core decides: low-power cores are on the list of efficiency cores, too.
    let kind_of = |core: &PhysicalCore| {
        speeds.pmu.iter().rposition(|(_, cpus)| cpus.contains(core.first_cpu()))
    };
    let kinds = cores.iter().map(kind_of).collect::<Option<Vec<_>>>()?;
    let max_freq = speeds.of_all(Signal::MaxFreq, cores);
    Some(split_within(&kinds, &max_freq, |kind| {
        (Some(speeds.pmu[kind].0.to_owned()), speeds.pmu[kind].0 != "core")
    }))
}

/// By design, if every core's is known and some are for low power and some are not: phones whose kernels know no
/// capacities, and whose clusters may have clock rates close together.
fn split_by_design(cores: &[PhysicalCore], speeds: &Speeds<'_>) -> Option<Split> {
    let designs = cores.iter().map(|core| (speeds.design)(core)).collect::<Option<Vec<_>>>()?;
    let kinds = designs.iter().map(|design| usize::from(design.low_power)).collect::<Vec<_>>();
    if kinds.iter().all(|kind| *kind == *kinds.first().unwrap_or(&0)) {
        return None;
    }
    let max_freq = speeds.of_all(Signal::MaxFreq, cores);
    Some(split_within(&kinds, &max_freq, |kind| (None, kind > 0)))
}

/// Cores with siblings and cores without, if all of the former are clocked higher: an Intel hybrid seen from a place
/// that shows no better signal. A core that merely has a sibling offline is clocked like its neighbours.
fn split_by_smt(cores: &[PhysicalCore], max_freq: &[u64]) -> Option<Split> {
    let kinds = cores.iter().map(|core| usize::from(core.siblings_total == 1)).collect::<Vec<_>>();
    let of_kind = |kind| {
        kinds.iter().zip(max_freq).filter(move |(of, _)| **of == kind).map(|(_, freq)| *freq)
    };
    if of_kind(0).min()? <= of_kind(1).max()? {
        return None;
    }
    let max_freq = max_freq.iter().copied().map(Some).collect::<Vec<_>>();
    Some(split_within(&kinds, &max_freq, |kind| {
        (Some(if kind == 0 { "core" } else { "atom" }.to_owned()), kind > 0)
    }))
}

/// Kinds first, then gaps of frequency inside each kind but the first.
fn split_within(
    kinds: &[usize],
    max_freq: &[Option<u64>],
    describe: impl Fn(usize) -> (Option<String>, bool),
) -> Split {
    let mut split =
        Split { class_of: vec![0; kinds.len()], efficiency: Vec::new(), labels: Vec::new() };
    for kind in 0..=kinds.iter().copied().max().unwrap_or(0) {
        let members = (0..kinds.len()).filter(|core| kinds[*core] == kind).collect::<Vec<_>>();
        let values =
            members.iter().map(|core| max_freq.get(*core).copied().flatten()).collect::<Vec<_>>();
        let steps = match complete(&values) {
            Some(values) if kind > 0 => ranks(&values),
            _ => vec![0; members.len()],
        };
        let first = split.efficiency.len();
        for (core, step) in members.iter().zip(&steps) {
            split.class_of[*core] = first + step;
        }
        for _ in 0..=steps.iter().copied().max().unwrap_or(0) {
            let (label, efficiency) = describe(kind);
            split.labels.push(label);
            split.efficiency.push(efficiency);
        }
    }
    split
}

#[cfg(test)]
#[path = "tests/class.rs"]
mod tests;
