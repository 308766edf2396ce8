//! spindle: threads of a rayon pool that stay together in a lock from loop to loop.

use benches::PoolError;
use rowpar::RowPool;

use super::{Peer, Share};
use crate::calls::Calls;

struct Spindle {
    n_threads: usize,
}

/// Calls `f` inside of the lock, as spindle is made for many small loops in a row.
pub(super) fn with_pool<R: Send>(
    n_threads: usize,
    f: impl FnOnce(&dyn RowPool) -> R + Send,
) -> Result<R, PoolError> {
    let threads = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build()?;
    Ok(threads.install(|| spindle::with_lock(n_threads, || f(&Peer(Spindle { n_threads })))))
}

// SAFETY: S1, S2: `for_each_raw` calls its closure once for each number, on threads that meet at a barrier before it returns;
// from a thread outside of the lock it is a parallel loop of rayon's. Calls do not unwind.
unsafe impl Share for Spindle {
    fn participants(&self) -> usize {
        self.n_threads
    }

    fn share(&self, calls: &Calls<'_>) {
        let tile = calls.tile(self.n_threads);
        spindle::for_each_raw(calls.n_tiles(tile), |index| calls.run_tile(tile, index));
    }
}
