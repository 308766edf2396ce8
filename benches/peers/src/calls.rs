//! A job as the peers see it: units by number, and calls that never unwind.

#![forbid(unsafe_code)]

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use rowpar::Part;

/// Tiles for each thread: enough to even out threads that start late, few enough to cost little.
const TILES_PER_THREAD: usize = 16;

/// The parts of one job, cut into units of `grain` rows that are numbered through, part after part.
///
/// A peer may lose a panic, or unwind while its threads still run, and no panic may cross a frame of C: calls catch them, and
/// [`finish`](Self::finish) lets the first one go on.
pub(crate) struct Calls<'a> {
    grain: usize,
    parts: &'a [Part<'a>],
    n_units: usize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<'a> Calls<'a> {
    /// `None` if there are more than `max_units` units.
    pub(crate) fn new(grain: usize, parts: &'a [Part<'a>], max_units: usize) -> Option<Self> {
        let grain = grain.max(1);
        let n_units = parts
            .iter()
            .try_fold(0_usize, |sum, (rows, _)| sum.checked_add(rows.div_ceil(grain)))
            .filter(|n_units| *n_units <= max_units)?;
        Some(Self { grain, parts, n_units, panic: Mutex::new(None) })
    }

    /// Units of all parts.
    pub(crate) fn n_units(&self) -> usize {
        self.n_units
    }

    /// Units of each part.
    pub(crate) fn units_of_parts(&self) -> impl ExactSizeIterator<Item = usize> {
        self.parts.iter().map(|(rows, _)| rows.div_ceil(self.grain))
    }

    /// Units that go out together on `n_threads` threads.
    pub(crate) fn tile(&self, n_threads: usize) -> usize {
        (self.n_units / n_threads.saturating_mul(TILES_PER_THREAD)).max(1)
    }

    /// How many tiles of `tile` units there are.
    pub(crate) fn n_tiles(&self, tile: usize) -> usize {
        self.n_units.div_ceil(tile)
    }

    /// Runs the tile of that number.
    pub(crate) fn run_tile(&self, tile: usize, index: usize) {
        let start = index * tile;
        self.run(start..self.n_units.min(start + tile));
    }

    /// Runs these units of the numbered-through ones.
    pub(crate) fn run(&self, units: Range<usize>) {
        self.catch(|| {
            let mut first = 0;
            for (index, n_units) in self.units_of_parts().enumerate() {
                let (start, end) = (units.start.max(first), units.end.min(first + n_units));
                if start < end {
                    self.call(index, start - first..end - first);
                }
                first += n_units;
            }
        });
    }

    /// Runs these units of one part.
    pub(crate) fn run_part(&self, index: usize, units: Range<usize>) {
        if !units.is_empty() {
            self.catch(|| self.call(index, units));
        }
    }

    /// Goes on with the first panic of a call, if there was one.
    pub(crate) fn finish(self) {
        if let Some(payload) = self.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(payload);
        }
    }

    fn call(&self, index: usize, units: Range<usize>) {
        let (rows, f) = self.parts[index];
        f(units.start * self.grain..units.end.saturating_mul(self.grain).min(rows));
    }

    fn catch(&self, f: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            match &*first {
                None => *first = Some(payload),
                // Dropping it might panic again, here where nothing may.
                Some(_) => std::mem::forget(payload),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is called over which rows.
    fn record(seen: &Mutex<Vec<(usize, Range<usize>)>>, run: impl Fn(&Calls<'_>)) {
        let note = |part: usize| move |rows: Range<usize>| seen.lock().unwrap().push((part, rows));
        let (first, second, third) = (note(0), note(1), note(2));
        let parts: [Part<'_>; 3] = [(9, &first), (0, &second), (17, &third)];
        // 3 units, none, and 5 units.
        let calls = Calls::new(4, &parts, usize::MAX).unwrap();
        assert_eq!(calls.n_units(), 8);
        assert!(calls.units_of_parts().eq([3, 0, 5]));
        run(&calls);
        calls.finish();
    }

    #[test]
    fn units_become_the_rows_of_their_parts() {
        let seen = Mutex::new(Vec::new());
        record(&seen, |calls| {
            calls.run(0..2);
            calls.run(2..5);
            calls.run(5..8);
            calls.run_part(2, 4..5);
            calls.run_part(2, 1..1);
        });
        let expected = [(0, 0..8), (0, 8..9), (2, 0..8), (2, 8..17), (2, 16..17)];
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn tiles_partition_the_units() {
        for n_units in [2, 31, 32, 33, 64, 1000] {
            for n_threads in [1, 2, 7] {
                let units = Mutex::new(Vec::new());
                let note = |rows: Range<usize>| units.lock().unwrap().extend(rows);
                let parts: [Part<'_>; 1] = [(n_units, &note)];
                let calls = Calls::new(1, &parts, usize::MAX).unwrap();
                let tile = calls.tile(n_threads);
                (0..calls.n_tiles(tile)).for_each(|index| calls.run_tile(tile, index));
                let expected: Vec<usize> = (0..n_units).collect();
                assert_eq!(*units.lock().unwrap(), expected, "{n_units} for {n_threads}");
            }
        }
    }

    #[test]
    fn the_first_panic_goes_on_after_all_calls() {
        let seen = Mutex::new(Vec::new());
        let f = |rows: Range<usize>| {
            seen.lock().unwrap().push(rows.start);
            std::panic::panic_any(rows.start);
        };
        let parts: [Part<'_>; 1] = [(3, &f)];
        let calls = Calls::new(1, &parts, usize::MAX).unwrap();
        (0..3).for_each(|unit| calls.run(unit..unit + 1));
        let payload = catch_unwind(AssertUnwindSafe(|| calls.finish())).unwrap_err();
        assert_eq!(payload.downcast_ref::<usize>(), Some(&0));
        assert_eq!(seen.into_inner().unwrap_or_else(PoisonError::into_inner), [0, 1, 2]);
    }

    #[test]
    fn too_many_units_are_refused() {
        let f = |_: Range<usize>| {};
        let parts: [Part<'_>; 2] = [(usize::MAX, &f), (usize::MAX, &f)];
        assert!(Calls::new(1, &parts, usize::MAX).is_none());
        assert!(Calls::new(usize::MAX, &parts, 1).is_none());
        assert_eq!(Calls::new(0, &parts[..1], usize::MAX).unwrap().n_units(), usize::MAX);
    }
}
