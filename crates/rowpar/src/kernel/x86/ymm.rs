//! AVX2 and F16C: 8 rows in the 8 lanes of a register.
//!
//! Never fused: Rust does not contract, also where FMA is enabled, as it is with AVX-512.
//!
//! Functions of one intrinsic or a few are safe where they enable what they need; the methods of the token call them.

use std::arch::{asm, x86_64::*};

use crate::kernel::simd::{LANES, Simd, Task, word_of, words_in_16_bits};

/// What differs between the sets with registers of 256 bits: how bytes are multiplied and summed.
///
/// # Safety
///
/// A value must be a token of a CPU with AVX2, F16C, and what the type stands for besides (K1).
pub(in crate::kernel) unsafe trait Dot: Copy {
    /// As [`Simd::BIAS`].
    const BIAS: u32;
    /// Runs `task`, compiled for this instruction set.
    fn enter<T: Task>(self, task: T);
    /// The sums of products of unsigned bytes of at most `MAX` with signed ones, of the four bytes in a lane and the same lane of all
    /// vectors.
    fn sums_unsigned<const N: usize, const MAX: i32>(
        self,
        w: [__m256i; N],
        x: [__m256i; N],
    ) -> __m256i;
    /// The same of signed bytes, each counted as `BIAS` more than it is.
    fn sums_signed<const N: usize>(self, w: [__m256i; N], x: [__m256i; N]) -> __m256i;
}

/// AVX2 and F16C, and what `D` stands for.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Ymm<D: Dot>(pub(in crate::kernel) D);

/// Nothing but AVX2 and F16C.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Avx2(());

impl Avx2 {
    /// A token.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX2 and F16C.
    pub(in crate::kernel) unsafe fn new() -> Self {
        Self(())
    }
}

/// Calls a function that enables `avx2` and `f16c` at most.
macro_rules! avx2 {
    ($token:expr, $call:expr) => {{
        let _: Ymm<_> = $token;
        // SAFETY: K1: the token is of a CPU with AVX2 and F16C.
        unsafe { $call }
    }};
}

// SAFETY: the one constructor asks for such a CPU.
unsafe impl Dot for Avx2 {
    const BIAS: u32 = 0;

    #[inline]
    fn enter<T: Task>(self, task: T) {
        #[target_feature(enable = "avx2,f16c")]
        fn inner<T: Task>(simd: Ymm<Avx2>, task: T) {
            task.run(simd);
        }
        avx2!(Ymm(self), inner(Ymm(self), task));
    }

    /// Sums of pairs fit 16 bits, and sums of several of them, too, where the weights are small.
    #[inline(always)]
    fn sums_unsigned<const N: usize, const MAX: i32>(
        self,
        w: [__m256i; N],
        x: [__m256i; N],
    ) -> __m256i {
        let at_once = const { words_in_16_bits(MAX) };
        let mut sum = avx2!(Ymm(self), _mm256_setzero_si256());
        let mut first = 0;
        while first < N {
            let mut pairs = avx2!(Ymm(self), _mm256_maddubs_epi16(w[first], x[first]));
            let mut next = first + 1;
            while next < N && next < first + at_once {
                let more = avx2!(Ymm(self), _mm256_maddubs_epi16(w[next], x[next]));
                pairs = avx2!(Ymm(self), _mm256_add_epi16(pairs, more));
                next += 1;
            }
            sum = avx2!(Ymm(self), add_pairs(sum, pairs));
            first = next;
        }
        sum
    }

    /// The sign of a weight goes to the input: 128 · 127, twice, still fits 16 bits.
    #[inline(always)]
    fn sums_signed<const N: usize>(self, w: [__m256i; N], x: [__m256i; N]) -> __m256i {
        let mut sum = avx2!(Ymm(self), _mm256_setzero_si256());
        for (w, x) in w.into_iter().zip(x) {
            let x = avx2!(Ymm(self), _mm256_sign_epi8(x, w));
            let w = avx2!(Ymm(self), _mm256_abs_epi8(w));
            let pairs = avx2!(Ymm(self), _mm256_maddubs_epi16(w, x));
            sum = avx2!(Ymm(self), add_pairs(sum, pairs));
        }
        sum
    }
}

/// Adds the sums of neighbours of 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn add_pairs(sum: __m256i, pairs: __m256i) -> __m256i {
    _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

/// Four bytes in every lane.
#[inline]
#[target_feature(enable = "avx2")]
fn splat_bytes(x: [i8; 4]) -> __m256i {
    _mm256_set1_epi32(word_of(x).cast_signed())
}

