//! What was odd about a machine: nothing stops because of it, and nobody has to look.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::{fmt, io};

use crate::class::Signal;
use crate::error::ParseError;

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
    /// No CPU has a list of siblings; what shares a core was taken from this instead.
    CoresGuessed {
        /// Where the guess is from.
        from: &'static str,
    },
    /// Some cores have this signal of speed and some do not, so it was not used.
    SignalIncomplete {
        /// The signal.
        signal: Signal,
        /// Cores without it.
        missing: usize,
    },
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
            Self::CoresGuessed { from } => {
                write!(formatter, "no sibling lists; cores guessed from {from}")
            }
            Self::SignalIncomplete { signal, missing } => {
                write!(formatter, "{signal} is missing for {missing} cores; not used")
            }
            Self::IdsAreMadeUp => {
                formatter.write_str("this system has no CPU ids; the ids shown are made up")
            }
            Self::More { count } => write!(formatter, "{count} more notes"),
        }
    }
}
