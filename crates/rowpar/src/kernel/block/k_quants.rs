//! Formats with 256 weights to a block, in eight parts.

use super::{Block, Form, Part};
use crate::kernel::{simd::Simd, source::Source};

/// What the parts of a block of Q4_K or Q5_K share.
#[derive(Clone, Copy)]
pub(in crate::kernel) struct Head<S: Simd> {
    d: S::F,
    dmin: S::F,
    scales: [S::F; 8],
    minima: [S::F; 8],
}

/// d and dmin, and twelve bytes of 6-bit integers: those of parts 0–3 whole, those of parts 4–7 as nibbles, with
/// their upper two bits above the first ones.
#[inline(always)]
fn head<S: Simd, T: Source>(simd: S, rows: T) -> Head<S> {
    let [floats, first, second, third] = rows.load(simd, 0);
    let [d, dmin] = simd.f16_pair(floats);
    let (six, four, two) =
        (simd.splat_word(0x3f3f_3f3f), simd.splat_word(0x0f0f_0f0f), simd.splat_word(0x0303_0303));
    let upper = |word| simd.shl(simd.and(simd.shr(word, 6), two), 4);
    let scales = [simd.and(first, six), simd.or(simd.and(third, four), upper(first))];
    let high = simd.and(simd.shr(third, 4), four);
    let minima = [simd.and(second, six), simd.or(high, upper(second))];
    Head { d, dmin, scales: unsigned_bytes(simd, scales), minima: unsigned_bytes(simd, minima) }
}

/// 32 bytes of each row.
#[inline(always)]
fn factors<S: Simd, T: Source>(simd: S, rows: T, at: usize) -> [S::I; 8] {
    let [a, b, c, d] = rows.factors(simd, at);
    let [e, f, g, h] = rows.factors(simd, at + 16);
    [a, b, c, d, e, f, g, h]
}

/// The bytes of two words.
#[inline(always)]
fn unsigned_bytes<S: Simd>(simd: S, words: [S::I; 2]) -> [S::F; 8] {
    let mut bytes = [simd.splat(0.0); 8];
    for (i, byte) in bytes.iter_mut().enumerate() {
        let word = simd.shr(words[i / 4], 8 * (i % 4) as u32);
        *byte = simd.to_float(simd.and(word, simd.splat_word(0xff)));
    }
    bytes
}

/// The bytes of four words, with their signs.
#[inline(always)]
fn signed_bytes<S: Simd>(simd: S, words: [S::I; 4]) -> [S::F; 16] {
    let mut bytes = [simd.splat(0.0); 16];
    for (i, byte) in bytes.iter_mut().enumerate() {
        let word = simd.shl(words[i / 4], 24 - 8 * (i % 4) as u32);
        *byte = simd.to_float(simd.sar(word, 24));
    }
    bytes
}

/// Two times 32 nibbles: the low ones are the even part, the high ones the odd part.
#[inline(always)]
fn nibbles_of_pair<S: Simd>(simd: S, bytes: [S::I; 8]) -> [[S::I; 8]; 2] {
    let mask = simd.splat_word(0x0f0f_0f0f);
    let (mut even, mut odd) = ([mask; 8], [mask; 8]);
    for ((even, odd), bytes) in even.iter_mut().zip(&mut odd).zip(bytes) {
        *even = simd.and(bytes, mask);
        *odd = simd.and(simd.shr(bytes, 4), mask);
    }
    [even, odd]
}

/// The parts of a pair, by their integers.
#[inline(always)]
fn scaled<S: Simd>(head: &Head<S>, pair: usize, q: [[S::I; 8]; 2]) -> [Part<S>; 2] {
    let mut parts = [Part { q: q[0], d: head.d, scales: [head.d; 2], minimum: [head.dmin; 2] }; 2];
    for (odd, (part, q)) in parts.iter_mut().zip(q).enumerate() {
        part.q = q;
        part.scales = [head.scales[2 * pair + odd]; 2];
        part.minimum[1] = head.minima[2 * pair + odd];
    }
    parts
}

/// Nibbles.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Q4K;

impl Block for Q4K {
    const BYTES: usize = 144;
    const PARTS: usize = 8;
    const TURNS: usize = 4;
    const FORM: Form = Form::Subtracted;
    type Head<S: Simd> = Head<S>;
    type Parts<S: Simd> = [Part<S>; 2];

    #[inline(always)]
    fn head<S: Simd, T: Source>(simd: S, rows: T) -> Head<S> {
        head(simd, rows)
    }

