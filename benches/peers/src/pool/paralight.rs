//! paralight: worker threads behind a lock and a condition variable; the caller waits.

use std::sync::{Mutex, TryLockError};

use benches::PoolError;
use paralight::prelude::*;

use super::Share;
use crate::calls::Calls;

pub(super) struct Paralight {
    pool: Mutex<ThreadPool>,
    n_threads: usize,
}

impl Paralight {
    /// Its documentation advises fixed ranges for work that is the same for each item, as rows are, and no pins on a machine that
    /// others use as well.
    pub(super) fn new(n_threads: usize) -> Result<Self, PoolError> {
        let builder = ThreadPoolBuilder {
            num_threads: ThreadCount::try_from(n_threads)?,
            range_strategy: RangeStrategy::Fixed,
            cpu_pinning: CpuPinningPolicy::No,
        };
        Ok(Self { pool: Mutex::new(builder.build()), n_threads })
    }
}

// SAFETY: S1, S2: `for_each` calls its closure once for each number, and returns when all of its threads are done. Calls do not
// unwind. It needs the pool for itself, which the mutex sees to.
unsafe impl Share for Paralight {
    fn participants(&self) -> usize {
        self.n_threads
    }

    fn share(&self, calls: &Calls<'_>) {
        let mut pool = match self.pool.try_lock() {
            Ok(pool) => pool,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return calls.run(0..calls.n_units()),
        };
        let tile = calls.tile(self.n_threads);
        (0..calls.n_tiles(tile))
            .into_par_iter()
            .with_thread_pool(&mut *pool)
            .for_each(|index| calls.run_tile(tile, index));
    }
}
