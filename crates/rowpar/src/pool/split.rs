//! Hands out parts of `&mut [T]` along with row ranges: the only writing through shared references.

use std::{marker::PhantomData, ops::Range, slice};

use crate::{Part, RowPool};

/// Calls `f` with disjoint ranges of rows and with the elements of `out` that belong to them.
///
/// A row is one element of `out`. Ranges cover `0..out.len()`, each row once; their starts are multiples of
/// `grain` (0 means 1). This is [`RowPool::for_each_range`] for a closure that writes its rows, and needs no
/// unsafe code from the caller. It always goes to the pool, however little there is to do.
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
            f(rows, part);
        }
    });
}

/// [`for_each_range_mut`] for two outputs of one length.
pub(crate) fn for_each_range_mut2(
    pool: &(impl RowPool + ?Sized),
    out1: &mut [f32],
    out2: &mut [f32],
    grain: usize,
    f: impl Fn(Range<usize>, &mut [f32], &mut [f32]) + Sync,
) {
    let n_rows = out1.len();
    let (cells1, cells2) = (DisjointMut::new(out1), DisjointMut::new(out2));
    pool.for_each_range(n_rows, grain, &|rows: Range<usize>| {
        if rows.start < rows.end {
            // SAFETY: P1 and P2, as in `for_each_chunk_range`.
            let part1 = unsafe { cells1.get(rows.clone()) };
            // SAFETY: the same, of the other output.
            let part2 = unsafe { cells2.get(rows.clone()) };
            f(rows, part1, part2);
        }
    });
}

/// One row space of [`for_each_piece`].
#[derive(Debug)]
pub(crate) struct Piece<'a, I> {
    /// What `f` needs to know about the space.
    pub(crate) input: I,
    /// Its output, one element a row.
    pub(crate) out: &'a mut [f32],
    /// Rows that are handed out together; at least 1.
    pub(crate) unit: usize,
}

/// Several row spaces in one dispatch; each has a size of group of its own.
///
/// To the pool a row is a unit of `unit` rows, so that parts with long and with short rows can be cut into
/// units that cost the same. `f` gets the piece's input, and the part of its `out` to write.
pub(crate) fn for_each_piece<I: Sync, const N: usize>(
    pool: &(impl RowPool + ?Sized),
    pieces: [Piece<'_, I>; N],
    f: impl Fn(&I, Range<usize>, &mut [f32]) + Sync,
) {
    let spaces =
        pieces.map(|Piece { input, out, unit }| (input, DisjointMut::new(out), unit.max(1)));
    let closures = spaces.each_ref().map(|(input, cells, unit)| {
        let f = &f;
        move |units: Range<usize>| {
            let rows = units.start * unit..units.end.saturating_mul(*unit).min(cells.len);
            if rows.start < rows.end {
                // SAFETY: P1 and P2, as in `for_each_chunk_range`: disjoint units are disjoint rows.
                f(input, rows.clone(), unsafe { cells.get(rows) });
            }
        }
    });
    let parts: [Part<'_>; N] = std::array::from_fn(|i| {
        let (_, cells, unit) = &spaces[i];
        (cells.len.div_ceil(*unit), &closures[i] as _)
    });
    // Unused pieces at the end are not shown to the pool.
    let n_parts = parts.iter().rposition(|(rows, _)| *rows > 0).map_or(0, |last| last + 1);
    match parts[..n_parts] {
        [] => {}
        [(rows, f)] => pool.for_each_range(rows, 1, f),
        _ => pool.for_each_range_many(1, &parts[..n_parts]),
    }
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

    #[test]
    fn pieces_see_their_own_rows() {
        let (mut first, mut second) = ([0.0; 5], [0.0; 3]);
        let pieces = [
            Piece { input: 10.0, out: &mut first, unit: 2 },
            Piece { input: 20.0, out: &mut [], unit: 1 },
            Piece { input: 30.0, out: &mut second, unit: 8 },
        ];
        for_each_piece(&Serial, pieces, |input, rows, part| {
            for (row, value) in rows.zip(part) {
                *value = input + row as f32;
            }
        });
        assert_eq!(first, [10.0, 11.0, 12.0, 13.0, 14.0]);
        assert_eq!(second, [30.0, 31.0, 32.0]);
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
