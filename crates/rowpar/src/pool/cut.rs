//! How the rows of several matrices are cut into units of work: pure arithmetic.
//!
//! The matrices are taken as one stretch of bytes, which is cut into equal parts; a cut moves to the nearest tile of 16 rows. So
//! every participant gets as many bytes as the others, whatever the shapes and formats, to within a tile or two.

#![forbid(unsafe_code)]

use std::ops::Range;

/// Rows that a cut is a multiple of: a packed tile, and a cache line of an output.
const TILE_ROWS: usize = 16;
/// Bytes of weights of a unit, where there are enough of them: the first rows of a range are slower than the others, and from this
/// size on that matters little.
const UNIT_BYTES: u64 = 192 * 1024;
/// Units that each participant should find: of a small matrix, more of them would be so short that their first rows count.
const UNITS_PER_PARTICIPANT: usize = 2;

/// Units of `N` row spaces.
///
/// Invariant **C1**: the rows of a space that belong to a range of units start where those of the units before end. Disjoint units
/// have disjoint rows, and all units together have all rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut<const N: usize> {
    spaces: [Space; N],
    n_units: usize,
    /// Units of a participant that does its own and no others, to within a unit or two: for guesses.
    share: usize,
    /// Weight of a unit.
    unit: u64,
    /// This many units, the first ones, weigh one more.
    heavier: u64,
}

/// A row space in the stretch of all of them.
#[derive(Clone, Copy, Debug)]
struct Space {
    n_rows: usize,
    start: u64,
    end: u64,
    tile: u64,
}

impl<const N: usize> Cut<N> {
    /// Cuts spaces, each of so many rows of so many bytes, for so many participants. Every participant gets the same number of
    /// units, if there are tiles enough.
    pub(crate) fn new(spaces: [(usize, usize); N], participants: usize) -> Self {
        let participants = participants.max(1);
        let mut cut = Self::with_units(spaces, |n_bytes| n_units(n_bytes, participants));
        cut.share = cut.n_units.div_ceil(participants).max(1);
        cut
    }

    /// `n_units` is told the bytes of all. There are no more units than tiles, whatever it says. All units are one share.
    fn with_units(spaces: [(usize, usize); N], n_units: impl FnOnce(u64) -> usize) -> Self {
        let (mut end, mut n_tiles) = (0_u64, 0_usize);
        let spaces = spaces.map(|(n_rows, row_bytes)| {
            // Rows without columns have outputs all the same, which weigh something.
            let tile = (row_bytes as u64).saturating_mul(TILE_ROWS as u64).max(1);
            let tiles = n_rows.div_ceil(TILE_ROWS);
            let start = end;
            end = end.saturating_add(tile.saturating_mul(tiles as u64));
            n_tiles = n_tiles.saturating_add(tiles);
            Space { n_rows, start, end, tile }
        });
        let n_units = n_units(end).min(n_tiles);
        let [unit, heavier] = [u64::checked_div, u64::checked_rem]
            .map(|divide| divide(end, n_units as u64).unwrap_or(0));
        Self { spaces, n_units, share: usize::MAX, unit, heavier }
    }

    pub(crate) fn n_units(&self) -> usize {
        self.n_units
    }

    /// The rows of a space that belong to some units.
    #[inline]
    pub(crate) fn rows(&self, space: usize, units: &Range<usize>) -> Range<usize> {
        self.row(space, units.start)..self.row(space, units.end)
    }

    /// What most likely comes after the rows of a space that belong to some units, on the thread that has them: rows of that space
    /// or of a later one.
    #[inline]
    pub(crate) fn next(&self, space: usize, units: &Range<usize>) -> Option<(usize, Range<usize>)> {
        let same_units = (space + 1..N).map(|space| (space, units));
        let unit_after = units.end..units.end + 1;
        let goes_on = !units.end.is_multiple_of(self.share);
        let next_unit = (space..N).filter(|_| goes_on).map(|space| (space, &unit_after));
        let mut rows =
            same_units.chain(next_unit).map(|(space, units)| (space, self.rows(space, units)));
        rows.find(|(_, rows)| !rows.is_empty())
    }

    /// The first row of a space that belongs to this unit or to one after it.
    #[inline]
    fn row(&self, space: usize, unit: usize) -> usize {
        let Space { n_rows, start, end, tile } = self.spaces[space];
        if unit >= self.n_units {
            return n_rows;
        }
        let at = self.unit * unit as u64 + self.heavier.min(unit as u64);
        if at <= start {
            0
        } else if at >= end {
            n_rows
        } else {
            let tiles = (at - start).saturating_add(tile / 2) / tile;
            (tiles as usize).saturating_mul(TILE_ROWS).min(n_rows)
        }
    }
}

