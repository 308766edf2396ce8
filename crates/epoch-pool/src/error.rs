//! What can go wrong when a pool is built, or asked whether it is free.
#![forbid(unsafe_code)]

use std::{fmt, io};

/// Why a pool could not be built. Dispatching on a pool that was built never fails.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a thread. Those that had been started have been stopped and joined.
    Spawn {
        /// The participant number of the refused worker; `worker - 1` workers had been started before it.
        worker: usize,
        /// The operating system's answer.
        source: io::Error,
    },
    /// More workers than a pool can address.
    TooManyWorkers {
        /// The number asked for.
        requested: usize,
        /// The largest number that a pool takes, [`Pool::MAX_WORKERS`](crate::Pool::MAX_WORKERS).
        max: usize,
    },
    /// A pool of no participants was asked for, and the caller always is one.
    NoParticipants,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawn { worker, source } => {
                write!(f, "cannot spawn worker {worker} of the pool: {source}")
            }
            Self::TooManyWorkers { requested, max } => {
                write!(f, "a pool takes at most {max} workers, {requested} were requested")
            }
            Self::NoParticipants => {
                f.write_str("a pool has at least 1 participant, its caller; 0 were requested")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spawn { source, .. } => Some(source),
            Self::TooManyWorkers { .. } | Self::NoParticipants => None,
        }
    }
}

/// The pool runs a job already; the answer of the `try_run…` methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Busy {
    /// It is the job that this very call was made from: it will be no different while that job runs.
    Nested,
    /// It is another thread's, or of a thread that this job has started.
    Elsewhere,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nested => "the pool runs the job that this dispatch is made from",
            Self::Elsewhere => "the pool runs a job of another thread",
        })
    }
}

impl std::error::Error for Busy {}
