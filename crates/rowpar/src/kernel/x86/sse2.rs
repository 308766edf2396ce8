//! SSE2, which every x86-64 has: 8 rows in the lanes of two registers.

use std::arch::{asm, x86_64::*};

use crate::kernel::simd::{LANES, Simd, Task, word_of};

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
        self.dot::<N, false>(w, x)
    }

    #[inline(always)]
    fn dot_signed<const N: usize>(self, w: [Self::I; N], x: &[[i8; 4]; N]) -> Self::I {
        self.dot::<N, true>(w, x)
    }

    #[inline(always)]
    fn load_rows(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4] {
        let [a, b, c, d, e, f, g, h] = rows;
        let low = sse2!(transpose([a, b, c, d]));
        let high = sse2!(transpose([e, f, g, h]));
        [[low[0], high[0]], [low[1], high[1]], [low[2], high[2]], [low[3], high[3]]]
    }

    const STRAIGHT: bool = true;

    /// Rows 0 and 1, rows 2 and 3, and so on.
    #[inline(always)]
    fn load_straight(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4] {
        let [a, b, c, d, e, f, g, h] = rows;
        [
            [sse2!(load(a)), sse2!(load(b))],
            [sse2!(load(c)), sse2!(load(d))],
            [sse2!(load(e)), sse2!(load(f))],
            [sse2!(load(g)), sse2!(load(h))],
        ]
    }

    #[inline(always)]
    fn fifth_bits_straight(self, bits: Self::I) -> [Self::I; 8] {
        let mut words = [bits; 8];
        for (half, bits) in bits.into_iter().enumerate() {
            for (row, bytes) in sse2!(each_four_times(bits)).into_iter().enumerate() {
                let (pair, of_pair) = (2 * half + row / 2, row % 2);
                let [first, last] = sse2!(fifth_bits_of_row(bytes));
                words[pair][of_pair] = first;
                words[pair + 4][of_pair] = last;
            }
        }
        words
    }

    #[inline(always)]
    fn dot_unsigned_straight<const N: usize, const MAX: i32>(
        self,
        w: [Self::I; N],
        x: &[[i8; 4]; N],
    ) -> Self::I {
        self.dot_straight::<N, false>(w, x)
    }

    #[inline(always)]
    fn dot_signed_straight<const N: usize>(self, w: [Self::I; N], x: &[[i8; 4]; N]) -> Self::I {
        self.dot_straight::<N, true>(w, x)
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 32]) -> Self::I {
        let [low, high]: &[[u8; 16]; 2] = bytes.as_chunks().0.try_into().expect("two halves");
        [sse2!(load(low)), sse2!(load(high))]
    }
}

/// Products of bytes. Loops are in functions that are always inlined; a function that enables a feature cannot be, and with a loop
/// in it often is not.
impl Sse2 {
    /// Products of words in lanes.
    #[inline(always)]
    fn dot<const N: usize, const SIGNED: bool>(
        self,
        w: [[__m128i; 2]; N],
        x: &[[i8; 4]; N],
    ) -> [__m128i; 2] {
        // Sums of pairs of products: the pairs of rows 0 and 1, and of rows 2 and 3, of each half.
        let mut pairs = [[sse2!(_mm_setzero_si128()); 2]; 2];
        for (w, x) in w.into_iter().zip(x) {
            let x = sse2!(splat_widened(*x));
            for (pairs, w) in pairs.iter_mut().zip(w) {
                for (pairs, w) in pairs.iter_mut().zip(self.widened::<SIGNED>(w)) {
                    let more = sse2!(_mm_madd_epi16(w, x));
                    *pairs = sse2!(_mm_add_epi32(*pairs, more));
                }
            }
        }
        let [low, high] = pairs;
        self.unscaled::<SIGNED>([sse2!(add_neighbours(low)), sse2!(add_neighbours(high))])
    }

