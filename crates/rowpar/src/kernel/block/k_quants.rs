//! Formats with 256 weights to a block, in eight parts.

use super::{Block, Form, Part};
use crate::kernel::{simd::Simd, source::Source};

/// All words of a block of Q4_K or Q5_K, and what its parts share.
///
/// Words hold columns of several parts. They are turned into lanes once, and wait in memory for their parts.
#[derive(Clone, Copy)]
pub(in crate::kernel) struct Head<S: Simd, const WORDS: usize> {
    d: S::F,
    dmin: S::F,
    scales: [S::I; 2],
    minima: [S::I; 2],
    words: [S::I; WORDS],
}

/// d and dmin, and twelve bytes of 6-bit integers: those of parts 0–3 whole, those of parts 4–7 as nibbles, with
/// their upper two bits above the first ones.
#[inline(always)]
fn head<S: Simd, T: Source, const WORDS: usize>(simd: S, rows: T, at: usize) -> Head<S, WORDS> {
    let words = load(simd, rows, at);
    let [floats, first, second, third] = [words[0], words[1], words[2], words[3]];
    let [d, dmin] = simd.f16_pair(floats);
    let (six, four, two) =
        (simd.splat_word(0x3f3f_3f3f), simd.splat_word(0x0f0f_0f0f), simd.splat_word(0x0303_0303));
    let upper = |word| simd.shl(simd.and(simd.shr(word, 6), two), 4);
    let scales = [simd.and(first, six), simd.or(simd.and(third, four), upper(first))];
    let high = simd.and(simd.shr(third, 4), four);
    let minima = [simd.and(second, six), simd.or(high, upper(second))];
    Head { d, dmin, scales, minima, words }
}

/// Words that follow each other, as many as a multiple of four.
#[inline(always)]
fn load<S: Simd, T: Source, const WORDS: usize>(simd: S, rows: T, at: usize) -> [S::I; WORDS] {
    let mut words = [simd.splat_word(0); WORDS];
    for (i, words) in words.as_chunks_mut().0.iter_mut().enumerate() {
        *words = rows.load(simd, at + 16 * i);
    }
    words
}

/// The byte of a part in two words of four.
#[inline(always)]
fn of_part<S: Simd>(simd: S, words: [S::I; 2], part: usize) -> S::F {
    let word = simd.shr(words[part / 4], 8 * (part % 4) as u32);
    simd.to_float(simd.and(word, simd.splat_word(0xff)))
}

/// Words of nibbles for two parts: the low ones are the even part, the high ones the odd part.
#[inline(always)]
fn nibbles<S: Simd>(simd: S, words: &[S::I], part: usize) -> [S::I; 8] {
    let mask = simd.splat_word(0x0f0f_0f0f);
    let mut q = [mask; 8];
    for (q, word) in q.iter_mut().zip(&words[part / 2 * 8..][..8]) {
        *q = simd.and(simd.shr(*word, 4 * (part % 2) as u32), mask);
    }
    q
}

/// The same for both of a pair.
#[inline(always)]
fn nibbles_of_pair<S: Simd>(simd: S, words: &[S::I], pair: usize) -> [[S::I; 8]; 2] {
    let mask = simd.splat_word(0x0f0f_0f0f);
    let (mut even, mut odd) = ([mask; 8], [mask; 8]);
    for ((even, odd), word) in even.iter_mut().zip(&mut odd).zip(&words[8 * pair..][..8]) {
        *even = simd.and(*word, mask);
        *odd = simd.and(simd.shr(*word, 4), mask);
    }
    [even, odd]
}

