//! The peers, one file each, and the one way in which all of them become a [`RowPool`].
//!
//! | Invariant | |
//! |---|---|
//! | **S1** | `share` has `Calls::run` or `run_part` called for each unit of the job at most once, and exactly once unless it panics. |
//! | **S2** | `share` neither returns nor unwinds while such a call is running or still to come. |

use std::ops::Range;

use benches::protocol::MissingPeer;
use benches::{Backend, PoolError};
use rowpar::{Part, RowPool};

use crate::calls::Calls;

mod chili;
#[cfg(has_libgomp)]
mod libgomp;
pub(crate) mod original;
mod paralight;
#[cfg(has_pthreadpool)]
mod pthreadpool;
mod spindle;

/// More units than any matrix has rows, and few enough to be counted in 32 bits by those peers that do.
const MAX_UNITS: usize = 1 << 26;

/// A peer's way to share a job.
///
/// # Safety
///
/// S1 and S2.
unsafe trait Share: Sync {
    /// Threads that may run units at once.
    fn participants(&self) -> usize;

    /// Has each unit of `calls` run once, and returns when all have. There are 2 to [`MAX_UNITS`] of them.
    fn share(&self, calls: &Calls<'_>);
}

/// A peer as a pool.
struct Peer<S>(S);

// SAFETY: by S1 each unit is run at most once, and `Calls` turns different units into disjoint ranges of rows and all of them
// into all rows; by S2 no call outlives the dispatch. Jobs that are not shared are run whole on the caller.
unsafe impl<S: Share> RowPool for Peer<S> {
    fn participants(&self) -> usize {
        self.0.participants()
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        self.for_each_range_many(grain, &[(rows, f)]);
    }

    fn for_each_range_many(&self, grain: usize, parts: &[Part<'_>]) {
        match Calls::new(grain, parts, MAX_UNITS) {
            Some(calls) if calls.n_units() > 1 => {
                self.0.share(&calls);
                calls.finish();
            }
            _ => parts.iter().for_each(|&(rows, f)| f(0..rows)),
        }
    }
}

/// Builds the pool of a peer for `n_threads`, the caller included where the peer lets it work, and calls `f` where the peer wants
/// its caller: inside of `with_lock` for spindle, on this thread for the others.
///
/// At most one pool may live in a process that measures: two spinning pools measure each other.
///
/// # Errors
///
/// The pool could not be built, `backend` is no peer, or it is one of those [`missing`].
pub fn with_pool<R: Send>(
    backend: Backend,
    n_threads: usize,
    f: impl FnOnce(&dyn RowPool) -> R + Send,
) -> Result<R, PoolError> {
    let n_threads = n_threads.max(1);
    match backend {
        Backend::Original => Ok(f(&Peer(original::Original::new(n_threads)))),
        Backend::Spindle => spindle::with_pool(n_threads, f),
        Backend::Paralight => Ok(f(&Peer(paralight::Paralight::new(n_threads)?))),
        Backend::Chili => Ok(f(&Peer(chili::Chili::new(n_threads)?))),
        #[cfg(has_libgomp)]
        Backend::Libgomp => Ok(f(&Peer(libgomp::Libgomp::new(n_threads)?))),
        #[cfg(has_pthreadpool)]
        Backend::Pthreadpool => Ok(f(&Peer(pthreadpool::Pthreadpool::new(n_threads)?))),
        _ => Err(match missing().into_iter().find(|peer| peer.backend == backend) {
            Some(peer) => format!("not built in (try: {})", peer.install).into(),
            None => "not a pool of others".into(),
        }),
    }
}

/// The peers that this was built without: their compiler, header or library was not found, or their feature is off.
pub fn missing() -> Vec<MissingPeer> {
    let optional = [
        (Backend::Libgomp, cfg!(has_libgomp), "apt-get install gcc"),
        (Backend::Pthreadpool, cfg!(has_pthreadpool), "apt-get install gcc libpthreadpool-dev"),
        (Backend::Openblas, cfg!(has_openblas), "apt-get install gcc libopenblas-dev"),
        (Backend::Candle, cfg!(feature = "candle"), "cargo build --features candle"),
    ];
    let absent = optional.into_iter().filter(|(_, is_built, _)| !is_built);
    absent.map(|(backend, _, install)| MissingPeer { backend, install: install.into() }).collect()
}
