//! The pool of cortiq-engine: an epoch that every worker acknowledges, rows by a shared cursor.
//!
//! It takes `max(rows / (8 * participants), 32)` rows at a time, so 32 rows never reach a second thread. A unit is therefore
//! presented as 32 rows, and a range of such rows stands for the units whose first row it has.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cortiq_engine::pool::Pool;

use super::Share;
use crate::calls::Calls;
use crate::gate::Gate;

/// The fewest rows that it hands out.
const ROWS_PER_UNIT: usize = 32;

/// Building a pool resets a list of the whole process and waits until it has as many entries as the pool has workers.
static BUILDING: Mutex<()> = Mutex::new(());

/// A row space of `run_many`.
type RawPart<'a> = (usize, &'a (dyn Fn(usize, usize) + Sync));

pub(super) struct Original {
    pool: Pool,
    gate: Gate,
}

impl Original {
    pub(super) fn new(n_threads: usize) -> Self {
        Self { pool: build(n_threads - 1), gate: Gate::default() }
    }
}

/// A pool of so many workers beside its caller.
pub(crate) fn build(n_workers: usize) -> Pool {
    let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    Pool::new(n_workers)
}

// SAFETY: S1: `run_rows` and `run_many` cut the rows at ascending multiples of their grain, so each unit's first row is in one
// range. S2: both return when all workers have acknowledged the job, and cannot unwind, as calls do not. They need one
// dispatch at a time, which the gate sees to.
unsafe impl Share for Original {
    fn participants(&self) -> usize {
        self.pool.n_workers() + 1
    }

    fn share(&self, calls: &Calls<'_>) {
        let Some(_pass) = self.gate.enter() else {
            return calls.run(0..calls.n_units());
        };
        let mut units_of_parts = calls.units_of_parts();
        if units_of_parts.len() == 1 {
            let rows = ROWS_PER_UNIT * calls.n_units();
            return self.pool.run_rows(rows, &|start, end| calls.run_part(0, units(start, end)));
        }
        // Two small allocations for a job of several matrices; the list has to be made for each job.
        let closures: Vec<_> = (0..units_of_parts.len())
            .map(|index| move |start, end| calls.run_part(index, units(start, end)))
            .collect();
        let parts: Vec<RawPart<'_>> = closures
            .iter()
            .map_while(|f| Some((ROWS_PER_UNIT * units_of_parts.next()?, f as _)))
            .collect();
        self.pool.run_many(&parts);
    }
}

/// The units whose first row is in `start..end`.
fn units(start: usize, end: usize) -> Range<usize> {
    start.div_ceil(ROWS_PER_UNIT)..end.div_ceil(ROWS_PER_UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_each_unit_once() {
        let rows = 7 * ROWS_PER_UNIT;
        for step in (1..200).chain([rows - 1, rows, rows + 1]) {
            let cuts = (0..rows).step_by(step).map(|start| units(start, rows.min(start + step)));
            let found: Vec<usize> = cuts.flatten().collect();
            assert_eq!(found, [0, 1, 2, 3, 4, 5, 6], "cut by {step}");
        }
    }
}
