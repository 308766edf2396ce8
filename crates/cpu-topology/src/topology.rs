//! `CpuTopology`: which CPUs, in which cores, of which classes, under which limit. Plain data and queries.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use crate::apple::{self, SysctlSource};
use crate::class::{CoreClass, Signal, Speeds, classify};
use crate::cores::{PhysicalCore, is_core, partition};
use crate::cpu_set::CpuSet;
use crate::note::Note;
use crate::places::Places;
use crate::quota::Quota;
use crate::snapshot::Snapshot;
use crate::source::{AllowedFrom, AllowedSource};
use crate::windows::{self, WindowsFacts};
use crate::{freebsd, linux, sys};

/// Where Linux describes its CPUs.
///
/// ```
/// assert_eq!(cpu_topology::SYSFS_CPU_ROOT, "/sys/devices/system/cpu");
/// ```
pub const SYSFS_CPU_ROOT: &str = "/sys/devices/system/cpu";

/// The logical CPUs a process may run on, the physical cores and core classes they form, and the limit on CPU time.
///
/// It is a snapshot and plain data: nothing in it changes when CPUs go offline or a quota is resized, and nothing in it
/// goes back to the system. Building one never fails and never panics, whatever the files hold; what could not be
/// found out is left out, and what was odd is in [`notes`](Self::notes).
///
/// * A CPU whose siblings are not known, or contradicted by theirs, is a core of its own; a list of more than 64 CPUs is none
///   of siblings.
/// * Classes are ordered by speed, 0 the fastest; without a signal there is one.
/// * A sibling, package or core id is never used as an index, and ids may have gaps.
///
/// Two topologies are equal if they describe the same CPUs, cores, classes and quota. Where cores lie (caches, nodes,
/// packages), notes and where facts were found do not count.
///
/// ```
/// use cpu_topology::{CpuTopology, physical_core_cpus_in};
///
/// // Four cores of two CPUs, of which the process may use four.
/// let topology = CpuTopology::from_sibling_lists([
///     (1, vec![0, 1]),
///     (3, vec![2, 3]),
///     (4, vec![4, 5]),
///     (5, vec![4, 5]),
/// ]);
/// assert_eq!(topology.allowed_cpus(), [1, 3, 4, 5]);
/// assert_eq!(physical_core_cpus_in(&topology), [1, 3, 4]);
/// ```
#[derive(Clone, Debug)]
pub struct CpuTopology {
    pub(crate) cpus: CpuSet,
    pub(crate) cores: Vec<PhysicalCore>,
    pub(crate) classes: Vec<CoreClass>,
    pub(crate) class_signal: Option<Signal>,
    pub(crate) quota: Option<Quota>,
    pub(crate) parallelism: Option<usize>,
    pub(crate) allowed_source: AllowedSource,
    pub(crate) ids_are_real: bool,
    pub(crate) places: Places,
    pub(crate) n_files: usize,
    pub(crate) notes: Vec<Note>,
}

impl CpuTopology {
    /// A topology out of one sibling list per allowed CPU. No class is told apart, and no limit is set.
    ///
    /// An empty list is "unknown". If a CPU is given twice the first list counts.
    ///
    /// ```
    /// use cpu_topology::CpuTopology;
    ///
    /// let topology = CpuTopology::from_sibling_lists([(0, vec![0, 64]), (64, vec![0, 64]), (1, vec![])]);
    /// assert_eq!((topology.len(), topology.cores().len()), (3, 2));
    /// ```
    pub fn from_sibling_lists<I>(entries: I) -> Self
    where
        I: IntoIterator<Item = (usize, Vec<usize>)>,
    {
        let mut siblings = BTreeMap::new();
        for (cpu, list) in entries {
            siblings.entry(cpu).or_insert_with(|| list.into_iter().collect::<CpuSet>());
        }
        Self::build(&siblings, AllowedSource::Given, &Speeds::unknown())
    }

