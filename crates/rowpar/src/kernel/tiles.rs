//! How a range of rows becomes tiles of 8 rows: the part of the kernels that no instruction set changes.
//!
//! Three things make the literal order as fast as memory (the crate's README has figures):
//!
//! 1. Rows are lanes. Four columns of 8 rows are loaded as they lie and transposed in registers into vectors of
//!    one column; `acc = acc + column * x[col]` then advances 8 sums at once. More inputs share the transposed
//!    columns.
//! 2. A row is visited for 16 columns at a time, a cache line, so that no line is fetched twice.
//! 3. The 8 rows are 8 streams, more than the hardware follows well. Each has a software prefetch into L2,
//!    [`AHEAD_COLS`] ahead, which goes on where the stream does. The prefetches stand between the steps of the
//!    computation: in a burst they would wait for each other.
//!
//! Measured on Sapphire Rapids, eight streams that are kilobytes apart get a tenth to a quarter more out of memory
//! than one linear stream over the same bytes, and their prefetches reach the rows at hand: short ranges gain, too.

use super::prefetch::prefetch_l2;

/// Rows of a tile.
pub(super) const LANES: usize = 8;
/// Columns of a row in one visit: a cache line.
pub(super) const LINE_COLS: usize = 16;
/// Columns between the loads of a row and its prefetches: 2 KB, and so 16 KB for the 8 rows together.
const AHEAD_COLS: usize = 512;
/// Columns that make a stream long enough to be one to the hardware: 16 KB, four pages. Narrower rows are taken
/// several to a stream.
const STREAM_COLS: usize = 4096;

/// The sums of 8 rows for each of `B` inputs, left to right.
///
/// # Safety
///
/// The CPU must have what the function enables. Each pointer must be valid for reads of `x[0].len()` values, and
/// all inputs must be of one length.
pub(super) type TileFn<const B: usize> =
    unsafe fn([*const f32; LANES], [&[f32]; B], Stream) -> [[f32; LANES]; B];

/// Computes every row of `out`; shapes are as K2 says.
///
/// Rows are taken in groups of `8 * depth`. Lane k has the rows from `depth * k` of the group on, one after
/// another: eight streams, each of `depth` rows that follow each other in memory.
///
/// # Safety
///
/// The CPU must have what `tile` enables.
#[inline]
pub(super) unsafe fn matvec<const B: usize>(
    w: &[f32],
    x: [&[f32]; B],
    mut out: [&mut [f32]; B],
    tile: TileFn<B>,
) {
    let n_cols = x[0].len();
    let n_rows = out[0].len();
    assert!(w.len() == n_rows * n_cols && x.iter().all(|x| x.len() == n_cols));
    let mut row = 0;
    while row < n_rows {
        let depth = ((n_rows - row) / LANES).min(STREAM_COLS.div_ceil(n_cols.max(1)));
        // The last rows, fewer than 8, are computed with some before them, which get the same bits again.
        // With fewer than 8 in all, the last one fills the lanes that are left.
        let first = if depth > 0 { row } else { n_rows.saturating_sub(LANES) };
        let depth = depth.max(1);
        for step in 0..depth {
            let row_of = |lane: usize| (first + lane * depth + step).min(n_rows - 1);
            let rows = std::array::from_fn(|lane| w.as_ptr().wrapping_add(row_of(lane) * n_cols));
            let stream = Stream {
                left: (depth - step) * n_cols,
                skip: (LANES - 1) * depth * n_cols,
                end: w.as_ptr_range().end.addr(),
            };
            if (first, step) == (0, 0) {
                stream.prefetch_start(rows);
            }
            // SAFETY: the CPU has what `tile` enables, by our own contract; each pointer is to the first of
            // the `n_cols` values of a row of `w`, since `row_of` is below `n_rows` and `w` has that many
            // rows, by the assertion, which also covers the inputs.
            let sums = unsafe { tile(rows, x, stream) };
            for (out, sums) in out.iter_mut().zip(sums) {
                for (lane, sum) in sums.into_iter().enumerate() {
                    out[row_of(lane)] = sum;
                }
            }
        }
        row = first + LANES * depth;
    }
}

/// Where the rows of a tile stand in the streams of their lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Values from the start of the row to the end of the stream.
    left: usize,
    /// Values of the other lanes' streams, which lie between this stream and its continuation.
    skip: usize,
    /// The address past the range: nothing is prefetched from there on.
    end: usize,
}

impl Stream {
    /// Asks for the lines of the first rows of a range that [`Prefetch`] is too far ahead for.
    fn prefetch_start(self, rows: [*const f32; LANES]) {
        for col in (0..AHEAD_COLS.min(self.left)).step_by(LINE_COLS) {
            rows.iter().for_each(|row| prefetch_l2(row.wrapping_add(col)));
        }
    }
}

/// The lines that 8 rows will need, each [`AHEAD_COLS`] after the one that is being loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefetch {
    rows: [*const f32; LANES],
    offset: usize,
    wanted: bool,
}

impl Prefetch {
    /// For the visit of `rows` from column `col` on.
    #[inline(always)]
    pub(super) fn new(rows: [*const f32; LANES], stream: Stream, col: usize) -> Self {
        let ahead = col + AHEAD_COLS;
        let offset = if ahead < stream.left { ahead } else { ahead + stream.skip };
        let wanted = rows[LANES - 1].wrapping_add(offset).addr() < stream.end;
        Self { rows, offset, wanted }
    }

    /// Asks for a line of row `first`, and of the one after it.
    #[inline(always)]
    pub(super) fn rows(&self, first: usize) {
        if self.wanted {
            prefetch_l2(self.rows[first].wrapping_add(self.offset));
            prefetch_l2(self.rows[first + 1].wrapping_add(self.offset));
        }
    }
}