    /// Products of bytes as they lie.
    #[inline(always)]
    fn dot_straight<const N: usize, const SIGNED: bool>(
        self,
        w: [[__m128i; 2]; N],
        x: &[[i8; 4]; N],
    ) -> [__m128i; 2] {
        let sixteens = x.as_flattened().as_chunks::<16>().0;
        let (first, last) = (&sixteens[0], &sixteens[N / 4 - 1]);
        let (first, last) = (sse2!(load_widened(first)), sse2!(load_widened(last)));
        let mut pairs = [[first[0]; 2]; 4];
        for (k, pair) in pairs.iter_mut().enumerate() {
            for (row, sum) in pair.iter_mut().enumerate() {
                *sum = self.products::<SIGNED>(w[k][row], first);
                if N == 8 {
                    let more = self.products::<SIGNED>(w[k + 4][row], last);
                    *sum = sse2!(_mm_add_epi32(*sum, more));
                }
            }
        }
        let [a, b, c, d] = pairs;
        let low = [sse2!(add_neighbours(a)), sse2!(add_neighbours(b))];
        let high = [sse2!(add_neighbours(c)), sse2!(add_neighbours(d))];
        self.unscaled::<SIGNED>([sse2!(add_neighbours(low)), sse2!(add_neighbours(high))])
    }

    /// Sums of four products of sixteen bytes.
    #[inline(always)]
    fn products<const SIGNED: bool>(self, w: __m128i, x: [__m128i; 2]) -> __m128i {
        let w = self.widened::<SIGNED>(w);
        let (low, high) = (sse2!(_mm_madd_epi16(w[0], x[0])), sse2!(_mm_madd_epi16(w[1], x[1])));
        sse2!(_mm_add_epi32(low, high))
    }

    /// Sixteen bytes, widened to 16 bits. Signed ones come 256-fold: as the upper of two bytes they have their sign already, and
    /// 32 products of 128 · 127, 256-fold, fit 32 bits.
    #[inline(always)]
    fn widened<const SIGNED: bool>(self, w: __m128i) -> [__m128i; 2] {
        let zero = sse2!(_mm_setzero_si128());
        let (low, high) = if SIGNED { (zero, w) } else { (w, zero) };
        [sse2!(_mm_unpacklo_epi8(low, high)), sse2!(_mm_unpackhi_epi8(low, high))]
    }

    /// Sums of products of what [`widened`](Self::widened) made.
    #[inline(always)]
    fn unscaled<const SIGNED: bool>(self, [low, high]: [__m128i; 2]) -> [__m128i; 2] {
        if SIGNED {
            [sse2!(_mm_srai_epi32::<8>(low)), sse2!(_mm_srai_epi32::<8>(high))]
        } else {
            [low, high]
        }
    }
}

/// Four bytes in both halves of a register, widened to 16 bits.
#[inline]
#[target_feature(enable = "sse2")]
fn splat_widened(x: [i8; 4]) -> __m128i {
    let x = _mm_set1_epi32(word_of(x).cast_signed());
    _mm_srai_epi16::<8>(_mm_unpacklo_epi8(x, x))
}

/// Sixteen bytes, widened to 16 bits.
#[inline]
#[target_feature(enable = "sse2")]
fn load_widened(x: &[i8; 16]) -> [__m128i; 2] {
    // SAFETY: 16 bytes are valid, and the load needs no alignment.
    let x = unsafe { _mm_loadu_si128(x.as_ptr().cast()) };
    let (low, high) = (_mm_unpacklo_epi8(x, x), _mm_unpackhi_epi8(x, x));
    [_mm_srai_epi16::<8>(low), _mm_srai_epi16::<8>(high)]
}

/// The bytes of four words, each four times: a vector for a word.
#[inline]
#[target_feature(enable = "sse2")]
fn each_four_times(words: __m128i) -> [__m128i; 4] {
    let (low, high) = (_mm_unpacklo_epi8(words, words), _mm_unpackhi_epi8(words, words));
    [
        _mm_unpacklo_epi16(low, low),
        _mm_unpackhi_epi16(low, low),
        _mm_unpacklo_epi16(high, high),
        _mm_unpackhi_epi16(high, high),
    ]
}

/// A byte goes to eight bytes, where each tests its own bit.
#[inline]
#[target_feature(enable = "sse2")]
fn fifth_bits_of_row(bytes: __m128i) -> [__m128i; 2] {
    let own = _mm_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    let (first, last) =
        (_mm_shuffle_epi32::<0b01_01_00_00>(bytes), _mm_shuffle_epi32::<0b11_11_10_10>(bytes));
    let fifth = _mm_set1_epi8(0x10);
    [
        _mm_and_si128(_mm_cmpeq_epi8(_mm_and_si128(first, own), own), fifth),
        _mm_and_si128(_mm_cmpeq_epi8(_mm_and_si128(last, own), own), fifth),
    ]
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
