//! Rayon's global pool with the width and the quality of service that decoding needs.

#![forbid(unsafe_code)]

use std::{
    error::Error,
    fmt, io,
    sync::{Mutex, PoisonError},
};

use cpu_qos::QosClass;
use cpu_topology::CpuPoolPlan;
use rayon::ThreadPoolBuildError;

use crate::{WorkerSetup, workers::HAS_THREADS};

/// Why [`init_cpu_pool`] could not build the global pool although none stood.
#[derive(Debug)]
#[non_exhaustive]
pub enum InitError {
    /// A worker thread could not be spawned. Rayon does not try a second time: this process stays without
    /// a global pool, and further calls report the same error. From then on rayon panics when its global
    /// pool is asked for anything, by [`RayonGlobal`](crate::RayonGlobal) or by others: use a pool of your
    /// own, or [`Serial`](crate::Serial).
    Spawn(io::Error),
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawn(_) => write!(f, "cannot spawn the workers of rayon's global pool"),
        }
    }
}

impl Error for InitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Spawn(error) => Some(error),
        }
    }
}

/// Builds rayon's global pool: `cpu_topology::resolve_cpu_threads()` workers, each put into the
/// user-interactive quality-of-service class where the OS has one.
///
/// `Ok(Some(n))` if this call built it, with `n` workers; `Ok(None)` if a global pool already stood, which is
/// then left as it is (also if it is one that others have tried to build, and failed: rayon does not tell). Safe to call more than once and from several threads: one call builds, the others get
/// `None`. Call it before anything else touches rayon, since the first use builds a default pool.
///
/// # Errors
///
/// [`InitError::Spawn`] if the OS refused a thread. On targets without threads (WebAssembly without atomics) the
/// pool is the calling thread, and none is spawned. A worker that cannot change its class runs without it: that
/// is no error here.
///
/// # Examples
///
/// ```
/// match rowpar::init_cpu_pool()? {
///     Some(n) => println!("{n} workers"),
///     None => println!("somebody else has built rayon's pool"),
/// }
/// assert!(rowpar::init_cpu_pool()?.is_none());
/// # Ok::<(), rowpar::InitError>(())
/// ```
pub fn init_cpu_pool() -> Result<Option<usize>, InitError> {
    /// How the build failed, if it did. Held while building: rayon lets those who lose the race go before the
    /// winner knows its result, and says "already built" of a pool that failed to build, too.
    static FAILED: Mutex<Option<(io::ErrorKind, Option<i32>)>> = Mutex::new(None);

    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = if HAS_THREADS { cpu_topology::resolve_cpu_threads() } else { 1 };
    let n_threads = wanted.clamp(1, rayon::max_num_threads());
    let plan = CpuPoolPlan { num_threads: n_threads, ..CpuPoolPlan::default() };
    let setup = WorkerSetup::new(plan).class(QosClass::UserInteractive);
    let result = setup.rayon_builder().build_global();
    match result {
        Ok(()) => Ok(Some(n_threads)),
        Err(error) => {
            let cause = spawn_error(&error).map(|cause| (cause.kind(), cause.raw_os_error()));
            *failed = failed.or(cause);
            match *failed {
                Some((kind, code)) => Err(InitError::Spawn(rebuild(kind, code))),
                None => Ok(None),
            }
        }
    }
}

/// The OS error inside, if that is what the build failed with. Rayon keeps the kind of its error to itself,
/// but gives a source to this kind alone.
fn spawn_error(error: &ThreadPoolBuildError) -> Option<&io::Error> {
    error.source()?.downcast_ref()
}

/// The error as the OS gave it; `io::Error` cannot be cloned.
fn rebuild(kind: io::ErrorKind, code: Option<i32>) -> io::Error {
    code.map_or_else(|| io::Error::from(kind), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use rayon::ThreadPoolBuilder;

    use super::*;

    #[test]
    fn a_failed_spawn_is_told_from_a_pool_that_stands() {
        let refused = ThreadPoolBuilder::new()
            .num_threads(1)
            .spawn_handler(|_| Err(io::Error::from(io::ErrorKind::WouldBlock)))
            .build()
            .expect_err("no thread can be spawned");
        assert_eq!(spawn_error(&refused).map(io::Error::kind), Some(io::ErrorKind::WouldBlock));

        let built = ThreadPoolBuilder::new().num_threads(1).build_global();
        let standing = ThreadPoolBuilder::new().num_threads(1).build_global();
        assert!(built.is_ok() || spawn_error(&built.unwrap_err()).is_none());
        assert!(spawn_error(&standing.expect_err("a global pool stands")).is_none());
    }

    #[test]
    fn the_os_error_is_kept() {
        assert_eq!(rebuild(io::ErrorKind::WouldBlock, Some(11)).raw_os_error(), Some(11));
        assert_eq!(rebuild(io::ErrorKind::Other, None).kind(), io::ErrorKind::Other);
    }
}