#[inline(always)]
fn scaled<S: Simd, const WORDS: usize>(
    simd: S,
    head: &Head<S, WORDS>,
    part: usize,
    q: [S::I; 8],
) -> Part<S> {
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
    type Head<S: Simd> = Head<S, 36>;

    #[inline(always)]
    fn head<S: Simd, T: Source>(simd: S, rows: T, at: usize) -> Self::Head<S> {
        head(simd, rows, at)
    }

    #[inline(always)]
    fn part<S: Simd, T: Source>(
        simd: S,
        _rows: T,
        _at: usize,
        head: &Self::Head<S>,
        part: usize,
    ) -> Part<S> {
        scaled(simd, head, part, nibbles(simd, &head.words[4..], part))
    }

    #[inline(always)]
    fn pair<S: Simd, T: Source>(
        simd: S,
        _rows: T,
        _at: usize,
        head: &Self::Head<S>,
        pair: usize,
    ) -> [Part<S>; 2] {
        let [even, odd] = nibbles_of_pair(simd, &head.words[4..], pair);
        [scaled(simd, head, 2 * pair, even), scaled(simd, head, 2 * pair + 1, odd)]
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
    type Head<S: Simd> = Head<S, 44>;

    #[inline(always)]
    fn head<S: Simd, T: Source>(simd: S, rows: T, at: usize) -> Self::Head<S> {
        head(simd, rows, at)
    }

    #[inline(always)]
    fn part<S: Simd, T: Source>(
        simd: S,
        _rows: T,
        _at: usize,
        head: &Self::Head<S>,
        part: usize,
    ) -> Part<S> {
        let mut q = nibbles(simd, &head.words[12..], part);
        let one = simd.splat_word(0x0101_0101);
        for (q, fifth) in q.iter_mut().zip(&head.words[4..12]) {
            let bit = simd.and(simd.shr(*fifth, part as u32), one);
            *q = simd.or(*q, simd.shl(bit, 4));
        }
        scaled(simd, head, part, q)
    }

    #[inline(always)]
    fn pair<S: Simd, T: Source>(
        simd: S,
        _rows: T,
        _at: usize,
        head: &Self::Head<S>,
        pair: usize,
    ) -> [Part<S>; 2] {
        let [mut even, mut odd] = nibbles_of_pair(simd, &head.words[12..], pair);
        let fifth = simd.splat_word(0x1010_1010);
        for ((even, odd), bits) in even.iter_mut().zip(&mut odd).zip(&head.words[4..12]) {
            // The bits of the pair become bits 4 and 5 of each byte: what the shifts bring in from other bytes is not kept.
            let bits = simd.shl(simd.shr(*bits, 2 * pair as u32), 4);
            *even = simd.or(*even, simd.and(bits, fifth));
            *odd = simd.or(*odd, simd.and(simd.shr(bits, 1), fifth));
        }
        [scaled(simd, head, 2 * pair, even), scaled(simd, head, 2 * pair + 1, odd)]
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
    /// d, and all words before it.
    type Head<S: Simd> = (S::F, [S::I; 52]);

    #[inline(always)]
    fn head<S: Simd, T: Source>(simd: S, rows: T, at: usize) -> Self::Head<S> {
        (simd.f16_halves(rows.halves(at + 208)), load(simd, rows, at))
    }

    #[inline(always)]
    fn part<S: Simd, T: Source>(
        simd: S,
        _rows: T,
        _at: usize,
        (d, words): &Self::Head<S>,
        part: usize,
    ) -> Part<S> {
        let (half, part_of_half) = (part / 4, part % 4);
        let low = &words[16 * half + part_of_half % 2 * 8..][..8];
        let high = &words[32 + 8 * half..][..8];
        let scales = &words[48..];
        let (four, two) = (simd.splat_word(0x0f0f_0f0f), simd.splat_word(0x0303_0303));
        let mut q = [four; 8];
        for (q, (low, high)) in q.iter_mut().zip(low.iter().zip(high)) {
            let pair = simd.and(simd.shr(*high, 2 * part_of_half as u32), two);
            let nibble = simd.and(simd.shr(*low, (part_of_half / 2 * 4) as u32), four);
            *q = simd.or(nibble, simd.shl(pair, 4));
        }
        let scale = |index: usize| {
            let word = simd.shl(scales[index / 4], 24 - 8 * (index % 4) as u32);
            simd.to_float(simd.sar(word, 24))
        };
        Part { q, d: *d, scales: [scale(2 * part), scale(2 * part + 1)], minimum: [*d; 2] }
    }

    #[inline(always)]
    fn dot<S: Simd, const N: usize>(simd: S, q: [S::I; N], x: &[[i8; 4]; N]) -> S::I {
        simd.dot_unsigned::<N, 63>(q, x)
    }
}
