//! Where the bytes of eight rows lie: each row by itself, or packed.

use std::marker::PhantomData;

use super::{
    prefetch::prefetch_l2,
    simd::{LANES, Simd, read_halves},
};

/// Rows of a packed tile.
pub(crate) const TILE_ROWS: usize = 16;

/// Bytes between a row and its prefetches: 2 KB, and so 16 KB for eight rows together.
const AHEAD_BYTES: usize = 2048;
/// The same in a packed tile, where the bytes of all rows follow each other.
const PACKED_AHEAD_BYTES: usize = 8192;

/// The bytes of eight rows, by their offset in a row.
///
/// # Panics
///
/// Each method, if there are no such bytes.
pub(super) trait Source: Copy {
    /// Whether words of all rows follow each other, and are no cheaper four at a time.
    const PACKED: bool;

    /// Bytes of a row.
    fn row_bytes(self) -> usize;
    /// Four words of each row.
    fn load<S: Simd>(self, simd: S, at: usize) -> [S::I; 4];
    /// A word of each row.
    fn word<S: Simd>(self, simd: S, at: usize) -> S::I;
    /// Half a word of each row.
    fn halves(self, at: usize) -> [u16; LANES];
    /// Asks for lines that will be wanted some time after those at `at`, `n` of eight.
    fn prefetch(self, at: usize, first: usize, n: usize);
}

/// Eight rows as they lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    /// **R1**: each is valid for reads of `row_bytes` bytes, for `'a`.
    rows: [*const u8; LANES],
    row_bytes: usize,
    stream: Stream,
    bytes: PhantomData<&'a [u8]>,
}

/// Where the rows stand in the streams of their lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Bytes from the start of the row to the end of the stream.
    pub(super) left: usize,
    /// Bytes of the other lanes' streams, which lie between this stream and its continuation.
    pub(super) skip: usize,
    /// The address past the range: nothing is prefetched from there on.
    pub(super) end: usize,
}

impl<'a> Rows<'a> {
    /// Rows of a matrix, by their indices.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub(super) fn new(
        matrix: &'a [u8],
        row_bytes: usize,
        row_of: impl Fn(usize) -> usize,
        stream: Stream,
    ) -> Self {
        let mut rows = [matrix.as_ptr(); LANES];
        for (lane, row) in rows.iter_mut().enumerate() {
            *row = matrix[row_of(lane) * row_bytes..][..row_bytes].as_ptr();
        }
        Self { rows, row_bytes, stream, bytes: PhantomData }
    }

    /// Asks for the first lines of the rows, which [`prefetch`](Source::prefetch) is too far ahead for.
    pub(super) fn prefetch_start(self) {
        for at in (0..AHEAD_BYTES.min(self.stream.left)).step_by(64) {
            self.rows.iter().for_each(|row| prefetch_l2(row.wrapping_add(at)));
        }
    }

    /// `N` bytes of each row.
    #[inline(always)]
    fn bytes<const N: usize>(self, at: usize) -> [&'a [u8; N]; LANES] {
        assert!(at <= self.row_bytes && self.row_bytes - at >= N, "past the end of a row");
        let mut bytes = [&[0; N]; LANES];
        for (bytes, row) in bytes.iter_mut().zip(self.rows) {
            // SAFETY: valid: R1, and `at + N <= row_bytes`, as was checked; an array of bytes needs no alignment;
            // aliasing: shared, as the matrix is.
            *bytes = unsafe { &*row.wrapping_add(at).cast::<[u8; N]>() };
        }
        bytes
    }
}

impl Source for Rows<'_> {
    const PACKED: bool = false;

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.row_bytes
    }

    #[inline(always)]
    fn load<S: Simd>(self, simd: S, at: usize) -> [S::I; 4] {
        simd.load_rows(self.bytes(at))
    }

    #[inline(always)]
    fn word<S: Simd>(self, simd: S, at: usize) -> S::I {
        let mut words = [0; LANES];
        for (word, bytes) in words.iter_mut().zip(self.bytes(at)) {
            *word = u32::from_le_bytes(*bytes);
        }
        simd.words(words)
    }

    #[inline(always)]
    fn halves(self, at: usize) -> [u16; LANES] {
        let mut halves = [0; LANES];
        for (half, bytes) in halves.iter_mut().zip(self.bytes(at)) {
            *half = u16::from_le_bytes(*bytes);
        }
        halves
    }

    #[inline(always)]
    fn prefetch(self, at: usize, first: usize, n: usize) {
        let ahead = at + AHEAD_BYTES;
        let offset = if ahead < self.stream.left { ahead } else { ahead + self.stream.skip };
        if self.rows[LANES - 1].wrapping_add(offset).addr() < self.stream.end {
            for row in first..first + n {
                prefetch_l2(self.rows[row % LANES].wrapping_add(offset));
            }
        }
    }
}

/// Eight of the sixteen rows of a packed tile: byte `at` of a row is in the field that begins at `16 * at`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    tile: &'a [u8],
    /// 0 for the first eight rows, 1 for the others.
    half: usize,
    /// The address past the range.
    end: usize,
}

impl<'a> Packed<'a> {
    /// The first or the second half of a tile.
    #[inline(always)]
    pub(super) fn new(tile: &'a [u8], half: usize, end: usize) -> Self {
        Self { tile, half, end }
    }
}

impl Source for Packed<'_> {
    const PACKED: bool = true;

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.tile.len() / TILE_ROWS
    }

    #[inline(always)]
    fn load<S: Simd>(self, simd: S, at: usize) -> [S::I; 4] {
        let words =
            self.tile[TILE_ROWS * at..].first_chunk::<{ 16 * TILE_ROWS }>().expect("within a row");
        let [a, b, c, d]: &[[u8; 4 * TILE_ROWS]; 4] =
            words.as_chunks().0.try_into().expect("four words");
        let half = |word: &[u8; 4 * TILE_ROWS]| simd.load(&word.as_chunks().0[self.half]);
        [half(a), half(b), half(c), half(d)]
    }

    #[inline(always)]
    fn word<S: Simd>(self, simd: S, at: usize) -> S::I {
        let word =
            self.tile[TILE_ROWS * at..].first_chunk::<{ 4 * TILE_ROWS }>().expect("within a row");
        simd.load(&word.as_chunks().0[self.half])
    }

    #[inline(always)]
    fn halves(self, at: usize) -> [u16; LANES] {
        let halves =
            self.tile[TILE_ROWS * at..].first_chunk::<{ 2 * TILE_ROWS }>().expect("within a row");
        read_halves(&halves.as_chunks().0[self.half])
    }

    #[inline(always)]
    fn prefetch(self, at: usize, _first: usize, n: usize) {
        let start =
            self.tile.as_ptr().wrapping_add(TILE_ROWS * at + 64 * self.half + PACKED_AHEAD_BYTES);
        if start.addr() < self.end {
            for line in 0..n {
                prefetch_l2(start.wrapping_add(128 * line));
            }
        }
    }
}
