//! wasm32 with `simd128`: 8 rows in the lanes of two vectors.
//!
//! Every operation is fixed to the bit, and there is no floating-point environment. (Relaxed SIMD is not: it is not used.)

use std::arch::wasm32::*;

use crate::kernel::simd::{LANES, Simd, Task, assert_no_sign_bit, word_of};

/// A build with `simd128` runs nowhere else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simd128;

/// An operation on both halves of two operands.
macro_rules! both {
    ($op:ident, $a:expr, $b:expr) => {{
        let ([a_low, a_high], [b_low, b_high]) = ($a, $b);
        [$op(a_low, b_low), $op(a_high, b_high)]
    }};
}

impl Simd for Simd128 {
    type F = [v128; 2];
    type I = [v128; 2];

    #[inline]
    fn enter<T: Task>(self, task: T) {
        task.run(self);
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F {
        [f32x4_splat(value); 2]
    }

    #[inline(always)]
    fn splat_word(self, word: u32) -> Self::I {
        [u32x4_splat(word); 2]
    }

    #[inline(always)]
    fn words(self, words: [u32; LANES]) -> Self::I {
        let [a, b, c, d, e, f, g, h] = words;
        [u32x4(a, b, c, d), u32x4(e, f, g, h)]
    }

    #[inline(always)]
    fn halves(self, halves: [u16; LANES]) -> Self::I {
        let [a, b, c, d, e, f, g, h] = halves;
        let halves = u16x8(a, b, c, d, e, f, g, h);
        [u32x4_extend_low_u16x8(halves), u32x4_extend_high_u16x8(halves)]
    }

    #[inline(always)]
    fn to_array(self, values: Self::F) -> [f32; LANES] {
        let mut array = [0.0; LANES];
        for (array, values) in array.as_chunks_mut::<4>().0.iter_mut().zip(values) {
            // SAFETY: `array` has room for 4 values, and the store needs no alignment.
            unsafe { v128_store(array.as_mut_ptr().cast(), values) };
        }
        array
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        both!(f32x4_add, a, b)
    }

    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        both!(f32x4_sub, a, b)
    }

    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        both!(f32x4_mul, a, b)
    }

    #[inline(always)]
    fn as_floats(self, words: Self::I) -> Self::F {
        words
    }

    #[inline(always)]
    fn to_float(self, [low, high]: Self::I) -> Self::F {
        [f32x4_convert_i32x4(low), f32x4_convert_i32x4(high)]
    }

    #[inline(always)]
    fn f16(self, [low, high]: Self::I) -> Self::F {
        [f16(low), f16(high)]
    }

    #[inline(always)]
    fn and(self, a: Self::I, b: Self::I) -> Self::I {
        both!(v128_and, a, b)
    }

    #[inline(always)]
    fn or(self, a: Self::I, b: Self::I) -> Self::I {
        both!(v128_or, a, b)
    }

    #[inline(always)]
    fn sub_int(self, a: Self::I, b: Self::I) -> Self::I {
        both!(i32x4_sub, a, b)
    }

    #[inline(always)]
    fn shl(self, [low, high]: Self::I, n_bits: u32) -> Self::I {
        [u32x4_shl(low, n_bits), u32x4_shl(high, n_bits)]
    }

    #[inline(always)]
    fn shr(self, [low, high]: Self::I, n_bits: u32) -> Self::I {
        [u32x4_shr(low, n_bits), u32x4_shr(high, n_bits)]
    }

    #[inline(always)]
    fn sar(self, [low, high]: Self::I, n_bits: u32) -> Self::I {
        [i32x4_shr(low, n_bits), i32x4_shr(high, n_bits)]
    }

    #[inline(always)]
    fn fifth_bits(self, bits: Self::I) -> [Self::I; 8] {
        fifth_bits(bits)
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
        // Sums of pairs of products: the pairs of rows 0 and 1, and of rows 2 and 3, of each half.
        let mut pairs = [[u32x4_splat(0); 2]; 2];
        for (w, x) in w.into_iter().zip(x) {
            let x = i16x8_extend_low_i8x16(u32x4_splat(word_of(*x)));
            for ([low, high], w) in pairs.iter_mut().zip(w) {
                *low = i32x4_add(*low, i32x4_dot_i16x8(i16x8_extend_low_i8x16(w), x));
                *high = i32x4_add(*high, i32x4_dot_i16x8(i16x8_extend_high_i8x16(w), x));
            }
        }
        [add_neighbours(pairs[0]), add_neighbours(pairs[1])]
    }

    #[inline(always)]
    fn load_rows(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4] {
        let [a, b, c, d, e, f, g, h] = rows;
        let low = transpose([a, b, c, d]);
        let high = transpose([e, f, g, h]);
        [[low[0], high[0]], [low[1], high[1]], [low[2], high[2]], [low[3], high[3]]]
    }

    const STRAIGHT: bool = true;

    /// Rows 0 and 1, rows 2 and 3, and so on.
    #[inline(always)]
    fn load_straight(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4] {
        let [a, b, c, d, e, f, g, h] = rows;
        [[load(a), load(b)], [load(c), load(d)], [load(e), load(f)], [load(g), load(h)]]
    }

    #[inline(always)]
    fn fifth_bits_straight(self, bits: Self::I) -> [Self::I; 8] {
        fifth_bits_straight(bits)
    }

    #[inline(always)]
    fn dot_unsigned_straight<const N: usize, const MAX: i32>(
        self,
        w: [Self::I; N],
        x: &[[i8; 4]; N],
    ) -> Self::I {
        dot_straight::<N, false>(w, x)
    }

    #[inline(always)]
    fn dot_signed_straight<const N: usize>(self, w: [Self::I; N], x: &[[i8; 4]; N]) -> Self::I {
        dot_straight::<N, true>(w, x)
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 4 * LANES]) -> Self::I {
        let [low, high]: &[[u8; 16]; 2] = bytes.as_chunks().0.try_into().expect("two halves");
        [load(low), load(high)]
    }
}

