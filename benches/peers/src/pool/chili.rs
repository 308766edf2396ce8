//! chili: the job as a tree of halves, of which threads without work get some at each heartbeat.

use std::num::NonZero;
use std::ops::Range;

use benches::PoolError;
use chili::{Config, Scope, ThreadPool};

use super::Share;
use crate::calls::Calls;

pub(super) struct Chili {
    pool: ThreadPool,
    n_threads: usize,
}

impl Chili {
    pub(super) fn new(n_threads: usize) -> Result<Self, PoolError> {
        let thread_count = NonZero::new(n_threads).ok_or("a pool has at least one thread")?;
        let config = Config { thread_count: Some(thread_count), ..Config::default() };
        Ok(Self { pool: ThreadPool::with_config(config), n_threads })
    }
}

// SAFETY: S1: the halves of a range partition it, down to the tiles that are run. S2: `join` returns when both of its closures
// have. Calls do not unwind.
unsafe impl Share for Chili {
    fn participants(&self) -> usize {
        self.n_threads
    }

    fn share(&self, calls: &Calls<'_>) {
        let tile = calls.tile(self.n_threads);
        halves(&mut self.pool.scope(), calls, tile, 0..calls.n_units());
    }
}

fn halves(scope: &mut Scope<'_>, calls: &Calls<'_>, tile: usize, units: Range<usize>) {
    if units.len() <= tile {
        return calls.run(units);
    }
    let middle = units.start + units.len() / 2;
    scope.join(
        |scope| halves(scope, calls, tile, units.start..middle),
        |scope| halves(scope, calls, tile, middle..units.end),
    );
}
