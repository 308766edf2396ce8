//! How a range of rows becomes groups of eight: the part of the kernels that neither a format nor an instruction set changes.
//!
//! Three things make the literal order as fast as memory (the crate's README has figures):
//!
//! 1. Rows are lanes. Words of 8 rows are loaded as they lie and transposed in registers into vectors of one word of each
//!    row; an operation then advances 8 sums at once. More inputs share the transposed words. Bytes that one quantized input is
//!    multiplied with stay as they lie: it is their sums that are transposed, which are fewer.
//! 2. A row is visited for about a cache line at a time, so that no line is fetched twice.
//! 3. The 8 rows are 8 streams, or 16 where two groups run side by side: more than the hardware follows well. Each has a software
//!    prefetch into L2, which goes on where the lane does: in the rows that the thread most likely has next. The prefetches stand
//!    between the steps of the computation: in a burst they would wait for each other.
//!
//! Measured on Sapphire Rapids, eight streams that are kilobytes apart get a tenth to a quarter more out of memory
//! than one linear stream over the same bytes, and their prefetches reach the rows at hand: short ranges gain, too.

#![forbid(unsafe_code)]

use super::{
    simd::{LANES, Simd, Task},
    source::{Lanes, Packed, Rows, Source, Spread, Stream, TILE_ROWS},
    table::NextRows,
};

/// Bytes that make a stream long enough to be one to the hardware: four pages. Narrower rows are taken several to a stream.
const STREAM_BYTES: usize = 16 * 1024;

/// A format and the kind of input it is multiplied with.
pub(super) trait Kernel {
    /// An input.
    type Input<'x>: Copy;
    /// Whether packed tiles are computed in pairs for one or two inputs, so that more sums are under way.
    const PAIRS: bool;

    /// The sums of `G` groups of eight rows for each of `B` inputs. Implementations are `#[inline(always)]`.
    ///
    /// More than one group is given where a single one would wait for its own additions.
    ///
    /// # Panics
    ///
    /// If an input is shorter than the rows.
    fn sums<S: Simd, T: Source, const B: usize, const G: usize>(
        simd: S,
        groups: [T; G],
        x: [Self::Input<'_>; B],
    ) -> [[[f32; LANES]; B]; G];
}

/// Rows as they lie, with `B` inputs, in groups of `8 * G`.
#[derive(Debug)]
pub(super) struct RowMajor<'a, 'x, 'o, K: Kernel, const B: usize, const G: usize> {
    pub(super) bytes: &'a [u8],
    pub(super) row_bytes: usize,
    pub(super) next: NextRows<'a>,
    pub(super) x: [K::Input<'x>; B],
    pub(super) out: [&'o mut [f32]; B],
}

impl<K: Kernel, const B: usize, const G: usize> Task for RowMajor<'_, '_, '_, K, B, G> {
    /// Rows are taken in groups of `8 * G * depth`. Lane k of `8 * G` has the rows from `depth * k` of the group on, one
    /// after another: streams of `depth` rows that follow each other in memory.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { bytes, row_bytes, next, x, mut out } = self;
        let n_rows = out[0].len();
        let n_lanes = LANES * G;
        let mut row = 0;
        while row < n_rows {
            let turn = Turn::at(row, n_rows, n_lanes, row_bytes);
            let ahead: [Lanes; G] = std::array::from_fn(|group| {
                turn.ahead(group, bytes, row_bytes, n_rows, n_lanes, next)
            });
            for step in 0..turn.n_steps {
                let first_of = |group: usize| turn.first_of(group, step, n_rows);
                let groups = std::array::from_fn(|group| {
                    let left = (turn.n_steps - step) * row_bytes;
                    let stream = Stream { left, next: ahead[group] };
                    Rows::new(bytes, row_bytes, first_of(group), turn.spread, stream)
                });
                if (turn.first, step) == (0, 0) {
                    groups.iter().for_each(|group: &Rows<'_>| group.prefetch_start());
                }
                let sums = K::sums::<S, _, B, G>(simd, groups, x);
                for (group, sums) in sums.iter().enumerate() {
                    for (out, sums) in out.iter_mut().zip(sums) {
                        put(&mut out[first_of(group)..], turn.spread, sums);
                    }
                }
            }
            row = turn.next;
        }
    }
}

/// Puts the sums of eight lanes where their rows are.
#[inline(always)]
fn put(out: &mut [f32], spread: Spread, sums: &[f32; LANES]) {
    if spread == Spread::equal(1) {
        out[..LANES].copy_from_slice(sums);
    } else {
        for (lane, sum) in sums.iter().enumerate() {
            out[spread.of(lane)] = *sum;
        }
    }
}

/// Rows that are computed one after another in each lane.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// The first row of the first lane.
    first: usize,
    /// From lane to lane.
    spread: Spread,
    /// Rows of each lane.
    n_steps: usize,
    /// The first row of the next turn.
    next: usize,
}

