//! Backends by name: everything that can stand behind [`RowPool`] in a benchmark.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use rowpar::{Format, RowPool};
use serde::{Deserialize, Serialize};

use crate::Contender;

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
    /// `epoch_pool` with twice the participants asked for: what too many threads cost.
    EpochX2,
    /// `epoch_pool` with four times the participants asked for.
    EpochX4,
    /// A peer: the pool that `epoch_pool` set out to replace, of the crate cortiq-engine.
    Original,
    /// A peer: spindle, the whole loop within its `with_lock`.
    Spindle,
    /// A peer: paralight's thread pool.
    Paralight,
    /// A peer: chili, a fork-join tree that is shared on heartbeats.
    Chili,
    /// A peer: OpenMP as GCC has it.
    Libgomp,
    /// A peer: the C library pthreadpool.
    Pthreadpool,
    /// An engine: llama.cpp, out of an npm package.
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// A library: `sgemv` of OpenBLAS.
    Openblas,
    /// A library: the crate matrixmultiply.
    Matrixmultiply,
    /// A library: the crate gemm.
    Gemm,
    /// A library: quantized matrices of candle-core.
    Candle,
    /// A library: `matvec_rows` of the crate cortiq-engine.
    OriginalMatvec,
}

impl Backend {
    /// Every backend.
    pub const ALL: &[Self] = &[
        Self::Serial,
        Self::Spawn,
        Self::Rayon,
        Self::RayonInside,
        Self::Epoch,
        Self::EpochSpin0,
        Self::EpochX2,
        Self::EpochX4,
        Self::Original,
        Self::Spindle,
        Self::Paralight,
        Self::Chili,
        Self::Libgomp,
        Self::Pthreadpool,
        Self::LlamaCpp,
        Self::Openblas,
        Self::Matrixmultiply,
        Self::Gemm,
        Self::Candle,
        Self::OriginalMatvec,
    ];

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
            Self::EpochX2 => "epoch-x2",
            Self::EpochX4 => "epoch-x4",
            Self::Original => "original",
            Self::Spindle => "spindle",
            Self::Paralight => "paralight",
            Self::Chili => "chili",
            Self::Libgomp => "libgomp",
            Self::Pthreadpool => "pthreadpool",
            Self::LlamaCpp => "llama.cpp",
            Self::Openblas => "openblas",
            Self::Matrixmultiply => "matrixmultiply",
            Self::Gemm => "gemm",
            Self::Candle => "candle",
            Self::OriginalMatvec => "original-matvec",
        }
    }

    /// Whether somebody else's code stands behind it that only the package in `benches/peers` can build.
    pub const fn is_peer(self) -> bool {
        self.is_library()
            || matches!(
                self,
                Self::Original
                    | Self::Spindle
                    | Self::Paralight
                    | Self::Chili
                    | Self::Libgomp
                    | Self::Pthreadpool
            )
    }

    /// Whether it is a peer that multiplies matrices with threads and kernels of its own, and is no pool: it runs in the matvec suite
    /// alone.
    pub const fn is_library(self) -> bool {
        matches!(
            self,
            Self::Openblas
                | Self::Matrixmultiply
                | Self::Gemm
                | Self::Candle
                | Self::OriginalMatvec
        )
    }

    /// Whether it is no pool but a whole inference engine, with kernels and threads of its own: it decodes a model's file and does
    /// nothing else.
    pub const fn is_engine(self) -> bool {
        matches!(self, Self::LlamaCpp)
    }

    /// Whether it can multiply weights of this format.
    pub const fn takes(self, format: Format) -> bool {
        match self {
            Self::Candle => format.is_block(),
            _ => !self.is_library() || matches!(format, Format::F32),
        }
    }

    /// Whether its threads are started by this workspace's crates, which can bind them to CPUs.
    pub const fn can_be_bound(self) -> bool {
        !self.is_peer() && !self.is_engine() && !matches!(self, Self::Serial | Self::Spawn)
    }

    /// Whether its waiters have a spin budget that can be chosen.
    pub const fn can_spin(self) -> bool {
        matches!(self, Self::Epoch | Self::EpochX2 | Self::EpochX4)
    }

    /// Participants of the pool that is built for `n_threads`, at least one.
    ///
    /// ```
    /// assert_eq!(benches::Backend::EpochX2.participants(3), 6);
    /// ```
    pub const fn participants(self, n_threads: usize) -> usize {
        let n_threads = if n_threads == 0 { 1 } else { n_threads };
        match self {
            Self::Serial => 1,
            Self::EpochX2 => n_threads.saturating_mul(2),
            Self::EpochX4 => n_threads.saturating_mul(4),
            _ => n_threads,
        }
    }

    /// As [`Contender::pool`], unbound.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn pool(self, n_threads: usize) -> Result<Box<dyn RowPool>, PoolError> {
        Contender::from(self).pool(n_threads)
    }

    /// As [`Contender::with_pool`], unbound.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn with_pool<R: Send>(
        self,
        n_threads: usize,
        f: impl FnOnce(&dyn RowPool) -> R + Send,
    ) -> Result<R, PoolError> {
        Contender::from(self).with_pool(n_threads, f)
    }
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
    fn a_pool_has_the_participants_it_says() {
        for &backend in Backend::ALL {
            let found = backend.with_pool(2, |pool| pool.participants());
            match backend.is_peer() || backend.is_engine() {
                true => assert!(found.is_err(), "{backend}"),
                false => assert_eq!(found.unwrap(), backend.participants(2), "{backend}"),
            }
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
