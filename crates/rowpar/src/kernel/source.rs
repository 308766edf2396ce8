//! Where the bytes of eight rows lie: each row by itself, or packed.

use std::{marker::PhantomData, ptr};

use super::{
    prefetch::{opaque, prefetch_l2},
    simd::{LANES, Simd, read_halves},
};

/// Bytes of a cache line. A row is visited for about as much at once, so that no line is fetched twice.
pub(super) const LINE: usize = 64;
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
/// Each method that reads, and [`part`](Self::part), if there are no such bytes.
pub(super) trait Source: Copy {
    /// Whether words of all rows follow each other, and are no cheaper four at a time.
    const PACKED: bool;
    /// The same rows with straight factors, where there is such a thing.
    type Straight: Source;

    /// Bytes of a row.
    fn row_bytes(self) -> usize;
    /// So many bytes of each row, as rows of their own, such as a block: what is read at a fixed offset of these needs no check.
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
    /// **R1**: each address is valid for reads of `row_bytes` bytes, for `'a`.
    lanes: Lanes,
    row_bytes: usize,
    stream: Stream,
    bytes: PhantomData<&'a [u8]>,
}

/// Addresses of eight lanes: of lane `4 * h + k` it is `start + half * h + stride * k`, which may wrap around.
///
/// Computed each time: eight addresses would take more registers than there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    start: *const u8,
    half: usize,
    stride: usize,
}

impl Lanes {
    /// Where there is nothing to ask for.
    pub(super) const NOWHERE: Self = Self { start: ptr::null(), half: 0, stride: 0 };

    /// The row at an address, and seven more, of so many bytes each.
    pub(super) fn new(start: *const u8, row_bytes: usize, spread: Spread) -> Self {
        let half = spread.half.wrapping_mul(row_bytes);
        Self { start, half, stride: spread.stride.wrapping_mul(row_bytes) }
    }

    #[inline(always)]
    pub(super) fn address(self, lane: usize) -> *const u8 {
        let half = lane / 4 * self.half;
        self.start.wrapping_add(half).wrapping_add((lane % 4).wrapping_mul(self.stride))
    }

    /// So many bytes further on.
    #[inline(always)]
    fn at(self, offset: usize) -> Self {
        Self { start: opaque(self.start.wrapping_add(offset)), ..self }
    }