    /// The topology of these CPUs as a directory like [`SYSFS_CPU_ROOT`] describes them. No limit is set.
    ///
    /// Reads, for each CPU, `cpuN/topology/core_cpus_list`, else `thread_siblings_list`, else the masks `core_cpus` and
    /// `thread_siblings`, and the signals of speed that lie in `cpuN`; nothing outside `root`. Files that are absent,
    /// unreadable or malformed make their fact unknown.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use cpu_topology::CpuTopology;
    ///
    /// let topology = CpuTopology::read_from(Path::new("/no/such/directory"), &[0, 2]);
    /// assert_eq!(topology.cores().len(), 2); // unknown siblings never merge
    /// ```
    pub fn read_from(root: &Path, allowed: &[usize]) -> Self {
        linux::read_cpu_directory(root, &allowed.iter().copied().collect())
    }

    /// The machine whose `sys/` and `proc/` lie under `root`, with the quota of the process that its `proc/self` is of.
    ///
    /// No fact about the running system gets into it, so a copy of another machine's files is described as that
    /// machine. If not even the allowed CPUs can be found the topology is empty.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use cpu_topology::{AllowedFrom, CpuTopology};
    ///
    /// let topology = CpuTopology::from_root(Path::new("/no/such/directory"), &AllowedFrom::Process);
    /// assert!(topology.is_empty());
    /// ```
    pub fn from_root(root: &Path, allowed: &AllowedFrom) -> Self {
        linux::read_root(root, allowed)
    }

    /// The machine whose files are in a snapshot, as [`from_root`](Self::from_root) reads a folder.
    pub fn from_snapshot(snapshot: &Snapshot, allowed: &AllowedFrom) -> Self {
        linux::read_snapshot(snapshot, allowed)
    }

    /// The Apple machine that `source` describes.
    ///
    /// The CPU ids in it are made up, level by level: the system has none to offer.
    ///
    /// ```
    /// use cpu_topology::{CpuTopology, SysctlSource};
    ///
    /// /// A chip with four fast cores and six of low power.
    /// struct Played;
    ///
    /// impl SysctlSource for Played {
    ///     fn read(&self, name: &str) -> Option<Vec<u8>> {
    ///         match name {
    ///             "hw.nperflevels" => Some(2_u32.to_ne_bytes().to_vec()),
    ///             "hw.perflevel0.physicalcpu" => Some(4_u32.to_ne_bytes().to_vec()),
    ///             "hw.perflevel1.physicalcpu" => Some(6_u32.to_ne_bytes().to_vec()),
    ///             "hw.perflevel1.name" => Some(b"Efficiency\0".to_vec()),
    ///             _ => None,
    ///         }
    ///     }
    /// }
    ///
    /// let topology = CpuTopology::from_sysctl(&Played);
    /// assert_eq!(topology.cores().len(), 10);
    /// assert_eq!(topology.perf_cores().count(), 4);
    /// ```
    pub fn from_sysctl(source: &impl SysctlSource) -> Self {
        apple::read(source)
    }

    /// The FreeBSD machine that `source` describes (`kern.sched.topology_spec`), for the CPUs of a process's affinity mask
    /// if that is known.
    pub fn from_freebsd(source: &impl SysctlSource, mask: Option<&CpuSet>) -> Self {
        freebsd::read(source, mask)
    }

    /// The Windows machine that these records describe, as a process with this affinity in this job may use it.
    ///
    /// CPU ids are `group * 64 + number`. A hard limit of the job's CPU rate is the quota. See [`WindowsFacts`].
    pub fn from_windows(facts: &WindowsFacts) -> Self {
        windows::read(facts)
    }

    /// This machine as this process sees it, with its quota.
    ///
    /// Linux and Android: affinity mask of the process, sysfs, cgroups. Apple: `hw.perflevelN`. Windows: affinity and job of
    /// the process, `GetLogicalProcessorInformationEx`. FreeBSD: affinity mask, `kern.sched.topology_spec`. Elsewhere one core
    /// for each of `std::thread::available_parallelism`. Nothing is kept between calls; a call reads a few files per CPU.
    ///
    /// ```
    /// use cpu_topology::CpuTopology;
    ///
    /// let topology = CpuTopology::detect();
    /// println!("{} CPUs on {} cores", topology.len(), topology.cores().len());
    /// assert!(topology.cores().len() <= topology.len());
    /// ```
    pub fn detect() -> Self {
        sys::detect()
    }

