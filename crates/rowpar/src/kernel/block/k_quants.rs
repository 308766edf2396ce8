//! Formats with 256 weights to a block, in eight parts.

use super::{Block, Form, Part};
use crate::kernel::{simd::Simd, source::Source};

/// The float scales of a block of Q4_K or Q5_K, and the integers of its parts, four to a word.
#[derive(Clone, Copy)]
pub(in crate::kernel) struct Head<S: Simd> {
    d: S::F,
    dmin: S::F,
    scales: [S::I; 2],
    minima: [S::I; 2],
}

/// d and dmin, and twelve bytes of 6-bit integers: those of parts 0–3 whole, those of parts 4–7 as nibbles, with
/// their upper two bits above the first ones.
#[inline(always)]
fn head<S: Simd, T: Source>(simd: S, rows: T, at: usize) -> Head<S> {
    let [floats, first, second, third] = rows.load(simd, at);
    let [d, dmin] = simd.f16_pair(floats);
    let (six, four, two) =
        (simd.splat_word(0x3f3f_3f3f), simd.splat_word(0x0f0f_0f0f), simd.splat_word(0x0303_0303));
    let upper = |word| simd.shl(simd.and(simd.shr(word, 6), two), 4);
    let scales = [simd.and(first, six), simd.or(simd.and(third, four), upper(first))];
    let high = simd.and(simd.shr(third, 4), four);
    let minima = [simd.and(second, six), simd.or(high, upper(second))];
    Head { d, dmin, scales, minima }
}

/// The byte of a part in two words of four.
#[inline(always)]
fn of_part<S: Simd>(simd: S, words: [S::I; 2], part: usize) -> S::F {
    let word = simd.shr(words[part / 4], 8 * (part % 4) as u32);
    simd.to_float(simd.and(word, simd.splat_word(0xff)))
}

/// 32 bytes of nibbles for two parts: the low ones are the even part, the high ones the odd part.
#[inline(always)]
fn nibbles<S: Simd, T: Source>(simd: S, rows: T, at: usize, part: usize) -> [S::I; 8] {
    let at = at + part / 2 * 32;
    let mask = simd.splat_word(0x0f0f_0f0f);
    let mut q = join(rows.load(simd, at), rows.load(simd, at + 16));
    for q in &mut q {
        *q = simd.and(simd.shr(*q, 4 * (part % 2) as u32), mask);
    }
    q
}

#[inline(always)]
fn join<I: Copy>(low: [I; 4], high: [I; 4]) -> [I; 8] {
    let [a, b, c, d] = low;
    let [e, f, g, h] = high;
    [a, b, c, d, e, f, g, h]
}

#[inline(always)]
fn scaled<S: Simd>(simd: S, head: Head<S>, part: usize, q: [S::I; 8]) -> Part<S> {
    let scale = of_part(simd, head.scales, part);
    let minimum = [head.dmin, of_part(simd, head.minima, part)];
    Part { q, d: head.d, scales: [scale; 2], minimum }
}

/// Nibbles.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Q4K;

impl Block for Q4K {
    const BYTES: usize = 144;
    const PARTS: usize = 8;
    const FORM: Form = Form::Subtracted;
    type Head<S: Simd> = Head<S>;

    #[inline(always)]
    fn head<S: Simd, T: Source>(simd: S, rows: T, at: usize) -> Head<S> {
        head(simd, rows, at)
    }

    #[inline(always)]
    fn part<S: Simd, T: Source>(
        simd: S,
        rows: T,
        at: usize,
        head: Head<S>,
        part: usize,
    ) -> Part<S> {
        scaled(simd, head, part, nibbles(simd, rows, at + 16, part))
    }

    #[inline(always)]
    fn dot<S: Simd, const N: usize>(simd: S, q: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
        simd.dot_unsigned::<N, 15>(q, x)
    }
}

/// Nibbles, and 32 bytes of fifth bits before them: bit p of a byte is of part p.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Q5K;

impl Block for Q5K {
    const BYTES: usize = 176;
    const PARTS: usize = 8;
    const FORM: Form = Form::Subtracted;
    type Head<S: Simd> = Head<S>;

    #[inline(always)]
    fn head<S: Simd, T: Source>(simd: S, rows: T, at: usize) -> Head<S> {
        head(simd, rows, at)
    }

    #[inline(always)]
    fn part<S: Simd, T: Source>(
        simd: S,
        rows: T,
        at: usize,
        head: Head<S>,
        part: usize,
    ) -> Part<S> {
        let mut q = nibbles(simd, rows, at + 48, part);
        let fifth = join(rows.load(simd, at + 16), rows.load(simd, at + 32));
        let one = simd.splat_word(0x0101_0101);
        for (q, fifth) in q.iter_mut().zip(fifth) {
            let bit = simd.and(simd.shr(fifth, part as u32), one);
            *q = simd.or(*q, simd.shl(bit, 4));
        }
        scaled(simd, head, part, q)
    }

    #[inline(always)]
    fn dot<S: Simd, const N: usize>(simd: S, q: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
        simd.dot_unsigned::<N, 31>(q, x)
    }
}

/// 128 bytes of nibbles, 64 of upper pairs of bits, sixteen signed scales, d: each half of a block has 64 bytes of nibbles
/// and 32 of pairs for four parts.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Q6K;

impl Block for Q6K {
    const BYTES: usize = 210;
    const PARTS: usize = 8;
    const FORM: Form = Form::Halves(32);
    /// d, and sixteen scales, four to a word.
    type Head<S: Simd> = (S::F, [S::I; 4]);

    #[inline(always)]
    fn head<S: Simd, T: Source>(simd: S, rows: T, at: usize) -> (S::F, [S::I; 4]) {
        (simd.f16_halves(rows.halves(at + 208)), rows.load(simd, at + 192))
    }

    #[inline(always)]
    fn part<S: Simd, T: Source>(
        simd: S,
        rows: T,
        at: usize,
        (d, scales): (S::F, [S::I; 4]),
        part: usize,
    ) -> Part<S> {
        let (half, part_of_half) = (part / 4, part % 4);
        let low = at + 64 * half + part_of_half % 2 * 32;
        let high = at + 128 + 32 * half;
        let low = join(rows.load(simd, low), rows.load(simd, low + 16));
        let mut q = join(rows.load(simd, high), rows.load(simd, high + 16));
        let (four, two) = (simd.splat_word(0x0f0f_0f0f), simd.splat_word(0x0303_0303));
        for (q, low) in q.iter_mut().zip(low) {
            let pair = simd.and(simd.shr(*q, 2 * part_of_half as u32), two);
            let nibble = simd.and(simd.shr(low, (part_of_half / 2 * 4) as u32), four);
            *q = simd.or(nibble, simd.shl(pair, 4));
        }
        let scale = |index: usize| {
            let word = simd.shl(scales[index / 4], 24 - 8 * (index % 4) as u32);
            simd.to_float(simd.sar(word, 24))
        };
        Part { q, d, scales: [scale(2 * part), scale(2 * part + 1)], minimum: [d; 2] }
    }

    #[inline(always)]
    fn dot<S: Simd, const N: usize>(simd: S, q: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
        simd.dot_unsigned::<N, 63>(q, x)
    }
}