impl Turn {
    fn at(row: usize, n_rows: usize, n_lanes: usize, row_bytes: usize) -> Self {
        let whole = (n_rows - row) / n_lanes;
        if whole > 0 {
            // Of about equal depth, so that a stream goes on where its prefetches are.
            let deepest = STREAM_BYTES.div_ceil(row_bytes.max(1));
            let depth = whole.div_ceil(whole.div_ceil(deepest));
            let spread = Spread::equal(depth);
            return Self { first: row, spread, n_steps: depth, next: row + n_lanes * depth };
        }
        // The last rows, too few for the lanes, are computed with some before them, which get the same bits again. With too few in
        // all, lanes share rows.
        let (first, spread, next) = match n_rows {
            0..4 => (row, Spread { stride: 0, half: 0 }, row + 1),
            4..8 => (0, Spread { stride: 1, half: n_rows - 4 }, n_rows),
            _ => (n_rows.saturating_sub(n_lanes), Spread::equal(1), n_rows),
        };
        Self { first, spread, n_steps: 1, next }
    }

    /// The row of a group's first lane at a step. Where there are too few rows for all groups, the last ones have some rows twice.
    #[inline(always)]
    fn first_of(self, group: usize, step: usize, n_rows: usize) -> usize {
        let last = n_rows - 1 - self.spread.of(LANES - 1);
        (self.first + step + LANES * group * self.spread.stride).min(last)
    }

    /// Where a group's streams go on after this turn: in the next one, or in the rows that come next.
    fn ahead(
        self,
        group: usize,
        bytes: &[u8],
        row_bytes: usize,
        n_rows: usize,
        n_lanes: usize,
        next: NextRows<'_>,
    ) -> Lanes {
        let (bytes, row_bytes, row, n_rows) = if self.next < n_rows {
            (bytes, row_bytes, self.next, n_rows)
        } else {
            match next.bytes.len().checked_div(next.row_bytes) {
                None | Some(0) => return Lanes::NOWHERE,
                Some(n_rows) => (next.bytes, next.row_bytes, 0, n_rows),
            }
        };
        let turn = Self::at(row, n_rows, n_lanes, row_bytes);
        let start = bytes[turn.first_of(group, 0, n_rows) * row_bytes..].as_ptr();
        Lanes::new(start, row_bytes, turn.spread)
    }
}

/// Whole packed tiles, with `B` inputs.
#[derive(Debug)]
pub(super) struct Tiles<'a, 'x, 'o, K: Kernel, const B: usize> {
    pub(super) bytes: &'a [u8],
    pub(super) row_bytes: usize,
    /// The address from which on nothing is prefetched.
    pub(super) end: usize,
    pub(super) x: [K::Input<'x>; B],
    pub(super) out: [&'o mut [f32]; B],
}

impl<K: Kernel, const B: usize> Task for Tiles<'_, '_, '_, K, B> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if K::PAIRS && B <= 2 { self.lead::<S, 4>(simd) } else { self.lead::<S, 2>(simd) }
    }
}