#[inline(always)]
fn load(bytes: &[u8; 16]) -> v128 {
    // SAFETY: 16 bytes are valid, and the load needs no alignment.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}

/// Products of bytes as they lie.
#[inline(always)]
fn dot_straight<const N: usize, const SIGNED: bool>(
    w: [[v128; 2]; N],
    x: &[[i8; 4]; N],
) -> [v128; 2] {
    let sixteens = x.as_flattened().as_chunks::<16>().0;
    let (first, last) = (load_widened(&sixteens[0]), load_widened(&sixteens[N / 4 - 1]));
    let mut sums = [[first[0]; 2]; 4];
    for (k, pair) in sums.iter_mut().enumerate() {
        for (row, sum) in pair.iter_mut().enumerate() {
            *sum = products::<SIGNED>(w[k][row], first);
            if N == 8 {
                *sum = i32x4_add(*sum, products::<SIGNED>(w[k + 4][row], last));
            }
        }
    }
    let [a, b, c, d] = sums;
    let low = add_neighbours([add_neighbours(a), add_neighbours(b)]);
    let high = add_neighbours([add_neighbours(c), add_neighbours(d)]);
    if SIGNED { [i32x4_shr(low, 8), i32x4_shr(high, 8)] } else { [low, high] }
}

/// Sums of four products of sixteen bytes. Signed weights come 256-fold: as the upper of two bytes they have their sign already,
/// where x86-64 needs two instructions to extend the last eight, and 32 products of 128 · 127, 256-fold, fit 32 bits.
#[inline(always)]
fn products<const SIGNED: bool>(w: v128, [first, last]: [v128; 2]) -> v128 {
    let zero = u32x4_splat(0);
    let (a, b) = if SIGNED { (zero, w) } else { (w, zero) };
    let low = u8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b);
    let high = u8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b);
    i32x4_add(i32x4_dot_i16x8(low, first), i32x4_dot_i16x8(high, last))
}

/// Sixteen signed bytes, widened to 16 bits.
#[inline(always)]
fn load_widened(x: &[i8; 16]) -> [v128; 2] {
    // SAFETY: 16 bytes are valid, and the load needs no alignment.
    let x = unsafe { v128_load(x.as_ptr().cast()) };
    [i16x8_extend_low_i8x16(x), i16x8_extend_high_i8x16(x)]
}

/// `[a0 + a1, a2 + a3, b0 + b1, b2 + b3]` of two vectors of four.
#[inline(always)]
fn add_neighbours([a, b]: [v128; 2]) -> v128 {
    i32x4_add(u32x4_shuffle::<0, 2, 4, 6>(a, b), u32x4_shuffle::<1, 3, 5, 7>(a, b))
}

