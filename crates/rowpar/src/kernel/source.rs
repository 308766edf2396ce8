//! Where the bytes of eight rows lie: each row by itself, or packed.

use std::{marker::PhantomData, ptr};

use super::{
    prefetch::{opaque, prefetch_l2},
    simd::{LANES, Simd, read_halves},
};

/// Rows of a packed tile.
pub(crate) const TILE_ROWS: usize = 16;

/// Bytes between a row and its prefetches: 6 KB for eight rows together, which is what a core reads in some 400 ns. Measured on
/// Sapphire Rapids: 512 to 1024 are alike, 2048 is 4 % slower.
const AHEAD_BYTES: usize = 768;
/// The same in a packed tile, where the bytes of all rows follow each other.
const PACKED_AHEAD_BYTES: usize = 8192;

/// The bytes of eight rows, by their offset in a row.
///
/// Integers that are multiplied come as *factors*: bytes in the order that the products of the source want, which may be that of
/// [`Simd::load_straight`]. What is done to every byte may be done to them.
///
/// # Panics
///
/// Each method that reads, if there are no such bytes.
pub(super) trait Source: Copy {
    /// Whether words of all rows follow each other, and are no cheaper four at a time.
    const PACKED: bool;
    /// The same rows with straight factors, where there is such a thing.
    type Straight: Source;

    /// Bytes of a row.
    fn row_bytes(self) -> usize;
    /// So many bytes of each row, as rows of their own: what is read at a fixed offset of these needs no check.
    fn part(self, at: usize, n_bytes: usize) -> Self;
    /// See [`Straight`](Self::Straight).
    fn straight(self) -> Self::Straight;
    /// Four words of each row.
    fn load<S: Simd>(self, simd: S, at: usize) -> [S::I; 4];
    /// A word of each row.
    fn word<S: Simd>(self, simd: S, at: usize) -> S::I;
    /// Half a word of each row.
    fn halves(self, at: usize) -> [u16; LANES];
    /// Asks for lines that will be wanted some time after those at `at`, `n` of eight.
    fn prefetch(self, at: usize, first: usize, n: usize);

    /// Factors: sixteen bytes of each row.
    #[inline(always)]
    fn factors<S: Simd>(self, simd: S, at: usize) -> [S::I; 4] {
        self.load(simd, at)
    }
    /// Fifth bits for 32 columns of factors: [`Simd::fifth_bits`].
    #[inline(always)]
    fn fifth_bits<S: Simd>(simd: S, bits: S::I) -> [S::I; 8] {
        simd.fifth_bits(bits)
    }
    /// Sums of products of factors: [`Simd::dot_unsigned`].
    #[inline(always)]
    fn dot_unsigned<S: Simd, const N: usize, const MAX: i32>(
        simd: S,
        w: [S::I; N],
        x: &[[i8; 4]; N],
    ) -> S::I {
        simd.dot_unsigned::<N, MAX>(w, x)
    }
    /// Sums of products of factors: [`Simd::dot_signed`].
    #[inline(always)]
    fn dot_signed<S: Simd, const N: usize>(simd: S, w: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
        simd.dot_signed(w, x)
    }
}

/// Eight rows as they lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    /// **R1**: `start + half * h + stride * k` is valid for reads of `row_bytes` bytes, for h of 0 and 1 and k of 0 to 3, for `'a`.
    start: *const u8,
    /// Bytes from the first row to the fifth.
    half: usize,
    stride: usize,
    row_bytes: usize,
    stream: Stream,
    bytes: PhantomData<&'a [u8]>,
}

/// How far rows of eight lanes are from each other, in rows: lane `4 * h + k` has the one at `half * h + stride * k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) stride: usize,
    pub(super) half: usize,
}

impl Spread {
    /// Equal distances.
    pub(super) fn equal(stride: usize) -> Self {
        Self { stride, half: 4 * stride }
    }

    /// From the first lane's row to another lane's.
    #[inline(always)]
    pub(super) fn of(self, lane: usize) -> usize {
        lane / 4 * self.half + lane % 4 * self.stride
    }
}

/// Where the rows stand in the streams of their lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Bytes from the start of the row to the end of the stream.
    pub(super) left: usize,
    /// Where the first lane of the eight goes on then.
    pub(super) next: Ahead,
}

/// Addresses of lanes, at equal distances, of which nothing but lines is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub(super) start: *const u8,
    pub(super) stride: usize,
}

impl Ahead {
    pub(super) const NOWHERE: Self = Self { start: ptr::null(), stride: 0 };

    /// From a lane on.
    pub(super) fn lanes(self, first: usize) -> Self {
        match self.start.is_null() {
            true => self,
            false => Self { start: self.start.wrapping_add(first * self.stride), ..self },
        }
    }
}

impl<'a> Rows<'a> {
    /// Rows of a matrix.
    ///
    /// # Panics
    ///
    /// If there are no such rows.
    #[inline(always)]
    pub(super) fn new(
        matrix: &'a [u8],
        row_bytes: usize,
        first: usize,
        spread: Spread,
        stream: Stream,
    ) -> Self {
        let stride = spread.stride * row_bytes;
        let half = spread.half * row_bytes;
        // R1: all bytes between the start of the first row and the end of the last one are there.
        let rows = &matrix[first * row_bytes..][..half + 3 * stride + row_bytes];
        Self { start: rows.as_ptr(), half, stride, row_bytes, stream, bytes: PhantomData }
    }

