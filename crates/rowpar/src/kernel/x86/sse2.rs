//! SSE2, which every x86-64 has: 8 rows in the lanes of two registers.

use std::arch::{asm, x86_64::*};

use crate::kernel::simd::{LANES, Simd, Task, assert_no_sign_bit, word_of};

/// Every x86-64 has it.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Sse2;

/// Calls a function that enables `sse2` at most.
macro_rules! sse2 {
    ($call:expr) => {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { $call }
    };
}

/// An operation on both halves of two operands.
macro_rules! both {
    ($op:ident, $a:expr, $b:expr) => {{
        let ([a_low, a_high], [b_low, b_high]) = ($a, $b);
        [sse2!($op(a_low, b_low)), sse2!($op(a_high, b_high))]
    }};
}

/// A move of both halves by a number of bits.
macro_rules! shift {
    ($op:ident, $words:expr, $n_bits:expr) => {{
        let count = sse2!(_mm_cvtsi32_si128($n_bits.cast_signed()));
        both!($op, $words, [count; 2])
    }};
}

impl Simd for Sse2 {
    type F = [__m128; 2];
    type I = [__m128i; 2];

    #[inline]
    fn enter<T: Task>(self, task: T) {
        task.run(self);
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F {
        [sse2!(_mm_set1_ps(value)); 2]
    }

    #[inline(always)]
    fn splat_word(self, word: u32) -> Self::I {
        [sse2!(_mm_set1_epi32(word.cast_signed())); 2]
    }

    #[inline(always)]
    fn words(self, words: [u32; LANES]) -> Self::I {
        let [a, b, c, d, e, f, g, h] = words.map(u32::cast_signed);
        [sse2!(_mm_setr_epi32(a, b, c, d)), sse2!(_mm_setr_epi32(e, f, g, h))]
    }

    #[inline(always)]
    fn halves(self, halves: [u16; LANES]) -> Self::I {
        sse2!(widen_halves(halves))
    }

    #[inline(always)]
    fn to_array(self, values: Self::F) -> [f32; LANES] {
        let mut array = [0.0; LANES];
        for (array, values) in array.as_chunks_mut::<4>().0.iter_mut().zip(values) {
            // SAFETY: `array` has room for 4 values, and the store needs no alignment.
            unsafe { _mm_storeu_ps(array.as_mut_ptr(), values) };
        }
        array
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        both!(_mm_add_ps, a, b)
    }

    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        both!(_mm_sub_ps, a, b)
    }

    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        both!(_mm_mul_ps, a, b)
    }

    #[inline(always)]
    fn keep(self, acc: Self::F) -> Self::F {
        let mut acc = acc;
        for half in &mut acc {
            // SAFETY: does nothing; the register comes out as it went in.
            unsafe {
                asm!("/* {0} */", inout(xmm_reg) * half, options(nomem, nostack, preserves_flags));
            }
        }
        acc
    }

    #[inline(always)]
    fn as_floats(self, words: Self::I) -> Self::F {
        [sse2!(_mm_castsi128_ps(words[0])), sse2!(_mm_castsi128_ps(words[1]))]
    }

    #[inline(always)]
    fn to_float(self, words: Self::I) -> Self::F {
        [sse2!(_mm_cvtepi32_ps(words[0])), sse2!(_mm_cvtepi32_ps(words[1]))]
    }

    #[inline(always)]
    fn f16(self, words: Self::I) -> Self::F {
        [sse2!(f16(words[0])), sse2!(f16(words[1]))]
    }

    #[inline(always)]
    fn and(self, a: Self::I, b: Self::I) -> Self::I {
        both!(_mm_and_si128, a, b)
    }

    #[inline(always)]
    fn or(self, a: Self::I, b: Self::I) -> Self::I {
        both!(_mm_or_si128, a, b)
    }

    #[inline(always)]
    fn sub_int(self, a: Self::I, b: Self::I) -> Self::I {
        both!(_mm_sub_epi32, a, b)
    }

    #[inline(always)]
    fn shl(self, words: Self::I, n_bits: u32) -> Self::I {
        shift!(_mm_sll_epi32, words, n_bits)
    }

    #[inline(always)]
    fn shr(self, words: Self::I, n_bits: u32) -> Self::I {
        shift!(_mm_srl_epi32, words, n_bits)
    }

    #[inline(always)]
    fn sar(self, words: Self::I, n_bits: u32) -> Self::I {
        shift!(_mm_sra_epi32, words, n_bits)
    }

    #[inline(always)]
    fn dot_unsigned<const N: usize, const MAX: i32>(
        self,
        w: [Self::I; N],
        x: &[[i8; 4]; N],
    ) -> Self::I {
        // Without a sign bit, unsigned bytes are signed ones.
        const { assert_no_sign_bit(MAX) };
        self.dot_signed(w, x)
    }

    #[inline(always)]
    fn dot_signed<const N: usize>(self, w: [Self::I; N], x: &[[i8; 4]; N]) -> Self::I {
        sse2!(dot_signed(w, x))
    }

    #[inline(always)]
    fn load_rows(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4] {
        let [a, b, c, d, e, f, g, h] = rows;
        let low = sse2!(transpose([a, b, c, d]));
        let high = sse2!(transpose([e, f, g, h]));
        [[low[0], high[0]], [low[1], high[1]], [low[2], high[2]], [low[3], high[3]]]
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 32]) -> Self::I {
        let [low, high]: &[[u8; 16]; 2] = bytes.as_chunks().0.try_into().expect("two halves");
        [sse2!(load(low)), sse2!(load(high))]
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn dot_signed<const N: usize>(w: [[__m128i; 2]; N], x: &[[i8; 4]; N]) -> [__m128i; 2] {
    // Sums of pairs of products: the pairs of rows 0 and 1, and of rows 2 and 3, of each half.
    let mut pairs = [[_mm_setzero_si128(); 2]; 2];
    for (w, x) in w.into_iter().zip(x) {
        let x = _mm_set1_epi32(word_of(*x).cast_signed());
        let x = _mm_srai_epi16::<8>(_mm_unpacklo_epi8(x, x));
        for (pairs, w) in pairs.iter_mut().zip(w) {
            let low = _mm_srai_epi16::<8>(_mm_unpacklo_epi8(w, w));
            let high = _mm_srai_epi16::<8>(_mm_unpackhi_epi8(w, w));
            pairs[0] = _mm_add_epi32(pairs[0], _mm_madd_epi16(low, x));
            pairs[1] = _mm_add_epi32(pairs[1], _mm_madd_epi16(high, x));
        }
    }
    [add_neighbours(pairs[0]), add_neighbours(pairs[1])]
}

#[inline]
#[target_feature(enable = "sse2")]
fn widen_halves(halves: [u16; LANES]) -> [__m128i; 2] {
    let [a, b, c, d, e, f, g, h] = halves.map(u16::cast_signed);
    let (halves, zero) = (_mm_setr_epi16(a, b, c, d, e, f, g, h), _mm_setzero_si128());
    [_mm_unpacklo_epi16(halves, zero), _mm_unpackhi_epi16(halves, zero)]
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are valid, and the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// `[a0 + a1, a2 + a3, b0 + b1, b2 + b3]` of two vectors of four.
#[inline]
#[target_feature(enable = "sse2")]
fn add_neighbours([a, b]: [__m128i; 2]) -> __m128i {
    let (a, b) = (_mm_castsi128_ps(a), _mm_castsi128_ps(b));
    let even = _mm_castps_si128(_mm_shuffle_ps::<0b10_00_10_00>(a, b));
    let odd = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(a, b));
    _mm_add_epi32(even, odd)
}

/// binary16 in the low half of each word: the exponent is moved by a product, which is exact, subnormals included.
#[inline]
#[target_feature(enable = "sse2")]
fn f16(words: __m128i) -> __m128 {
    let magnitude = _mm_slli_epi32::<13>(_mm_and_si128(words, _mm_set1_epi32(0x7fff)));
    let scaled =
        _mm_mul_ps(_mm_castsi128_ps(magnitude), _mm_set1_ps(f32::from_bits((127 + 112) << 23)));
    // Infinity and NaN keep the largest exponent.
    let special = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x0f7f_ffff));
    let exponent = _mm_and_si128(special, _mm_set1_epi32(0x7f80_0000));
    let sign = _mm_slli_epi32::<16>(_mm_and_si128(words, _mm_set1_epi32(0x8000)));
    _mm_or_ps(scaled, _mm_castsi128_ps(_mm_or_si128(exponent, sign)))
}

/// Four words of four rows, one vector each.
#[inline]
#[target_feature(enable = "sse2")]
fn transpose(rows: [&[u8; 16]; 4]) -> [__m128i; 4] {
    let [a, b, c, d] = rows;
    let [a, b, c, d] = [load(a), load(b), load(c), load(d)];
    let (ab_low, ab_high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    let (cd_low, cd_high) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    [
        _mm_unpacklo_epi64(ab_low, cd_low),
        _mm_unpackhi_epi64(ab_low, cd_low),
        _mm_unpacklo_epi64(ab_high, cd_high),
        _mm_unpackhi_epi64(ab_high, cd_high),
    ]
}