impl<K: Kernel, const B: usize> Tiles<'_, '_, '_, K, B> {
    /// `G` halves of tiles at a time. Where the last tile would be alone, it is computed twice.
    #[inline(always)]
    fn lead<S: Simd, const G: usize>(self, simd: S) {
        let Self { bytes, row_bytes, end, x, mut out } = self;
        let last = out[0].len() - TILE_ROWS;
        for first in (0..=last).step_by(LANES * G) {
            let row_of = |group: usize| (first + group / 2 * TILE_ROWS).min(last);
            let halves = std::array::from_fn(|group| {
                let tile = &bytes[row_of(group) * row_bytes..][..TILE_ROWS * row_bytes];
                Packed::new(tile, group % 2, end)
            });
            let sums = K::sums::<S, _, B, G>(simd, halves, x);
            for (group, sums) in sums.iter().enumerate() {
                for (out, sums) in out.iter_mut().zip(sums) {
                    out[row_of(group) + group % 2 * LANES..][..LANES].copy_from_slice(sums);
                }
            }
        }
    }
}

/// The lanes of all sums.
///
/// A plain loop, as are all loops over lanes here: a closure that is handed to a library function, which is compiled
/// without the instruction set, might not be inlined.
#[inline(always)]
pub(super) fn to_arrays<S: Simd, const B: usize, const G: usize>(
    simd: S,
    acc: [[S::F; B]; G],
) -> [[[f32; LANES]; B]; G] {
    let mut arrays = [[[0.0; LANES]; B]; G];
    for (arrays, acc) in arrays.iter_mut().zip(acc) {
        for (array, acc) in arrays.iter_mut().zip(acc) {
            *array = simd.to_array(acc);
        }
    }
    arrays
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that lanes have in a range, as `RowMajor::run` leads them.
    fn rows_of(n_rows: usize, n_groups: usize, row_bytes: usize) -> Vec<usize> {
        let mut rows = Vec::new();
        let mut row = 0;
        while row < n_rows {
            let turn = Turn::at(row, n_rows, LANES * n_groups, row_bytes);
            assert!(turn.next > row);
            for step in 0..turn.n_steps {
                for group in 0..n_groups {
                    let first = turn.first_of(group, step, n_rows);
                    rows.extend((0..LANES).map(|lane| first + turn.spread.of(lane)));
                }
            }
            row = turn.next;
        }
        rows
    }

    #[test]
    fn lanes_have_every_row_and_no_other() {
        for n_groups in [1, 2] {
            for row_bytes in [0, 1, 34, 2000, 20_000] {
                for n_rows in 0..300 {
                    let mut rows = rows_of(n_rows, n_groups, row_bytes);
                    rows.sort_unstable();
                    rows.dedup();
                    assert!(
                        rows.into_iter().eq(0..n_rows),
                        "{n_rows} x {row_bytes}, {n_groups} groups"
                    );
                }
            }
        }
    }

    #[test]
    fn streams_go_on_where_the_lanes_do() {
        let (row_bytes, next_row_bytes) = (2000, 600);
        let bytes = vec![0; 150 * row_bytes];
        for (n_groups, n_next) in [(1, 64), (2, 64), (1, 9), (2, 9), (1, 4), (2, 4), (2, 1)] {
            let next = vec![0; n_next * next_row_bytes];
            let next = NextRows { bytes: &next, row_bytes: next_row_bytes, packed: false };
            let n_lanes = LANES * n_groups;
            let mut row = 0;
            while row < 150 {
                let turn = Turn::at(row, 150, n_lanes, row_bytes);
                let (after, bytes_after, row_bytes_after, n_after) = if turn.next < 150 {
                    (Turn::at(turn.next, 150, n_lanes, row_bytes), &bytes[..], row_bytes, 150)
                } else {
                    let after = Turn::at(0, n_next, n_lanes, next_row_bytes);
                    (after, next.bytes, next_row_bytes, n_next)
                };
                for group in 0..n_groups {
                    let ahead = turn.ahead(group, &bytes, row_bytes, 150, n_lanes, next);
                    for lane in 0..LANES {
                        let row = after.first_of(group, 0, n_after) + after.spread.of(lane);
                        let expected = bytes_after[row * row_bytes_after..].as_ptr();
                        assert_eq!(
                            ahead.address(lane),
                            expected,
                            "row {row} of {n_after}, {n_groups}"
                        );
                    }
                }
                row = turn.next;
            }
        }
        let nothing = NextRows { bytes: &[], row_bytes: 0, packed: false };
        let turn = Turn::at(0, 8, LANES, row_bytes);
        assert!(turn.ahead(0, &bytes, row_bytes, 8, LANES, nothing).address(0).is_null());
    }
}