    /// Asks for the line at `n` of the addresses.
    #[inline(always)]
    fn prefetch(self, first: usize, n: usize) {
        for lane in first..first + n {
            prefetch_l2(self.address(lane % LANES));
        }
    }
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
    /// Where the lanes go on then. Nothing but lines is asked for there.
    pub(super) next: Lanes,
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
        let matrix = &matrix[first * row_bytes..];
        let lanes = Lanes::new(matrix.as_ptr(), row_bytes, spread);
        let last = lanes.stride.checked_mul(3).and_then(|last| last.checked_add(lanes.half));
        let n_bytes = last.and_then(|last| last.checked_add(row_bytes));
        // R1: all bytes between the start of the first row and the end of the last one are there.
        assert!(n_bytes.is_some_and(|n_bytes| n_bytes <= matrix.len()), "past the end of a matrix");
        Self { lanes, row_bytes, stream, bytes: PhantomData }
    }

    /// Asks for the first lines of the rows, which [`prefetch`](Source::prefetch) is too far ahead for.
    pub(super) fn prefetch_start(self) {
        for at in (0..AHEAD_BYTES.min(self.stream.left)).step_by(LINE) {
            self.lanes.at(at).prefetch(0, LANES);
        }
    }

    /// The lines that are asked for at an offset of a row, if there are any.
    #[inline(always)]
    fn ahead(self, at: usize) -> Lanes {
        let ahead = at + AHEAD_BYTES;
        let Stream { left, next } = self.stream;
        let mut lines = self.lanes;
        if ahead < left {
            lines.start = lines.start.wrapping_add(ahead);
        } else if next.start.is_null() {
            return next;
        } else {
            lines = next;
            lines.start = lines.start.wrapping_add(ahead - left);
        }
        // Once, behind the choice: in both branches it costs F32 a third of its speed in the cache.
        lines.start = opaque(lines.start);
        lines
    }

    /// `N` bytes of each row.
    #[inline(always)]
    fn bytes<const N: usize>(self, at: usize) -> [&'a [u8; N]; LANES] {
        assert!(at <= self.row_bytes && self.row_bytes - at >= N, "past the end of a row");
        let mut bytes = [&[0; N]; LANES];
        for (lane, bytes) in bytes.iter_mut().enumerate() {
            // SAFETY: valid: R1, and `at + N <= row_bytes`, as was checked; an array of bytes needs no alignment;
            // aliasing: shared, as the matrix is.
            *bytes = unsafe { &*self.lanes.address(lane).wrapping_add(at).cast::<[u8; N]>() };
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
        self.lanes = self.lanes.at(at);
        self.row_bytes = n_bytes;
        self.stream.left -= at;
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
        let lines = self.ahead(at);
        if !lines.start.is_null() {
            lines.prefetch(first, n);
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

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::kernel::portable::Portable;

    const ROW_BYTES: usize = 40;

    /// Rows whose bytes are all different from those of others.
    fn matrix() -> Vec<u8> {
        (0..6 * ROW_BYTES).map(|i| i as u8).collect()
    }

    fn rows(matrix: &[u8], first: usize, spread: Spread) -> Rows<'_> {
        let stream = Stream { left: ROW_BYTES, next: Lanes::NOWHERE };
        Rows::new(matrix, ROW_BYTES, first, spread, stream)
    }

    /// Six rows in eight lanes.
    const SPREAD: Spread = Spread { stride: 1, half: 2 };

    #[test]
    fn lanes_have_the_bytes_of_their_rows() {
        let matrix = matrix();
        let rows = rows(&matrix, 0, SPREAD).part(4, 36);
        let [first, ..] = rows.load(Portable, 2);
        for (lane, (word, row)) in first.into_iter().zip([0, 1, 2, 3, 2, 3, 4, 5]).enumerate() {
            let bytes = &matrix[row * ROW_BYTES + 6..][..4];
            assert_eq!(word.to_le_bytes(), bytes, "lane {lane}");
        }
    }

    #[test]
    fn straight_factors_have_the_same_sums() {
        let matrix = matrix();
        let rows = rows(&matrix, 0, SPREAD).part(2, 34);
        let straight = rows.straight();
        let x: [[i8; 4]; 4] =
            std::array::from_fn(|i| [3, -7, 100, -127].map(|x: i8| x / (i as i8 + 1)));
        fn sums<T: Source>(rows: T, x: &[[i8; 4]; 4]) -> [[u32; LANES]; 2] {
            let factors = rows.factors(Portable, 18);
            let factors = factors.map(|word| word.map(|word| word & 0x3f3f_3f3f));
            [
                T::dot_unsigned::<Portable, 4, 63>(Portable, factors, x),
                T::dot_signed::<Portable, 4>(Portable, factors, x),
            ]
        }
        assert_eq!(sums(straight, &x), sums(rows, &x));
        assert_eq!(straight.halves(0), rows.halves(0));
        assert_eq!(straight.word(Portable, 30), rows.word(Portable, 30));
        assert_eq!(straight.part(3, 4).row_bytes(), 4);
    }

    #[test]
    fn rows_that_are_not_there_panic() {
        let matrix = matrix();
        let panics = |f: &(dyn Fn() + std::panic::RefUnwindSafe)| catch_unwind(f).is_err();
        let spread = |stride, half| Spread { stride, half };
        assert!(!panics(&|| _ = rows(&matrix, 0, spread(1, 2))));
        assert!(panics(&|| _ = rows(&matrix, 1, spread(1, 2))));
        assert!(panics(&|| _ = rows(&matrix, 0, spread(1, 3))));
        assert!(panics(&|| _ = rows(&matrix, 7, spread(0, 0))));
        // Distances whose sum wraps around to a small one.
        let far = usize::MAX / ROW_BYTES;
        assert!(panics(&|| _ = rows(&matrix, 0, spread(far, far))));
        assert!(panics(&|| _ = rows(&matrix, 0, spread(far / 3, far / 2))));
        assert!(panics(&|| _ = rows(&matrix, 0, spread(0, 0)).part(7, 34)));
        assert!(panics(&|| _ = rows(&matrix, 0, spread(0, 0)).part(usize::MAX, 2)));
        assert!(panics(&|| _ = rows(&matrix, 0, spread(0, 0)).load(Portable, 25)));
        assert!(panics(&|| _ = rows(&matrix, 0, spread(0, 0)).part(2, 34).halves(33)));
    }

    #[test]
    fn lines_ahead_are_of_the_row_or_of_what_comes_next() {
        let matrix = matrix();
        let next = Lanes::new(matrix[ROW_BYTES..].as_ptr(), 7, Spread::equal(2));
        let left = AHEAD_BYTES + 100;
        let rows = Rows { stream: Stream { left, next }, ..rows(&matrix, 0, SPREAD) };
        let addresses = |lanes: Lanes| [0, 3, 4, 7].map(|lane| lanes.address(lane).addr());
        let start = matrix.as_ptr().addr();
        let own = start + AHEAD_BYTES + 99;
        let expected = [0, 3, 2, 5].map(|row| own + row * ROW_BYTES);
        assert_eq!(addresses(rows.ahead(99)), expected);
        for beyond in [0, 1, 64] {
            let expected = [0, 3, 4, 7].map(|lane| start + ROW_BYTES + beyond + 14 * lane);
            assert_eq!(addresses(rows.ahead(100 + beyond)), expected);
        }
        let alone = Rows { stream: Stream { left, next: Lanes::NOWHERE }, ..rows };
        assert_eq!(addresses(alone.ahead(99)), addresses(rows.ahead(99)));
        assert!(alone.ahead(100).address(0).is_null());
    }
}