    /// The address of a row, which is valid as R1 says.
    ///
    /// Computed each time: eight addresses would take more registers than there are.
    #[inline(always)]
    fn row(self, lane: usize) -> *const u8 {
        self.start.wrapping_add(lane / 4 * self.half).wrapping_add(lane % 4 * self.stride)
    }

    /// Asks for the first lines of the rows, which [`prefetch`](Source::prefetch) is too far ahead for.
    pub(super) fn prefetch_start(self) {
        for at in (0..AHEAD_BYTES.min(self.stream.left)).step_by(64) {
            (0..LANES).for_each(|lane| prefetch_l2(self.row(lane).wrapping_add(at)));
        }
    }

    /// `N` bytes of each row.
    #[inline(always)]
    fn bytes<const N: usize>(self, at: usize) -> [&'a [u8; N]; LANES] {
        assert!(at <= self.row_bytes && self.row_bytes - at >= N, "past the end of a row");
        let mut bytes = [&[0; N]; LANES];
        for (lane, bytes) in bytes.iter_mut().enumerate() {
            // SAFETY: valid: R1, and `at + N <= row_bytes`, as was checked; an array of bytes needs no alignment;
            // aliasing: shared, as the matrix is.
            *bytes = unsafe { &*self.row(lane).wrapping_add(at).cast::<[u8; N]>() };
        }
        bytes
    }
}

impl<'a> Source for Rows<'a> {
    const PACKED: bool = false;
    type Straight = StraightRows<'a>;

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.row_bytes
    }

    #[inline(always)]
    fn part(mut self, at: usize, n_bytes: usize) -> Self {
        let in_row = n_bytes <= self.row_bytes && at <= self.row_bytes - n_bytes;
        assert!(in_row, "past the end of a row");
        // R1: these bytes are some of those of each row, as was checked.
        self.start = opaque(self.start.wrapping_add(at));
        self.row_bytes = n_bytes;
        self
    }

    #[inline(always)]
    fn straight(self) -> StraightRows<'a> {
        StraightRows(self)
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
        let Stream { left, next } = self.stream;
        let mut lines = self;
        if ahead < left {
            lines.start = self.start.wrapping_add(ahead);
        } else if next.start.is_null() {
            return;
        } else {
            lines.start = next.start.wrapping_add(ahead - left);
            lines.stride = next.stride;
            lines.half = 4 * next.stride;
        }
        lines.start = opaque(lines.start);
        for lane in first..first + n {
            prefetch_l2(lines.row(lane % LANES));
        }
    }
}

/// Eight rows as they lie, with straight factors.
#[derive(Clone, Copy, Debug)]
pub(super) struct StraightRows<'a>(Rows<'a>);

impl Source for StraightRows<'_> {
    const PACKED: bool = false;
    type Straight = Self;

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.0.row_bytes()
    }

    #[inline(always)]
    fn part(self, at: usize, n_bytes: usize) -> Self {
        Self(self.0.part(at, n_bytes))
    }

    #[inline(always)]
    fn straight(self) -> Self {
        self
    }

    #[inline(always)]
    fn load<S: Simd>(self, simd: S, at: usize) -> [S::I; 4] {
        self.0.load(simd, at)
    }

    #[inline(always)]
    fn word<S: Simd>(self, simd: S, at: usize) -> S::I {
        self.0.word(simd, at)
    }

    #[inline(always)]
    fn halves(self, at: usize) -> [u16; LANES] {
        self.0.halves(at)
    }

    #[inline(always)]
    fn prefetch(self, at: usize, first: usize, n: usize) {
        self.0.prefetch(at, first, n);
    }

    #[inline(always)]
    fn factors<S: Simd>(self, simd: S, at: usize) -> [S::I; 4] {
        simd.load_straight(self.0.bytes(at))
    }

    #[inline(always)]
    fn fifth_bits<S: Simd>(simd: S, bits: S::I) -> [S::I; 8] {
        simd.fifth_bits_straight(bits)
    }

    #[inline(always)]
    fn dot_unsigned<S: Simd, const N: usize, const MAX: i32>(
        simd: S,
        w: [S::I; N],
        x: &[[i8; 4]; N],
    ) -> S::I {
        simd.dot_unsigned_straight::<N, MAX>(w, x)
    }

    #[inline(always)]
    fn dot_signed<S: Simd, const N: usize>(simd: S, w: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
        simd.dot_signed_straight(w, x)
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
    type Straight = Self;

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.tile.len() / TILE_ROWS
    }

    #[inline(always)]
    fn part(self, at: usize, n_bytes: usize) -> Self {
        let tile = &self.tile[TILE_ROWS * at..][..TILE_ROWS * n_bytes];
        Self { tile, ..self }
    }

    #[inline(always)]
    fn straight(self) -> Self {
        self
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