impl<D: Dot> Simd for Ymm<D> {
    const BIAS: u32 = D::BIAS;
    type F = __m256;
    type I = __m256i;

    #[inline(always)]
    fn enter<T: Task>(self, task: T) {
        self.0.enter(task);
    }

    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        avx2!(self, _mm256_set1_ps(value))
    }

    #[inline(always)]
    fn splat_word(self, word: u32) -> __m256i {
        avx2!(self, _mm256_set1_epi32(word.cast_signed()))
    }

    #[inline(always)]
    fn words(self, words: [u32; LANES]) -> __m256i {
        avx2!(self, setr(words))
    }

    #[inline(always)]
    fn halves(self, halves: [u16; LANES]) -> __m256i {
        avx2!(self, widen_halves(halves))
    }

    #[inline(always)]
    fn to_array(self, values: __m256) -> [f32; LANES] {
        avx2!(self, to_array(values))
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        avx2!(self, _mm256_add_ps(a, b))
    }

    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        avx2!(self, _mm256_sub_ps(a, b))
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        avx2!(self, _mm256_mul_ps(a, b))
    }

    #[inline(always)]
    fn keep(self, acc: __m256) -> __m256 {
        avx2!(self, keep(acc))
    }

    #[inline(always)]
    fn as_floats(self, words: __m256i) -> __m256 {
        avx2!(self, _mm256_castsi256_ps(words))
    }

    #[inline(always)]
    fn to_float(self, words: __m256i) -> __m256 {
        avx2!(self, _mm256_cvtepi32_ps(words))
    }

    #[inline(always)]
    fn f16(self, words: __m256i) -> __m256 {
        avx2!(self, f16(words))
    }

    #[inline(always)]
    fn f16_pair(self, words: __m256i) -> [__m256; 2] {
        avx2!(self, f16_pair(words))
    }

    #[inline(always)]
    fn f16_halves(self, halves: [u16; LANES]) -> __m256 {
        avx2!(self, f16_halves(halves))
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        avx2!(self, _mm256_and_si256(a, b))
    }

    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        avx2!(self, _mm256_or_si256(a, b))
    }

    #[inline(always)]
    fn sub_int(self, a: __m256i, b: __m256i) -> __m256i {
        avx2!(self, _mm256_sub_epi32(a, b))
    }

    #[inline(always)]
    fn shl(self, words: __m256i, n_bits: u32) -> __m256i {
        avx2!(self, _mm256_sllv_epi32(words, _mm256_set1_epi32(n_bits.cast_signed())))
    }

    #[inline(always)]
    fn shr(self, words: __m256i, n_bits: u32) -> __m256i {
        avx2!(self, _mm256_srlv_epi32(words, _mm256_set1_epi32(n_bits.cast_signed())))
    }

    #[inline(always)]
    fn sar(self, words: __m256i, n_bits: u32) -> __m256i {
        avx2!(self, _mm256_srav_epi32(words, _mm256_set1_epi32(n_bits.cast_signed())))
    }

    #[inline(always)]
    fn fifth_bits(self, bits: __m256i) -> [__m256i; 8] {
        avx2!(self, fifth_bits(bits))
    }

    #[inline(always)]
    fn dot_unsigned<const N: usize, const MAX: i32>(
        self,
        w: [__m256i; N],
        x: &[[i8; 4]; N],
    ) -> __m256i {
        self.0.sums_unsigned::<N, MAX>(w, self.splats(x))
    }

    #[inline(always)]
    fn dot_signed<const N: usize>(self, w: [__m256i; N], x: &[[i8; 4]; N]) -> __m256i {
        self.0.sums_signed(w, self.splats(x))
    }

    #[inline(always)]
    fn load_rows(self, rows: [&[u8; 16]; LANES]) -> [__m256i; 4] {
        avx2!(self, load_rows(rows))
    }

    const STRAIGHT: bool = true;

    #[inline(always)]
    fn load_straight(self, rows: [&[u8; 16]; LANES]) -> [__m256i; 4] {
        avx2!(self, load_straight(rows))
    }

    #[inline(always)]
    fn fifth_bits_straight(self, bits: __m256i) -> [__m256i; 8] {
        avx2!(self, fifth_bits_straight(bits))
    }

    #[inline(always)]
    fn dot_unsigned_straight<const N: usize, const MAX: i32>(
        self,
        w: [__m256i; N],
        x: &[[i8; 4]; N],
    ) -> __m256i {
        let [first, last] = self.sixteens(x);
        let mut sums = [first; 4];
        for (k, sum) in sums.iter_mut().enumerate() {
            let of_rows = match N {
                4 => self.0.sums_unsigned::<1, MAX>([w[k]], [first]),
                _ => self.0.sums_unsigned::<2, MAX>([w[k], w[k + 4]], [first, last]),
            };
            *sum = avx2!(self, keep_words(of_rows));
        }
        avx2!(self, gather(sums))
    }

    #[inline(always)]
    fn dot_signed_straight<const N: usize>(self, w: [__m256i; N], x: &[[i8; 4]; N]) -> __m256i {
        let [first, last] = self.sixteens(x);
        let mut sums = [first; 4];
        for (k, sum) in sums.iter_mut().enumerate() {
            let of_rows = match N {
                4 => self.0.sums_signed([w[k]], [first]),
                _ => self.0.sums_signed([w[k], w[k + 4]], [first, last]),
            };
            *sum = avx2!(self, keep_words(of_rows));
        }
        avx2!(self, gather(sums))
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 32]) -> __m256i {
        avx2!(self, load(bytes))
    }
}

