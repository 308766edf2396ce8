//! Hands out parts of `&mut [T]` along with row ranges: the only writing through shared references.

use std::{marker::PhantomData, ops::Range, slice};

use super::cut::Cut;
use crate::{RowPool, with_default_floats};

/// Calls `f` with disjoint ranges of rows and with the elements of `out` that belong to them.
///
/// A row is one element of `out`. Ranges cover `0..out.len()`, each row once; their starts are multiples of
/// `grain` (0 means 1). This is [`RowPool::for_each_range`] for a closure that writes its rows, and needs no
/// unsafe code from the caller. It always goes to the pool, however little there is to do. Every call is under the default
/// floating-point environment, as by [`with_default_floats`].
///
/// # Examples
///
/// ```
/// let mut squares = [0; 10];
/// rowpar::for_each_range_mut(&rowpar::Serial, &mut squares, 1, |rows, part| {
///     for (row, square) in rows.zip(part) {
///         *square = row * row;
///     }
/// });
/// assert_eq!(squares[9], 81);
/// ```
pub fn for_each_range_mut<T: Send>(
    pool: &(impl RowPool + ?Sized),
    out: &mut [T],
    grain: usize,
    f: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    for_each_chunk_range(pool, out, 1, grain, f);
}

/// The same for rows of `row_len` elements; a trailing partial row is left alone.
pub(crate) fn for_each_chunk_range<T: Send>(
    pool: &(impl RowPool + ?Sized),
    out: &mut [T],
    row_len: usize,
    grain: usize,
    f: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    let n_rows = out.len() / row_len;
    let cells = DisjointMut::new(out);
    pool.for_each_range(n_rows, grain, &|rows: Range<usize>| {
        if rows.start < rows.end {
            // SAFETY: by P1 no other call has a row of this range, and `cells` is borrowed by nothing else;
            // by P2 the call ends before `for_each_range` does, and so before the borrow of `out`.
            let part = unsafe { cells.get(rows.start * row_len..rows.end * row_len) };
            with_default_floats(|| f(rows, part));
        }
    });
}

/// Outputs that a piece hands out together.
pub(crate) const MAX_OUTPUTS: usize = 8;

/// The outputs of a row space: one element of each belongs to a row.
#[derive(Debug)]
pub(crate) struct Outputs<'a> {
    n_rows: usize,
    /// As many outputs as fit, one after another.
    first: DisjointMut<'a, f32>,
    /// Those that `first` does not have.
    second: DisjointMut<'a, f32>,
}

impl<'a> Outputs<'a> {
    /// Outputs of `n_rows` elements, one after another.
    ///
    /// # Panics
    ///
    /// If `out` is no whole number of them.
    pub(crate) fn new(out: &'a mut [f32], n_rows: usize) -> Self {
        assert!(n_rows == 0 || out.len().is_multiple_of(n_rows));
        Self { n_rows, first: DisjointMut::new(out), second: DisjointMut::new(&mut []) }
    }

    /// Two outputs of one length.
    ///
    /// # Panics
    ///
    /// If they are of different lengths.
    pub(crate) fn pair(out1: &'a mut [f32], out2: &'a mut [f32]) -> Self {
        assert!(out1.len() == out2.len());
        Self { n_rows: out1.len(), first: DisjointMut::new(out1), second: DisjointMut::new(out2) }
    }

    fn len(&self) -> usize {
        (self.first.len + self.second.len).checked_div(self.n_rows).unwrap_or(0)
    }

    /// Some rows of an output.
    ///
    /// # Safety
    ///
    /// While the result lives, no other result for one of these rows of this output may live.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the contract of the function")]
    unsafe fn get(&self, output: usize, rows: Range<usize>) -> &mut [f32] {
        assert!(rows.end <= self.n_rows, "range {rows:?} of {} rows", self.n_rows);
        let start = output * self.n_rows;
        let (cells, start) = match start.checked_sub(self.first.len) {
            None => (&self.first, start),
            Some(start) => (&self.second, start),
        };
        // SAFETY: the rows of one output are no elements of another one, and our own contract.
        unsafe { cells.get(start + rows.start..start + rows.end) }
    }
}

/// One row space of [`for_each_piece`].
#[derive(Debug)]
pub(crate) struct Piece<'a, I> {
    /// What `f` needs to know about the space.
    pub(crate) input: I,
    /// Its outputs.
    pub(crate) outputs: Outputs<'a>,
    /// Whether `f` takes all rows at once that a thread has been given, else one unit after another.
    pub(crate) whole: bool,
}

