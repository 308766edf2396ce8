//! AVX2 and F16C: 8 rows in the 8 lanes of a register.
//!
//! Never fused: Rust does not contract, also where FMA is enabled, as it is with AVX-512.
//!
//! Functions of one intrinsic or a few are safe where they enable what they need; the methods of the token call them.

use std::arch::x86_64::*;

use super::words;
use crate::kernel::simd::{LANES, Simd, Task, words_in_16_bits};

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
    /// The sums of products of unsigned bytes of at most `MAX` with signed ones within ±127, of the four bytes in a lane and the
    /// same lane of all vectors.
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
        avx2!(self, words::setr(words))
    }

    #[inline(always)]
    fn halves(self, halves: [u16; LANES]) -> __m256i {
        avx2!(self, words::widen_halves(halves))
    }

    #[inline(always)]
    fn to_array(self, values: __m256) -> [f32; LANES] {
        avx2!(self, words::to_array(values))
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
        avx2!(self, words::keep(acc))
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
        avx2!(self, words::f16(words))
    }

    #[inline(always)]
    fn f16_pair(self, words: __m256i) -> [__m256; 2] {
        avx2!(self, words::f16_pair(words))
    }

    #[inline(always)]
    fn f16_halves(self, halves: [u16; LANES]) -> __m256 {
        avx2!(self, words::f16_halves(halves))
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
        avx2!(self, words::fifth_bits(bits))
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
        avx2!(self, words::load_rows(rows))
    }

    const STRAIGHT: bool = true;

    #[inline(always)]
    fn load_straight(self, rows: [&[u8; 16]; LANES]) -> [__m256i; 4] {
        avx2!(self, words::load_straight(rows))
    }

    #[inline(always)]
    fn fifth_bits_straight(self, bits: __m256i) -> [__m256i; 8] {
        avx2!(self, words::fifth_bits_straight(bits))
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
            *sum = avx2!(self, words::keep_words(of_rows));
        }
        avx2!(self, words::gather(sums))
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
            *sum = avx2!(self, words::keep_words(of_rows));
        }
        avx2!(self, words::gather(sums))
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 32]) -> __m256i {
        avx2!(self, words::load(bytes))
    }
}

impl<D: Dot> Ymm<D> {
    /// Each four bytes in every lane of a register.
    #[inline(always)]
    fn splats<const N: usize>(self, x: &[[i8; 4]; N]) -> [__m256i; N] {
        let mut splats = [avx2!(self, _mm256_setzero_si256()); N];
        for (splat, x) in splats.iter_mut().zip(x) {
            *splat = avx2!(self, words::splat_bytes(*x));
        }
        splats
    }

    /// The first sixteen and the last sixteen bytes, each in both halves of a register.
    #[inline(always)]
    fn sixteens<const N: usize>(self, x: &[[i8; 4]; N]) -> [__m256i; 2] {
        const { assert!(N == 4 || N == 8, "sixteen or 32 columns") };
        let sixteens = x.as_flattened().as_chunks::<16>().0;
        [
            avx2!(self, words::splat_16(&sixteens[0])),
            avx2!(self, words::splat_16(&sixteens[N / 4 - 1])),
        ]
    }
}
