//! Rayon as a pool: the global one, or one that is given.
//!
//! One dispatch is one parallel iterator over pieces of the concatenated row spaces. A piece is a run of
//! neighbouring groups of rows; there are [`PIECES_PER_THREAD`] of them for each thread, enough to even out
//! threads that start late, and few enough that joining them costs little. Rayon keeps the bookkeeping of
//! such an iterator on the stacks of the threads that run it, so that nothing is allocated here.

use std::ops::Range;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::{Part, RowPool};

const PIECES_PER_THREAD: usize = 4;

/// Rayon's current pool: the global one, or within a job of another `rayon::ThreadPool` that one.
///
/// The first use starts the global pool if nothing did so before; [`init_cpu_pool`](crate::init_cpu_pool)
/// starts it with the width and the quality of service that decoding needs. With one thread, or one group
/// of rows, everything runs on the caller. A caller from outside the pool sleeps until the workers are done;
/// run a whole forward pass inside `rayon::ThreadPool::install` and it becomes a worker itself.
///
/// # Examples
///
/// ```
/// let mut out = [0.0; 2];
/// rowpar::matvec_rows(&rowpar::RayonGlobal, &[1.0, 2.0, 3.0, 4.0], &[1.0, 1.0], &mut out);
/// assert_eq!(out, [3.0, 7.0]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RayonGlobal;

// SAFETY: P1, P2. See `dispatch`.
unsafe impl RowPool for RayonGlobal {
    fn participants(&self) -> usize {
        rayon::current_num_threads()
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        dispatch(self.participants(), grain, &[(rows, f)], |pieces| pieces());
    }

    fn for_each_range_many(&self, grain: usize, parts: &[Part<'_>]) {
        dispatch(self.participants(), grain, parts, |pieces| pieces());
    }
}

// SAFETY: P1, P2. See `dispatch`; `install` returns or unwinds when its closure has.
unsafe impl RowPool for rayon::ThreadPool {
    fn participants(&self) -> usize {
        self.current_num_threads()
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        dispatch(self.participants(), grain, &[(rows, f)], |pieces| self.install(pieces));
    }

    fn for_each_range_many(&self, grain: usize, parts: &[Part<'_>]) {
        dispatch(self.participants(), grain, parts, |pieces| self.install(pieces));
    }
}

/// Cuts the concatenated groups of `parts` into pieces and runs them where `enter` leads.
///
/// P1: the pieces partition the groups of all parts, `run_groups` turns each group of a part into the rows
/// that only it stands for, and `for_each` visits each piece once. P2: `for_each` returns or unwinds when
/// every piece that was begun has ended, and begins none afterwards.
fn dispatch(
    n_threads: usize,
    grain: usize,
    parts: &[Part<'_>],
    enter: impl FnOnce(&(dyn Fn() + Sync)),
) {
    let grain = grain.max(1);
    let total =
        parts.iter().try_fold(0_usize, |sum, (rows, _)| sum.checked_add(rows.div_ceil(grain)));
    let Some(n_groups) = total else {
        // More groups than can be counted, so not rows in memory: no need to be clever.
        parts.iter().for_each(|&(rows, f)| f(0..rows));
        return;
    };
    let n_pieces = n_groups.min(n_threads.saturating_mul(PIECES_PER_THREAD));
    if n_threads <= 1 || n_pieces <= 1 {
        run_groups(0..n_groups, grain, parts);
        return;
    }
    enter(&|| {
        (0..n_pieces)
            .into_par_iter()
            .with_max_len(1)
            .for_each(|piece| run_groups(piece_of(n_groups, n_pieces, piece), grain, parts));
    });
}

/// The groups of one of `n_pieces` pieces, whose sizes differ by at most one.
fn piece_of(n_groups: usize, n_pieces: usize, piece: usize) -> Range<usize> {
    let (size, longer) = (n_groups / n_pieces, n_groups % n_pieces);
    let start_of = |piece: usize| piece * size + piece.min(longer);
    start_of(piece)..start_of(piece + 1)
}

/// Calls the closures of the parts that a run of concatenated groups belongs to, once for each part.
fn run_groups(groups: Range<usize>, grain: usize, parts: &[Part<'_>]) {
    let mut first = 0;
    for &(rows, f) in parts {
        let past = first + rows.div_ceil(grain);
        let start = groups.start.max(first);
        let end = groups.end.min(past);
        if start < end {
            f((start - first) * grain..(end - first).saturating_mul(grain).min(rows));
        }
        first = past;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn pieces_partition_the_groups() {
        for n_groups in (0..40).chain([usize::MAX - 1, usize::MAX]) {
            for n_pieces in [1, 2, 3, 8, 39].into_iter().filter(|n| *n <= n_groups.max(1)) {
                let mut next = 0;
                for piece in 0..n_pieces {
                    let groups = piece_of(n_groups, n_pieces, piece);
                    assert_eq!(groups.start, next, "{n_groups} groups in {n_pieces}");
                    assert!(groups.len().abs_diff(n_groups / n_pieces) <= 1);
                    next = groups.end;
                }
                assert_eq!(next, n_groups);
            }
        }
    }

    #[test]
    fn groups_of_several_parts_become_the_rows_of_each() {
        let seen = Mutex::new(Vec::new());
        let note = |part: usize| {
            let seen = &seen;
            move |rows: Range<usize>| seen.lock().unwrap().push((part, rows))
        };
        let (first, second, third) = (note(0), note(1), note(2));
        let parts: [Part<'_>; 3] = [(9, &first), (0, &second), (17, &third)];
        // 3 groups, none, and 5 groups.
        run_groups(0..2, 4, &parts);
        run_groups(2..5, 4, &parts);
        run_groups(5..8, 4, &parts);
        let expected = [(0, 0..8), (0, 8..9), (2, 0..8), (2, 8..17)];
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn rows_beyond_counting_do_not_overflow() {
        let seen = Mutex::new(Vec::new());
        let note = |rows: Range<usize>| seen.lock().unwrap().push(rows);
        let parts: [Part<'_>; 2] = [(usize::MAX, &note), (usize::MAX, &note)];
        RayonGlobal.for_each_range_many(1, &parts);
        RayonGlobal.for_each_range(usize::MAX, usize::MAX - 1, &note);
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen[..2], [0..usize::MAX, 0..usize::MAX]);
        assert_eq!(seen[2..].iter().map(ExactSizeIterator::len).sum::<usize>(), usize::MAX);
    }
}
