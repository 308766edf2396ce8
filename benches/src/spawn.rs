//! The backend to beat first: threads spawned for every dispatch.

use std::ops::Range;
use std::thread;

use rowpar::RowPool;

/// Spawns its threads anew for each dispatch; the calling thread works too.
///
/// ```
/// use rowpar::RowPool;
/// assert_eq!(benches::Spawn::new(3).participants(), 3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Spawn {
    n_threads: usize,
}

impl Spawn {
    /// A backend of `n_threads` participants, at least one.
    pub fn new(n_threads: usize) -> Self {
        Self { n_threads: n_threads.max(1) }
    }
}

// SAFETY: `part` cuts `0..rows` at ascending multiples of one step, so the ranges of one space are
// disjoint and cover every row once; `thread::scope` returns or unwinds only after all of its threads.
unsafe impl RowPool for Spawn {
    fn participants(&self) -> usize {
        self.n_threads
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        self.for_each_range_many(grain, &[(rows, f)]);
    }

    fn for_each_range_many(&self, grain: usize, parts: &[(usize, &(dyn Fn(Range<usize>) + Sync))]) {
        let share = |index| {
            for &(rows, f) in parts {
                let range = part(rows, grain, self.n_threads, index);
                if !range.is_empty() {
                    f(range);
                }
            }
        };
        thread::scope(|scope| {
            for index in 1..self.n_threads {
                scope.spawn(move || share(index));
            }
            share(0);
        });
    }
}

/// The rows of thread `index` of `n_threads`: whole groups of `grain` rows, as even as they come.
fn part(rows: usize, grain: usize, n_threads: usize, index: usize) -> Range<usize> {
    let grain = grain.max(1);
    let step = rows.div_ceil(grain).div_ceil(n_threads).saturating_mul(grain);
    let start = rows.min(index.saturating_mul(step));
    start..rows.min(start.saturating_add(step))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    type Part<'a> = (usize, &'a (dyn Fn(Range<usize>) + Sync));

    #[test]
    fn parts_cover_every_row_once() {
        for rows in [0, 1, 2, 7, 64, 1000] {
            for grain in [0, 1, 3, 100, usize::MAX] {
                for n_threads in 1..6 {
                    let ranges = (0..n_threads).map(|index| part(rows, grain, n_threads, index));
                    let (starts, covered): (Vec<_>, Vec<_>) =
                        ranges.map(|range| (range.start, range)).unzip();
                    let covered: Vec<usize> = covered.into_iter().flatten().collect();
                    let case = format!("{rows} rows by {grain} for {n_threads}");
                    assert_eq!(covered, (0..rows).collect::<Vec<_>>(), "{case}");
                    let aligned =
                        |start: &usize| *start == rows || start.is_multiple_of(grain.max(1));
                    assert!(starts.iter().all(aligned), "{case}: {starts:?}");
                }
            }
        }
    }

    #[test]
    fn every_row_of_every_space_is_run() {
        let sums = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let add = |sum: &AtomicUsize, range: Range<usize>| {
            sum.fetch_add(range.sum(), Ordering::Relaxed);
        };
        let parts: [Part<'_>; 2] =
            [(100, &|range| add(&sums[0], range)), (10, &|range| add(&sums[1], range))];
        Spawn::new(3).for_each_range_many(4, &parts);
        assert_eq!(sums.map(AtomicUsize::into_inner), [4950, 45]);
    }
}
