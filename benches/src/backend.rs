//! Backends by name: everything that can stand behind [`RowPool`] in a benchmark.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use rowpar::{RowPool, Serial};
use serde::{Deserialize, Serialize};

use crate::Spawn;

/// Why a pool could not be built.
pub type PoolError = Box<dyn Error + Send + Sync>;

/// A pool implementation, named as on the command line.
///
/// ```
/// let backend: benches::Backend = "epoch-spin0".parse().unwrap();
/// let participants = backend.with_pool(2, |pool| pool.participants()).unwrap();
/// assert_eq!(participants, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// The calling thread alone.
    Serial,
    /// Threads spawned for every dispatch.
    Spawn,
    /// A rayon pool called from outside, as an engine's decode loop calls it.
    Rayon,
    /// A rayon pool with the whole decode loop running on one of its workers.
    RayonInside,
    /// `epoch_pool` with its default spin budget.
    Epoch,
    /// `epoch_pool` whose waiters park at once.
    #[serde(rename = "epoch-spin0")]
    EpochSpin0,
}

impl Backend {
    /// Every backend.
    pub const ALL: &[Self] =
        &[Self::Serial, Self::Spawn, Self::Rayon, Self::RayonInside, Self::Epoch, Self::EpochSpin0];

    /// What runs when nobody chooses.
    pub const DEFAULT: &[Self] =
        &[Self::Serial, Self::Spawn, Self::Rayon, Self::Epoch, Self::EpochSpin0];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Spawn => "spawn",
            Self::Rayon => "rayon",
            Self::RayonInside => "rayon-inside",
            Self::Epoch => "epoch",
            Self::EpochSpin0 => "epoch-spin0",
        }
    }

    /// Builds the pool for `n_threads` participants, to be called from a thread outside of it.
    ///
    /// # Errors
    ///
    /// A thread could not be spawned.
    pub fn pool(self, n_threads: usize) -> Result<Box<dyn RowPool>, PoolError> {
        let n_threads = n_threads.max(1);
        Ok(match self {
            Self::Serial => Box::new(Serial),
            Self::Spawn => Box::new(Spawn::new(n_threads)),
            Self::Rayon | Self::RayonInside => Box::new(rayon_pool(n_threads)?),
            Self::Epoch => Box::new(epoch_pool::Pool::new(n_threads - 1)?),
            Self::EpochSpin0 => Box::new(epoch_pool::Pool::with_spin(n_threads - 1, 0)?),
        })
    }

    /// Builds the pool and calls `f` where this backend's caller stands: in a worker for `rayon-inside`.
    ///
    /// At most one pool may live in a process that measures: two spinning pools measure each other.
    ///
    /// # Errors
    ///
    /// A thread could not be spawned.
    pub fn with_pool<R: Send>(
        self,
        n_threads: usize,
        f: impl FnOnce(&dyn RowPool) -> R + Send,
    ) -> Result<R, PoolError> {
        if self == Self::RayonInside {
            let pool = rayon_pool(n_threads.max(1))?;
            return Ok(pool.install(|| f(&pool)));
        }
        Ok(f(&*self.pool(n_threads)?))
    }
}

fn rayon_pool(n_threads: usize) -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build()
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|b| b.name().eq_ignore_ascii_case(name.trim()));
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|backend| backend.name()).collect();
            format!("unknown backend `{name}`; the backends are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_serialize_alike() {
        for &backend in Backend::ALL {
            assert_eq!(backend.name().parse::<Backend>().unwrap(), backend);
            let json = serde_json::to_string(&backend).unwrap();
            assert_eq!(json, format!("\"{}\"", backend.name()));
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let error = "tbb".parse::<Backend>().unwrap_err();
        for backend in Backend::ALL {
            assert!(error.contains(backend.name()), "{error}");
        }
    }
}
