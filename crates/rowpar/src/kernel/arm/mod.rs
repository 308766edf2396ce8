//! aarch64 with NEON: 8 rows in the lanes of two registers of 128 bits.
//!
//! Never fused: products and sums are instructions of their own, and Rust does not contract.
//!
//! Functions of one intrinsic or a few are safe where they enable what they need; the methods of the token call them.

use std::arch::{aarch64::*, asm};

use crate::kernel::simd::{LANES, Simd, Task, assert_no_sign_bit, word_of};

/// Calls a function that enables `neon` at most.
macro_rules! neon {
    ($token:expr, $call:expr) => {{
        let _: Arm<_> = $token;
        // SAFETY: K1: the token is of a CPU with NEON.
        unsafe { $call }
    }};
}

mod dot;
mod load;

use self::dot::Dot;
pub(super) use self::dot::{Dotprod, Neon};

/// NEON, and what `D` stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm<D: Dot>(pub(super) D);

/// An operation on both halves of two operands.
macro_rules! both {
    ($token:expr, $op:ident, $a:expr, $b:expr) => {{
        let ([a_low, a_high], [b_low, b_high]) = ($a, $b);
        [neon!($token, $op(a_low, b_low)), neon!($token, $op(a_high, b_high))]
    }};
}

impl<D: Dot> Simd for Arm<D> {
    type F = [float32x4_t; 2];
    type I = [uint32x4_t; 2];

    #[inline(always)]
    fn enter<T: Task>(self, task: T) {
        self.0.enter(task);
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F {
        [neon!(self, vdupq_n_f32(value)); 2]
    }

    #[inline(always)]
    fn splat_word(self, word: u32) -> Self::I {
        [neon!(self, vdupq_n_u32(word)); 2]
    }

    #[inline(always)]
    fn words(self, words: [u32; LANES]) -> Self::I {
        neon!(self, load::words(words))
    }

    #[inline(always)]
    fn halves(self, halves: [u16; LANES]) -> Self::I {
        neon!(self, load::halves(halves))
    }

    #[inline(always)]
    fn to_array(self, values: Self::F) -> [f32; LANES] {
        neon!(self, load::to_array(values))
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        both!(self, vaddq_f32, a, b)
    }

    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        both!(self, vsubq_f32, a, b)
    }

    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        both!(self, vmulq_f32, a, b)
    }

    #[inline(always)]
    fn keep(self, acc: Self::F) -> Self::F {
        let mut acc = acc;
        for half in &mut acc {
            // SAFETY: does nothing; the register comes out as it went in.
            unsafe {
                asm!("/* {0:v} */", inout(vreg) * half, options(nomem, nostack, preserves_flags));
            }
        }
        acc
    }

    #[inline(always)]
    fn as_floats(self, words: Self::I) -> Self::F {
        let [low, high] = words;
        [neon!(self, vreinterpretq_f32_u32(low)), neon!(self, vreinterpretq_f32_u32(high))]
    }

    #[inline(always)]
    fn to_float(self, words: Self::I) -> Self::F {
        let [low, high] = words;
        [neon!(self, to_float(low)), neon!(self, to_float(high))]
    }

    #[inline(always)]
    fn f16(self, words: Self::I) -> Self::F {
        neon!(self, load::f16(words))
    }

    #[inline(always)]
    fn f16_pair(self, words: Self::I) -> [Self::F; 2] {
        neon!(self, load::f16_pair(words))
    }

    #[inline(always)]
    fn f16_halves(self, halves: [u16; LANES]) -> Self::F {
        neon!(self, load::f16_halves(halves))
    }

    #[inline(always)]
    fn and(self, a: Self::I, b: Self::I) -> Self::I {
        both!(self, vandq_u32, a, b)
    }

    #[inline(always)]
    fn or(self, a: Self::I, b: Self::I) -> Self::I {
        both!(self, vorrq_u32, a, b)
    }

    #[inline(always)]
    fn sub_int(self, a: Self::I, b: Self::I) -> Self::I {
        both!(self, vsubq_u32, a, b)
    }

    #[inline(always)]
    fn shl(self, words: Self::I, n_bits: u32) -> Self::I {
        let by = neon!(self, vdupq_n_s32(n_bits.cast_signed()));
        both!(self, vshlq_u32, words, [by; 2])
    }

    #[inline(always)]
    fn shr(self, words: Self::I, n_bits: u32) -> Self::I {
        let by = neon!(self, vdupq_n_s32(-n_bits.cast_signed()));
        both!(self, vshlq_u32, words, [by; 2])
    }

    #[inline(always)]
    fn sar(self, words: Self::I, n_bits: u32) -> Self::I {
        let by = neon!(self, vdupq_n_s32(-n_bits.cast_signed()));
        both!(self, shift_signed, words, [by; 2])
    }

    /// A byte of the bits goes to all bytes of a word, where each tests its own bit.
    #[inline(always)]
    fn fifth_bits(self, bits: Self::I) -> [Self::I; 8] {
        let own = [0x0804_0201, 0x8040_2010];
        // The first byte of each lane, four times.
        let lanes = [0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12];
        let mut words = [bits; 8];
        for (k, word) in words.iter_mut().enumerate() {
            let own = neon!(self, vdupq_n_u32(own[k % 2]));
            let bytes = neon!(self, load::moved(&lanes, (k / 2) as u8));
            for half in word {
                *half = neon!(self, load::tested(*half, bytes, own));
            }
        }
        words
    }

    #[inline(always)]
    fn dot_unsigned<const N: usize, const MAX: i32>(
        self,
        w: [Self::I; N],
        x: &[[i8; 4]; N],
    ) -> Self::I {
        // Without a sign bit, unsigned bytes are signed ones.
        const { assert_no_sign_bit(MAX) };
        self.0.dot::<N, MAX>(w, x)
    }

    #[inline(always)]
    fn dot_signed<const N: usize>(self, w: [Self::I; N], x: &[[i8; 4]; N]) -> Self::I {
        self.0.dot::<N, 128>(w, x)
    }

    #[inline(always)]
    fn load_rows(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4] {
        let [a, b, c, d, e, f, g, h] = rows;
        let low = self.transpose([a, b, c, d]);
        let high = self.transpose([e, f, g, h]);
        [[low[0], high[0]], [low[1], high[1]], [low[2], high[2]], [low[3], high[3]]]
    }

    const STRAIGHT: bool = true;

    /// Rows 0 and 1, rows 2 and 3, and so on.
    #[inline(always)]
    fn load_straight(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4] {
        let [a, b, c, d, e, f, g, h] = rows;
        let [a, b, c, d] = self.load_four_rows([a, b, c, d]);
        let [e, f, g, h] = self.load_four_rows([e, f, g, h]);
        [[a, b], [c, d], [e, f], [g, h]]
    }

    /// A byte of the bits goes to eight bytes, and the one above it to the eight after them.
    #[inline(always)]
    fn fifth_bits_straight(self, bits: Self::I) -> [Self::I; 8] {
        let own = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        let own = neon!(self, load::load_four(&own));
        let two = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
        let [first, last] = [neon!(self, load::moved(&two, 0)), neon!(self, load::moved(&two, 2))];
        let mut words = [bits; 8];
        for (half, bits) in bits.into_iter().enumerate() {
            // Each row's by themselves: with indices for each of four rows, there were too few registers.
            for (row, bits) in neon!(self, load::splats(bits)).into_iter().enumerate() {
                let (pair, of_pair) = (2 * half + row / 2, row % 2);
                words[pair][of_pair] = neon!(self, load::tested(bits, first, own));
                words[pair + 4][of_pair] = neon!(self, load::tested(bits, last, own));
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
        const { assert_no_sign_bit(MAX) };
        self.dot_straight::<N, MAX>(w, x)
    }

    #[inline(always)]
    fn dot_signed_straight<const N: usize>(self, w: [Self::I; N], x: &[[i8; 4]; N]) -> Self::I {
        self.dot_straight::<N, 128>(w, x)
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 4 * LANES]) -> Self::I {
        neon!(self, load::load(bytes))
    }
}