    /// Sets or removes the limit on CPU time.
    ///
    /// ```
    /// use cpu_topology::{CpuTopology, Quota, physical_core_count_in};
    ///
    /// let topology = CpuTopology::from_sibling_lists((0..16).map(|cpu| (cpu, vec![cpu])));
    /// let limited = topology.with_quota(Quota::new(250_000, 100_000));
    /// assert_eq!(physical_core_count_in(&limited), 2);
    /// ```
    #[must_use]
    pub fn with_quota(self, quota: Option<Quota>) -> Self {
        Self { quota, ..self }
    }

    /// The allowed CPUs, ascending.
    pub fn allowed_cpus(&self) -> Vec<usize> {
        self.cpus.iter().collect()
    }

    /// The allowed CPUs as a set.
    pub fn allowed_set(&self) -> &CpuSet {
        &self.cpus
    }

    /// How many CPUs are allowed.
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Whether no CPU is known at all.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// The physical cores, ordered by their lowest allowed CPU. Each allowed CPU is in exactly one.
    pub fn cores(&self) -> &[PhysicalCore] {
        &self.cores
    }

    /// The core classes, the fastest first. Each core is in exactly one; empty only if there is no core.
    pub fn classes(&self) -> &[CoreClass] {
        &self.classes
    }

    /// The cores of all classes but those of efficiency cores; empty only if there is no core.
    pub fn perf_cores(&self) -> impl Iterator<Item = &PhysicalCore> + '_ {
        self.cores
            .iter()
            .filter(|core| !self.classes.get(core.class).is_some_and(CoreClass::is_efficiency))
    }

    /// What the classes were told apart by, or `None` if there is one class.
    pub fn class_signal(&self) -> Option<Signal> {
        self.class_signal
    }

    /// The tightest limit on CPU time that was found, if any. `None` also means "not visible from here": limits above
    /// a container's own view cannot be seen from inside it.
    pub fn quota(&self) -> Option<&Quota> {
        self.quota.as_ref()
    }

    /// How many threads may run at once without being throttled: the quota rounded down, and on a detected topology
    /// `std::thread::available_parallelism`; at least 1. `None` is "no limit but the CPUs".
    pub fn thread_limit(&self) -> Option<usize> {
        let quota = self.quota.as_ref().map(Quota::cpus);
        quota.into_iter().chain(self.parallelism).min().map(|limit| limit.max(1))
    }

    /// Where the allowed CPUs were found.
    pub fn allowed_source(&self) -> AllowedSource {
        self.allowed_source
    }

    /// Whether the CPU ids are the system's, so that threads can be pinned by them.
    pub fn ids_are_real(&self) -> bool {
        self.ids_are_real
    }

    /// How many files were opened and directories listed to find all this out, those that are not there included.
    pub fn n_files_asked(&self) -> usize {
        self.n_files
    }

    /// What was odd, missing or contradictory.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Cores out of siblings, then classes out of the speeds of those cores.
    pub(crate) fn build(
        siblings: &BTreeMap<usize, CpuSet>,
        allowed_source: AllowedSource,
        speeds: &Speeds<'_>,
    ) -> Self {
        let (mut cores, contradicted) = partition(siblings);
        let (classes, class_signal, incomplete) = classify(&mut cores, speeds);
        let mut notes =
            contradicted.into_iter().map(|cpu| Note::SiblingsDisagree { cpu }).collect::<Vec<_>>();
        let too_large = siblings.iter().filter(|(_, set)| !is_core(set));
        notes.extend(too_large.map(|(&cpu, set)| Note::CoreTooLarge { cpu, count: set.len() }));
        notes.extend(
            incomplete.into_iter().map(|(signal, cpu)| Note::SignalIncomplete { signal, cpu }),
        );
        Self {
            cpus: siblings.keys().copied().collect(),
            cores,
            classes,
            class_signal,
            quota: None,
            parallelism: None,
            allowed_source,
            ids_are_real: true,
            places: Places::default(),
            n_files: 0,
            notes,
        }
    }
}

impl Default for CpuTopology {
    /// No CPU at all.
    fn default() -> Self {
        Self::build(&BTreeMap::new(), AllowedSource::Given, &Speeds::unknown())
    }
}

impl PartialEq for CpuTopology {
    fn eq(&self, other: &Self) -> bool {
        self.cpus == other.cpus
            && self.cores == other.cores
            && self.classes == other.classes
            && self.quota == other.quota
    }
}

impl Eq for CpuTopology {}