    #[inline(always)]
    fn parts<S: Simd, T: Source>(simd: S, rows: T, head: &Head<S>, pair: usize) -> [Part<S>; 2] {
        let q = nibbles_of_pair(simd, factors(simd, rows, 16 + 32 * pair));
        scaled::<S>(head, pair, q)
    }

    #[inline(always)]
    fn dot<S: Simd, T: Source, const N: usize>(simd: S, q: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
        T::dot_unsigned::<S, N, 15>(simd, q, x)
    }
}

/// Nibbles, and 32 bytes of fifth bits before them: bit p of a byte is of part p.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Q5K;

impl Block for Q5K {
    const BYTES: usize = 176;
    const PARTS: usize = 8;
    const TURNS: usize = 4;
    const FORM: Form = Form::Subtracted;
    /// The bits of all parts, too.
    type Head<S: Simd> = (Head<S>, [S::I; 8]);
    type Parts<S: Simd> = [Part<S>; 2];

    #[inline(always)]
    fn head<S: Simd, T: Source>(simd: S, rows: T) -> Self::Head<S> {
        (head(simd, rows), factors(simd, rows, 16))
    }

    #[inline(always)]
    fn parts<S: Simd, T: Source>(
        simd: S,
        rows: T,
        (head, bits): &Self::Head<S>,
        pair: usize,
    ) -> [Part<S>; 2] {
        let [mut even, mut odd] = nibbles_of_pair(simd, factors(simd, rows, 48 + 32 * pair));
        let fifth = simd.splat_word(0x1010_1010);
        for ((even, odd), bits) in even.iter_mut().zip(&mut odd).zip(bits) {
            // The bits of the pair become bits 4 and 5 of each byte: what the shifts bring in from other bytes is not kept.
            let bits = simd.shl(simd.shr(*bits, 2 * pair as u32), 4);
            *even = simd.or(*even, simd.and(bits, fifth));
            *odd = simd.or(*odd, simd.and(simd.shr(bits, 1), fifth));
        }
        scaled::<S>(head, pair, [even, odd])
    }

    #[inline(always)]
    fn dot<S: Simd, T: Source, const N: usize>(simd: S, q: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
        T::dot_unsigned::<S, N, 31>(simd, q, x)
    }
}

/// 128 bytes of nibbles, 64 of upper pairs of bits, sixteen signed scales, d: each half of a block has 64 bytes of nibbles
/// and 32 of pairs for four parts.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Q6K;

impl Block for Q6K {
    const BYTES: usize = 210;
    const PARTS: usize = 8;
    const TURNS: usize = 4;
    const FORM: Form = Form::Halves(32);
    /// d, and the scales.
    type Head<S: Simd> = (S::F, [S::F; 16]);
    type Parts<S: Simd> = [Part<S>; 2];

    #[inline(always)]
    fn head<S: Simd, T: Source>(simd: S, rows: T) -> Self::Head<S> {
        (simd.f16_halves(rows.halves(208)), signed_bytes(simd, rows.load(simd, 192)))
    }

    /// Of the two pairs of a half, the first one has the low nibbles, the second one the high ones.
    #[inline(always)]
    fn parts<S: Simd, T: Source>(
        simd: S,
        rows: T,
        (d, scales): &Self::Head<S>,
        pair: usize,
    ) -> [Part<S>; 2] {
        let (half, pair_of_half) = (pair / 2, pair % 2);
        let upper = factors(simd, rows, 128 + 32 * half);
        let (four, two) = (simd.splat_word(0x0f0f_0f0f), simd.splat_word(0x3030_3030));
        let mut parts = [Part { q: upper, d: *d, scales: [*d; 2], minimum: [*d; 2] }; 2];
        for (odd, part) in parts.iter_mut().enumerate() {
            part.q = factors(simd, rows, 64 * half + 32 * odd);
            for (q, upper) in part.q.iter_mut().zip(upper) {
                let nibble = simd.and(simd.shr(*q, 4 * pair_of_half as u32), four);
                // The pair of bits becomes bits 4 and 5 of each byte: what the shifts bring in from other bytes is not kept.
                let upper = simd.shl(simd.shr(upper, 4 * pair_of_half as u32), 4 - 2 * odd as u32);
                *q = simd.or(nibble, simd.and(upper, two));
            }
            for (sixteen, scale) in part.scales.iter_mut().enumerate() {
                *scale = scales[4 * pair + 2 * odd + sixteen];
            }
        }
        parts
    }

    #[inline(always)]
    fn dot<S: Simd, T: Source, const N: usize>(simd: S, q: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
        T::dot_unsigned::<S, N, 63>(simd, q, x)
    }
}