/// What has loops, or is long, is always inlined. A function that enables `neon` cannot be, and of such a size it is not.
impl<D: Dot> Arm<D> {
    /// Products of bytes as they lie.
    #[inline(always)]
    fn dot_straight<const N: usize, const MAX: i32>(
        self,
        w: [[uint32x4_t; 2]; N],
        x: &[[i8; 4]; N],
    ) -> [uint32x4_t; 2] {
        let sixteens = x.as_flattened().as_chunks::<16>().0;
        let first = neon!(self, load::load_signed(&sixteens[0]));
        let last = neon!(self, load::load_signed(&sixteens[N / 4 - 1]));
        let mut sums = [neon!(self, vdupq_n_u32(0)); 4];
        for (k, sum) in sums.iter_mut().enumerate() {
            let [a, b] = match N {
                4 => self.0.partial_sums::<1, MAX>([w[k]], [first]),
                _ => self.0.partial_sums::<2, MAX>([w[k], w[k + 4]], [first, last]),
            };
            *sum = neon!(self, vpaddq_u32(a, b));
        }
        let [ab, cd, ef, gh] = sums;
        [neon!(self, vpaddq_u32(ab, cd)), neon!(self, vpaddq_u32(ef, gh))]
    }

    #[inline(always)]
    fn load_four_rows(self, rows: [&[u8; 16]; 4]) -> [uint32x4_t; 4] {
        let [a, b, c, d] = rows;
        [
            neon!(self, load::load_four(a)),
            neon!(self, load::load_four(b)),
            neon!(self, load::load_four(c)),
            neon!(self, load::load_four(d)),
        ]
    }

    /// Four words of four rows, one vector each.
    #[inline(always)]
    fn transpose(self, rows: [&[u8; 16]; 4]) -> [uint32x4_t; 4] {
        let [a, b, c, d] = self.load_four_rows(rows);
        let (ab_even, ab_odd) = (neon!(self, vtrn1q_u32(a, b)), neon!(self, vtrn2q_u32(a, b)));
        let (cd_even, cd_odd) = (neon!(self, vtrn1q_u32(c, d)), neon!(self, vtrn2q_u32(c, d)));
        let [first, third] = neon!(self, load::join_pairs(ab_even, cd_even));
        let [second, fourth] = neon!(self, load::join_pairs(ab_odd, cd_odd));
        [first, second, third, fourth]
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn to_float(words: uint32x4_t) -> float32x4_t {
    vcvtq_f32_s32(vreinterpretq_s32_u32(words))
}

#[inline]
#[target_feature(enable = "neon")]
fn shift_signed(words: uint32x4_t, by: int32x4_t) -> uint32x4_t {
    vreinterpretq_u32_s32(vshlq_s32(vreinterpretq_s32_u32(words), by))
}

/// Four bytes in every lane.
#[inline]
#[target_feature(enable = "neon")]
fn splat_bytes(x: [i8; 4]) -> int8x16_t {
    vreinterpretq_s8_u32(vdupq_n_u32(word_of(x)))
}
