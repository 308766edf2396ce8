//! What was odd about a machine: nothing stops because of it, and nobody has to look.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::{fmt, io};

use crate::class::Signal;
use crate::cpu_set::CpuSet;
use crate::error::ParseError;
use crate::source::AllowedSource;

/// Something odd that was met while a topology was read, and worked around.
///
/// Paths are those of the machine described: an injected root is not part of them.
///
/// ```
/// use cpu_topology::CpuTopology;
///
/// for note in CpuTopology::detect().notes() {
///     println!("note: {note}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The file is there and could not be read. What it would have said counts as unknown.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// How reading it failed.
        kind: io::ErrorKind,
    },
    /// The file does not say what such a file says. What it would have said counts as unknown.
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        error: ParseError,
    },
    /// The sibling lists of this CPU and of others contradict each other; it was not merged with them.
    SiblingsDisagree {
        /// The CPU.
        cpu: usize,
    },
    /// This CPU is said to share its core with more CPUs than any core has; its siblings count as unknown.
    CoreTooLarge {
        /// The CPU, or the lowest one of such a core.
        cpu: usize,
        /// How many CPUs the core would have.
        count: usize,
    },
    /// No CPU has a list of siblings; what shares a core was taken from this instead.
    CoresGuessed {
        /// Where the guess is from.
        from: &'static str,
    },
    /// Some cores have this signal of speed and some do not, so it was not used.
    SignalIncomplete {
        /// The signal.
        signal: Signal,
        /// A CPU whose core has none.
        cpu: usize,
    },
    /// No file tells which CPUs share a core, so each CPU counts as a core of its own.
    SiblingsUnknown,
    /// The cache of this level does not name the CPU itself among those that share it; the sharing is unknown.
    CacheSharingUnknown {
        /// The CPU.
        cpu: usize,
        /// Level of the cache.
        level: usize,
    },
    /// The last-level cache of this CPU names CPUs that belong to that of another; they stay with the other.
    CachesOverlap {
        /// The CPU.
        cpu: usize,
        /// Level of the cache.
        level: usize,
    },
    /// A CPU is in two NUMA nodes, so the nodes say nothing and are left out.
    NodesOverlap {
        /// The first node that repeats a CPU.
        node: usize,
    },
    /// These CPUs are in no NUMA node.
    OutsideOfNodes {
        /// The CPUs.
        cpus: CpuSet,
    },
    /// The process may use these CPUs, and the scheduler does not balance threads among them.
    IsolatedAllowed {
        /// The CPUs.
        cpus: CpuSet,
    },
    /// The process may use these CPUs, and they are not on the list of online ones.
    AllowedNotOnline {
        /// The CPUs.
        cpus: CpuSet,
    },
    /// The allowed CPUs are not from the affinity mask, which could not be read or was empty.
    AllowedGuessed {
        /// Where they are from.
        source: AllowedSource,
    },
    /// The records that Windows gave end in the middle of one, or one of them cannot be; what follows was not read.
    RecordsCutOff {
        /// Where, in bytes from the start.
        at: usize,
    },
    /// Windows has several processor groups here. A thread that is not pinned may stay in the group it starts in.
    SeveralGroups {
        /// How many.
        count: usize,
    },
    /// CPUs came or went each time the machine was read; what was read may not fit together.
    CpusChanging,
    /// The process runs translated from another architecture (Rosetta).
    Translated,
    /// This is a virtual machine or looks like one.
    Virtualized,
    /// The system has no ids of CPUs to offer: those in the topology are made up and no use for pinning.
    IdsAreMadeUp,
    /// More notes than are worth keeping; this many were dropped.
    More {
        /// How many.
        count: usize,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, kind } => {
                write!(formatter, "{}: not readable: {kind}", path.display())
            }
            Self::Malformed { path, error } => write!(formatter, "{}: {error}", path.display()),
            Self::SiblingsDisagree { cpu } => {
                write!(formatter, "cpu{cpu}: its siblings do not name it as theirs; kept apart")
            }
            Self::CoreTooLarge { cpu, count } => {
                write!(formatter, "cpu{cpu}: a core of {count} CPUs is none; its siblings are unknown")
            }
            Self::CoresGuessed { from } => {
                write!(formatter, "no sibling lists; cores guessed from {from}")
            }
            Self::SignalIncomplete { signal, cpu } => {
                write!(formatter, "cpu{cpu}: has no {signal}, which others have; not used")
            }
            Self::SiblingsUnknown => formatter.write_str(
                "nothing tells which CPUs share a core; each counts as a core of its own, so with SMT there are fewer",
            ),
            Self::CacheSharingUnknown { cpu, level } => write!(
                formatter,
                "cpu{cpu}: its level-{level} cache does not name it; which CPUs share it is unknown"
            ),
            Self::CachesOverlap { cpu, level } => write!(
                formatter,
                "cpu{cpu}: its level-{level} cache names CPUs of another last-level cache; left with the other"
            ),
            Self::NodesOverlap { node } => {
                write!(formatter, "node{node} has CPUs of another NUMA node; all nodes left out")
            }
            Self::OutsideOfNodes { cpus } => write!(formatter, "CPUs {cpus} are in no NUMA node"),
            Self::IsolatedAllowed { cpus } => write!(
                formatter,
                "CPUs {cpus} are isolated: a thread stays where it starts unless it is pinned"
            ),
            Self::AllowedNotOnline { cpus } => write!(
                formatter,
                "CPUs {cpus} are allowed, and not on the list of online CPUs; the mask is believed"
            ),
            Self::AllowedGuessed { source: AllowedSource::Nowhere } => {
                formatter.write_str("nothing names a CPU; plans have one worker, for want of any other number")
            }
            Self::AllowedGuessed { source } => {
                write!(formatter, "the affinity mask tells nothing; allowed CPUs from: {source}")
            }
            Self::RecordsCutOff { at } => {
                write!(formatter, "the records of processors are cut off after {at} bytes")
            }
            Self::SeveralGroups { count } => write!(
                formatter,
                "{count} processor groups: threads that are not pinned may stay in one, and CPU ids are group * 64 + number"
            ),
            Self::CpusChanging => {
                formatter.write_str("CPUs keep coming and going: what was read may not fit together")
            }
            Self::Translated => formatter.write_str(
                "this process is translated from another architecture: a native build would be faster",
            ),
            Self::Virtualized => formatter.write_str(
                "this looks like a virtual machine: what it says of cores, caches and speeds may not be the host's; \
                 set the number of threads by hand if it is wrong",
            ),
            Self::IdsAreMadeUp => {
                formatter.write_str("this system has no CPU ids; the ids shown are made up")
            }
            Self::More { count } => write!(formatter, "{count} more notes"),
        }
    }
}