impl<D: Dot> Ymm<D> {
    /// Each four bytes in every lane of a register.
    #[inline(always)]
    fn splats<const N: usize>(self, x: &[[i8; 4]; N]) -> [__m256i; N] {
        let mut splats = [avx2!(self, _mm256_setzero_si256()); N];
        for (splat, x) in splats.iter_mut().zip(x) {
            *splat = avx2!(self, splat_bytes(*x));
        }
        splats
    }

    /// The first sixteen and the last sixteen bytes, each in both halves of a register.
    #[inline(always)]
    fn sixteens<const N: usize>(self, x: &[[i8; 4]; N]) -> [__m256i; 2] {
        let sixteens = x.as_flattened().as_chunks::<16>().0;
        [avx2!(self, splat_16(&sixteens[0])), avx2!(self, splat_16(&sixteens[N / 4 - 1]))]
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes are valid, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn to_array(values: __m256) -> [f32; LANES] {
    let mut array = [0.0; LANES];
    // SAFETY: `array` has room for 8 values, and the store needs no alignment.
    unsafe { _mm256_storeu_ps(array.as_mut_ptr(), values) };
    array
}

#[inline]
#[target_feature(enable = "avx2")]
fn keep(mut acc: __m256) -> __m256 {
    // SAFETY: does nothing; the register comes out as it went in.
    unsafe { asm!("/* {0} */", inout(ymm_reg) acc, options(nomem, nostack, preserves_flags)) };
    acc
}

/// `words`, computed after those of an earlier call.
///
/// Left alone, the compiler loads all rows first, and keeps them until it comes to multiply them: 8 % slower.
#[inline]
#[target_feature(enable = "avx2")]
fn keep_words(mut words: __m256i) -> __m256i {
    // SAFETY: does nothing; the register comes out as it went in.
    unsafe { asm!("/* {0} */", inout(ymm_reg) words, options(nomem, nostack, preserves_flags)) };
    words
}

#[inline]
#[target_feature(enable = "avx2")]
fn setr(words: [u32; LANES]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = words;
    let two = |low: u32, high: u32| join(u64::from(low), u64::from(high)).cast_signed();
    _mm256_setr_epi64x(two(a, b), two(c, d), two(e, f), two(g, h))
}

/// Halves in a register of 128 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(halves: [u16; LANES]) -> __m128i {
    let [a, b, c, d, e, f, g, h] = halves;
    let two = |low: u16, high: u16| u64::from(low) | u64::from(high) << 16;
    let low = join(two(a, b), two(c, d));
    let high = join(two(e, f), two(g, h));
    _mm_set_epi64x(high.cast_signed(), low.cast_signed())
}

/// A word, and another one above it.
///
/// In a general register, and kept from being taken apart: the compiler would rather put every number into its lane by
/// itself, in the unit that is busy with turning words.
#[inline(always)]
fn join(low: u64, high: u64) -> u64 {
    let mut both = low | high << 32;
    // SAFETY: does nothing; the register comes out as it went in.
    unsafe { asm!("/* {0} */", inout(reg) both, options(pure, nomem, nostack, preserves_flags)) };
    both
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_halves(values: [u16; LANES]) -> __m256i {
    _mm256_cvtepu16_epi32(halves(values))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn f16_halves(values: [u16; LANES]) -> __m256 {
    _mm256_cvtph_ps(halves(values))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn f16(words: __m256i) -> __m256 {
    let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(words, words));
    _mm256_cvtph_ps(_mm256_castsi256_si128(packed))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn f16_pair(words: __m256i) -> [__m256; 2] {
    let low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
    let packed = _mm256_packus_epi32(low, _mm256_srli_epi32::<16>(words));
    // Low halves of rows 0–3, high ones of 0–3, low ones of 4–7, high ones of 4–7.
    let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
    let high = _mm256_extracti128_si256::<1>(packed);
    [_mm256_cvtph_ps(_mm256_castsi256_si128(packed)), _mm256_cvtph_ps(high)]
}

/// A byte of the bits goes to all bytes of a word, where each tests its own bit.
#[inline]
#[target_feature(enable = "avx2")]
fn fifth_bits(bits: __m256i) -> [__m256i; 8] {
    let own = [_mm256_set1_epi32(0x0804_0201), _mm256_set1_epi32(0x8040_2010_u32.cast_signed())];
    // The first byte of each lane, four times.
    let lanes = _mm_setr_epi32(0, 0x0404_0404, 0x0808_0808, 0x0c0c_0c0c);
    let first = _mm256_broadcastsi128_si256(lanes);
    let mut words = [bits; 8];
    for (k, word) in words.iter_mut().enumerate() {
        let byte = _mm256_add_epi8(first, _mm256_set1_epi8((k / 2) as i8));
        *word = tested(_mm256_shuffle_epi8(bits, byte), own[k % 2]);
    }
    words
}

/// The same: a byte of a lane goes to eight bytes, and the one above it to the eight after them.
#[inline]
#[target_feature(enable = "avx2")]
fn fifth_bits_straight(bits: __m256i) -> [__m256i; 8] {
    let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    let first = _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0, 0x0101_0101, 0x0101_0101));
    let mut words = [bits; 8];
    for (k, word) in words.iter_mut().enumerate() {
        let byte = _mm256_add_epi8(first, _mm256_set1_epi8((k % 4 * 4 + k / 4 * 2) as i8));
        *word = tested(_mm256_shuffle_epi8(bits, byte), own);
    }
    words
}

/// 16 in each byte that has its own bit.
#[inline]
#[target_feature(enable = "avx2")]
fn tested(bytes: __m256i, own: __m256i) -> __m256i {
    let set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, own), own);
    _mm256_and_si256(set, _mm256_set1_epi8(0x10))
}