/// Several row spaces in one dispatch, cut into units of equal work.
///
/// `f` gets the piece's input, some rows, what [`Cut::next`] says of them, and those rows of some of the outputs, at most
/// [`MAX_OUTPUTS`], with the number of the first of them.
///
/// # Panics
///
/// If an output is shorter than the rows of its space in `cut`.
pub(crate) fn for_each_piece<I: Sync, const N: usize>(
    pool: &(impl RowPool + ?Sized),
    cut: &Cut<N>,
    pieces: &[Piece<'_, I>; N],
    f: impl Fn(&I, Range<usize>, Option<(&I, Range<usize>)>, usize, &mut [&mut [f32]]) + Sync,
) {
    let run = |piece: usize, units: &Range<usize>| {
        let rows = cut.rows(piece, units);
        if rows.is_empty() {
            return;
        }
        let Piece { input, outputs, .. } = &pieces[piece];
        let next = cut.next(piece, units).map(|(piece, rows)| (&pieces[piece].input, rows));
        for first in (0..outputs.len()).step_by(MAX_OUTPUTS) {
            let n_outputs = MAX_OUTPUTS.min(outputs.len() - first);
            let mut parts: [&mut [f32]; MAX_OUTPUTS] = Default::default();
            for (i, part) in parts[..n_outputs].iter_mut().enumerate() {
                // SAFETY: P1 and P2, as in `for_each_chunk_range`: units are handed out once, disjoint units are disjoint rows
                // (C1), and each output is asked for once.
                *part = unsafe { outputs.get(first + i, rows.clone()) };
            }
            f(input, rows.clone(), next.clone(), first, &mut parts[..n_outputs]);
        }
    };
    pool.for_each_range(cut.n_units(), 1, &|units| {
        for (piece, Piece { whole, .. }) in pieces.iter().enumerate() {
            match whole {
                true => run(piece, &units),
                false => units.clone().for_each(|unit| run(piece, &(unit..unit + 1))),
            }
        }
    });
}

/// A `&mut [T]` whose disjoint parts may be written by several threads at once.
#[derive(Debug)]
struct DisjointMut<'a, T> {
    base: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: sharing it gives access to values of `T` by `get` alone, whose contract makes that exclusive: the
// values are as good as sent to the thread, which `T: Send` allows.
unsafe impl<T: Send> Sync for DisjointMut<'_, T> {}

impl<'a, T> DisjointMut<'a, T> {
    fn new(slice: &'a mut [T]) -> Self {
        Self { base: slice.as_mut_ptr(), len: slice.len(), borrow: PhantomData }
    }

    /// The elements of `range`.
    ///
    /// # Safety
    ///
    /// While the result lives, no other result for an element of `range` may live.
    ///
    /// # Panics
    ///
    /// If `range` is not within the slice.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the contract of the function")]
    unsafe fn get(&self, range: Range<usize>) -> &mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "range {range:?} of {} elements",
            self.len
        );
        // SAFETY: `range.start` is within the slice that `base` is the start of, by the assertion.
        let start = unsafe { self.base.add(range.start) };
        // SAFETY: valid: `range` is within the slice, which is borrowed for `'a` and so outlives `self`;
        // aliasing: the slice is ours alone, and the caller promises that no other part overlaps.
        unsafe { slice::from_raw_parts_mut(start, range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::Serial;

    #[test]
    fn chunks_leave_a_partial_row_alone() {
        let mut out = [0; 11];
        for_each_chunk_range(&Serial, &mut out, 3, 2, |rows, part| {
            assert_eq!((rows, part.len()), (0..3, 9));
            part.fill(1);
        });
        assert_eq!(out, [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    }

    fn piece<I>(input: I, out: &mut [f32], n_rows: usize) -> Piece<'_, I> {
        Piece { input, outputs: Outputs::new(out, n_rows), whole: true }
    }

    #[test]
    fn pieces_see_their_own_rows() {
        let (mut first, mut second) = ([0.0; 50], [0.0; 33]);
        let cut = Cut::new([(50, 4), (0, 0), (33, 8)], 2);
        let pieces =
            [piece(100.0, &mut first, 50), piece(200.0, &mut [], 0), piece(300.0, &mut second, 33)];
        for_each_piece(&Serial, &cut, &pieces, |input, rows, _, first, parts| {
            assert_eq!((first, parts.len()), (0, 1));
            for (row, value) in rows.zip(&mut *parts[0]) {
                *value += input + row as f32;
            }
        });
        assert!((0..50).all(|row| first[row] == 100.0 + row as f32), "{first:?}");
        assert!((0..33).all(|row| second[row] == 300.0 + row as f32), "{second:?}");
    }

    #[test]
    fn many_outputs_are_handed_out_unit_by_unit() {
        let mut out = [0.0; 19 * 80];
        let cut = Cut::new([(80, 4)], 2);
        assert_eq!(cut.n_units(), 4);
        let pieces = [Piece { whole: false, ..piece((), &mut out, 80) }];
        for_each_piece(&Serial, &cut, &pieces, |(), rows, _, first, parts| {
            assert!(rows.len() <= 32 && parts.len() == MAX_OUTPUTS.min(19 - first));
            for (i, part) in parts.iter_mut().enumerate() {
                rows.clone()
                    .zip(&mut **part)
                    .for_each(|(row, value)| *value += (100 * (first + i) + row) as f32);
            }
        });
        for (i, value) in out.into_iter().enumerate() {
            assert_eq!(value, (100 * (i / 80) + i % 80) as f32);
        }
    }

    #[test]
    fn a_pair_is_two_outputs() {
        let (mut out1, mut out2) = ([0.0; 3], [0.0; 3]);
        let outputs = Outputs::pair(&mut out1, &mut out2);
        let pieces = [Piece { input: (), outputs, whole: true }];
        for_each_piece(&Serial, &Cut::new([(3, 1)], 2), &pieces, |(), rows, _, _, parts| {
            for (i, part) in parts.iter_mut().enumerate() {
                rows.clone()
                    .zip(&mut **part)
                    .for_each(|(row, value)| *value = (10 * i + row) as f32);
            }
        });
        assert_eq!((out1, out2), ([0.0, 1.0, 2.0], [10.0, 11.0, 12.0]));
    }

    #[test]
    fn a_range_outside_is_refused() {
        let mut values = [0.0; 4];
        let cells = DisjointMut::new(&mut values);
        for range in [0..5, 5..5, Range { start: 3, end: 2 }] {
            // SAFETY: the results are not kept.
            let get = || unsafe { cells.get(range.clone()).len() };
            assert!(catch_unwind(AssertUnwindSafe(get)).is_err(), "{range:?}");
        }
    }
}