/// Units for so many bytes, the same number for each participant.
fn n_units(n_bytes: u64, participants: usize) -> usize {
    let share = n_bytes / participants as u64;
    let units = usize::try_from(share.div_ceil(UNIT_BYTES)).unwrap_or(usize::MAX);
    participants.saturating_mul(units.max(UNITS_PER_PARTICIPANT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spaces of a model's dispatches and odd ones: rows, bytes of a row.
    const SPACES: &[[(usize, usize); 3]] = &[
        [(576, 612), (192, 612), (192, 612)],
        [(1536, 612), (1536, 612), (0, 0)],
        [(576, 1632), (0, 0), (0, 0)],
        [(576, 612), (192, 2304), (192, 324)],
        [(49_152, 612), (1, 4), (17, 1)],
        [(15, 4), (0, 7), (100, 0)],
        [(0, 0), (0, 0), (0, 0)],
        [(usize::MAX, 0), (1, usize::MAX), (3, 5)],
        [(usize::MAX, usize::MAX), (usize::MAX, usize::MAX), (usize::MAX, 1)],
    ];

    #[test]
    fn units_have_every_row_once() {
        for &spaces in SPACES {
            for asked in [0, 1, 2, 3, 7, 8, 64, 1000] {
                let cut = Cut::with_units(spaces, |_| asked);
                let n_units = cut.n_units();
                assert!(n_units <= asked);
                for (space, (n_rows, _)) in spaces.into_iter().enumerate() {
                    let mut next = 0;
                    for unit in 0..n_units {
                        let rows = cut.rows(space, &(unit..unit + 1));
                        assert_eq!(rows.start, next, "{spaces:?} in {n_units}, unit {unit}");
                        assert!(rows.start <= rows.end);
                        assert!(rows.end == n_rows || rows.end.is_multiple_of(TILE_ROWS));
                        next = rows.end;
                    }
                    assert_eq!(next, if n_units == 0 { 0 } else { n_rows }, "{spaces:?}");
                }
            }
        }
    }

    #[test]
    fn units_are_equal_to_within_a_tile() {
        for &spaces in &SPACES[..6] {
            let tile = spaces.iter().map(|(_, row_bytes)| row_bytes * TILE_ROWS).max().unwrap();
            let bytes = |(n_rows, row_bytes): (usize, usize)| n_rows * row_bytes;
            let total: usize = spaces.into_iter().map(bytes).sum();
            for asked in [2, 3, 4, 8] {
                let cut = Cut::with_units(spaces, |_| asked);
                for unit in 0..cut.n_units() {
                    let rows = |space| cut.rows(space, &(unit..unit + 1)).len();
                    let of_unit: usize = (0..3).map(|space| rows(space) * spaces[space].1).sum();
                    let ideal = total / cut.n_units();
                    assert!(
                        of_unit.abs_diff(ideal) <= 2 * tile,
                        "{spaces:?} in {asked}: unit {unit} has {of_unit} of {ideal}"
                    );
                }
            }
        }
    }

    /// Bytes, participants, units.
    const UNITS: &[(u64, usize, usize)] = &[
        (2 << 20, 1, 11),
        (576 * 2304, 16, 32),
        (587_520, 2, 4),
        (113 << 20, 16, 608),
        (1, 4, 8),
        (0, 1, 2),
        (u64::MAX, usize::MAX, usize::MAX),
    ];

    #[test]
    fn participants_get_equally_many_units_of_a_sensible_size() {
        for &(n_bytes, participants, expected) in UNITS {
            assert_eq!(n_units(n_bytes, participants), expected, "{n_bytes} on {participants}");
        }
    }

    #[test]
    fn a_pool_that_says_it_has_no_participants_gets_units_all_the_same() {
        assert_eq!(Cut::new([(32, 612)], 0).n_units(), 2);
    }

    #[test]
    fn more_participants_than_units_have_one_each_and_no_next() {
        for participants in [8, usize::MAX] {
            let cut = Cut::new([(16, 4)], participants);
            assert_eq!((cut.n_units(), cut.share, cut.next(0, &(0..1))), (1, 1, None));
        }
        let cut = Cut::new([(80, 612), (0, 4)], 2);
        assert_eq!((cut.n_units(), cut.share, cut.next(0, &(3..4))), (4, 2, None));
        let cut = Cut::new([(0, 612)], 2);
        assert_eq!((cut.n_units(), cut.share, cut.next(0, &(0..0))), (0, 1, None));
    }

    #[test]
    fn what_comes_next_is_the_next_unit_or_matrix_of_the_share() {
        // Two participants with two units of three tiles each; Q ends within the third unit, K within the fourth.
        let cut = Cut::new([(112, 612), (0, 612), (48, 612), (32, 612)], 2);
        assert_eq!((cut.n_units(), cut.share), (4, 2));
        assert_eq!(cut.next(0, &(0..1)), Some((0, 48..96)));
        assert_eq!(cut.next(0, &(1..2)), None, "the others are the other's");
        assert_eq!(cut.next(0, &(2..3)), Some((2, 0..32)));
        assert_eq!(cut.next(2, &(2..3)), Some((2, 32..48)));
        assert_eq!(cut.next(2, &(3..4)), Some((3, 0..32)));
        assert_eq!(cut.next(3, &(3..4)), None);
        // Whoever takes all of them goes from matrix to matrix.
        assert_eq!(cut.next(0, &(0..4)), Some((2, 0..48)));
    }

    #[test]
    fn halves_of_a_models_dispatches_are_exact() {
        // Q, K and V of 576, 192 and 192 rows: the first half ends within Q.
        let cut = Cut::with_units(SPACES[0], |_| 2);
        assert_eq!([0, 1, 2].map(|space| cut.rows(space, &(0..1)).len()), [480, 0, 0]);
        let cut = Cut::with_units(SPACES[1], |_| 4);
        assert_eq!([0, 1].map(|space| cut.rows(space, &(1..3))), [768..1536, 0..768]);
    }
}