/// Sixteen bytes of 8 rows: row k in the low half of vector k, row k + 4 in the high half.
#[inline]
#[target_feature(enable = "avx2")]
fn load_straight(rows: [&[u8; 16]; LANES]) -> [__m256i; 4] {
    let mut halves = [_mm256_setzero_si256(); 4];
    for (k, both) in halves.iter_mut().enumerate() {
        // SAFETY: 16 bytes are valid, and the load needs no alignment.
        let low = unsafe { _mm_loadu_si128(rows[k].as_ptr().cast()) };
        // SAFETY: the same.
        let high = unsafe { _mm_loadu_si128(rows[k + 4].as_ptr().cast()) };
        *both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
    }
    halves
}

/// Sixteen bytes in both halves of a register.
#[inline]
#[target_feature(enable = "avx2")]
fn splat_16(x: &[i8; 16]) -> __m256i {
    // SAFETY: 16 bytes are valid, and the load needs no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(x.as_ptr().cast()) })
}

/// Sums of the four words in each half of four vectors: of row k from the low half of vector k, of row k + 4 from the high half.
#[inline]
#[target_feature(enable = "avx2")]
fn gather([a, b, c, d]: [__m256i; 4]) -> __m256i {
    add_neighbours(add_neighbours(a, b), add_neighbours(c, d))
}

/// In each half, `[a0 + a1, a2 + a3, b0 + b1, b2 + b3]`.
#[inline]
#[target_feature(enable = "avx2")]
fn add_neighbours(a: __m256i, b: __m256i) -> __m256i {
    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    let even = _mm256_shuffle_ps::<0b10_00_10_00>(a, b);
    let odd = _mm256_shuffle_ps::<0b11_01_11_01>(a, b);
    _mm256_add_epi32(_mm256_castps_si256(even), _mm256_castps_si256(odd))
}

/// Four words of 8 rows, one vector each.
#[inline]
#[target_feature(enable = "avx2")]
fn load_rows(rows: [&[u8; 16]; LANES]) -> [__m256i; 4] {
    // A 4 × 4 transpose in each half.
    let [a, b, c, d] = load_straight(rows).map(|both| _mm256_castsi256_ps(both));
    let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    [
        _mm256_castps_si256(_mm256_shuffle_ps::<0b01_00_01_00>(ab_low, cd_low)),
        _mm256_castps_si256(_mm256_shuffle_ps::<0b11_10_11_10>(ab_low, cd_low)),
        _mm256_castps_si256(_mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high)),
        _mm256_castps_si256(_mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high)),
    ]
}