/// binary16 in the low half of each word: the exponent is moved by a product, which is exact, subnormals included.
#[inline(always)]
fn f16(words: v128) -> v128 {
    let magnitude = u32x4_shl(v128_and(words, u32x4_splat(0x7fff)), 13);
    let scaled = f32x4_mul(magnitude, f32x4_splat(f32::from_bits((127 + 112) << 23)));
    // Infinity and NaN keep the largest exponent.
    let special = i32x4_gt(magnitude, u32x4_splat(0x0f7f_ffff));
    let exponent = v128_and(special, u32x4_splat(0x7f80_0000));
    let sign = u32x4_shl(v128_and(words, u32x4_splat(0x8000)), 16);
    v128_or(scaled, v128_or(exponent, sign))
}

/// A byte of the bits goes to all bytes of a word, where each tests its own bit.
#[inline(always)]
fn fifth_bits(bits: [v128; 2]) -> [[v128; 2]; 8] {
    let own = [u32x4_splat(0x0804_0201), u32x4_splat(0x8040_2010)];
    // The first byte of each lane, four times.
    let first = u32x4(0, 0x0404_0404, 0x0808_0808, 0x0c0c_0c0c);
    let mut words = [bits; 8];
    for (k, word) in words.iter_mut().enumerate() {
        let byte = u8x16_add(first, u8x16_splat((k / 2) as u8));
        for half in word {
            let spread = u8x16_swizzle(*half, byte);
            *half = tested(spread, own[k % 2]);
        }
    }
    words
}

/// A byte of the bits goes to eight bytes, in steps: indices for a [`u8x16_swizzle`] would be others for each of four rows, which
/// took more registers than there are.
#[inline(always)]
fn fifth_bits_straight(bits: [v128; 2]) -> [[v128; 2]; 8] {
    let own = u64x2_splat(0x8040_2010_0804_0201);
    let mut words = [bits; 8];
    for (half, bits) in bits.into_iter().enumerate() {
        for (row, bytes) in each_four_times(bits).into_iter().enumerate() {
            let (pair, of_pair) = (2 * half + row / 2, row % 2);
            words[pair][of_pair] = tested(u32x4_shuffle::<0, 0, 1, 1>(bytes, bytes), own);
            words[pair + 4][of_pair] = tested(u32x4_shuffle::<2, 2, 3, 3>(bytes, bytes), own);
        }
    }
    words
}

/// The bytes of four words, each four times: a vector for a word.
#[inline(always)]
fn each_four_times(words: v128) -> [v128; 4] {
    let low = u8x16_shuffle::<0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7>(words, words);
    let high =
        u8x16_shuffle::<8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15>(words, words);
    [
        u16x8_shuffle::<0, 0, 1, 1, 2, 2, 3, 3>(low, low),
        u16x8_shuffle::<4, 4, 5, 5, 6, 6, 7, 7>(low, low),
        u16x8_shuffle::<0, 0, 1, 1, 2, 2, 3, 3>(high, high),
        u16x8_shuffle::<4, 4, 5, 5, 6, 6, 7, 7>(high, high),
    ]
}

/// 16 in each byte that has its own bit.
#[inline(always)]
fn tested(bytes: v128, own: v128) -> v128 {
    v128_and(u8x16_eq(v128_and(bytes, own), own), u8x16_splat(0x10))
}

/// Four words of four rows, one vector each.
#[inline(always)]
fn transpose(rows: [&[u8; 16]; 4]) -> [v128; 4] {
    let [a, b, c, d] = rows;
    let [a, b, c, d] = [load(a), load(b), load(c), load(d)];
    let (ab_low, ab_high) = (u32x4_shuffle::<0, 4, 1, 5>(a, b), u32x4_shuffle::<2, 6, 3, 7>(a, b));
    let (cd_low, cd_high) = (u32x4_shuffle::<0, 4, 1, 5>(c, d), u32x4_shuffle::<2, 6, 3, 7>(c, d));
    [
        u64x2_shuffle::<0, 2>(ab_low, cd_low),
        u64x2_shuffle::<1, 3>(ab_low, cd_low),
        u64x2_shuffle::<0, 2>(ab_high, cd_high),
        u64x2_shuffle::<1, 3>(ab_high, cd_high),
    ]
}
