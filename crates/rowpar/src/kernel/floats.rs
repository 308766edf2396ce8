//! Rows of floats: the literal loop, eight rows at a time.

#![forbid(unsafe_code)]

use super::{
    rows::{Kernel, to_arrays},
    simd::{LANES, Simd},
    source::{LINE, Source},
};

/// How floats lie in a word.
pub(super) trait Float {
    /// Columns in a word.
    const PER_WORD: usize;
    /// The columns of a word, of which the second counts only if there are two.
    fn columns<S: Simd>(simd: S, word: S::I) -> [S::F; 2];
    /// A column that stands alone at the end of a row.
    fn column<S: Simd>(simd: S, halves: [u16; LANES]) -> S::F;
}

/// One to a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct F32;

impl Float for F32 {
    const PER_WORD: usize = 1;

    #[inline(always)]
    fn columns<S: Simd>(simd: S, word: S::I) -> [S::F; 2] {
        [simd.as_floats(word); 2]
    }

    #[inline(always)]
    fn column<S: Simd>(simd: S, _halves: [u16; LANES]) -> S::F {
        simd.splat(0.0) // a row is whole words
    }
}

/// Two to a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct F16;

impl Float for F16 {
    const PER_WORD: usize = 2;

    #[inline(always)]
    fn columns<S: Simd>(simd: S, word: S::I) -> [S::F; 2] {
        simd.f16_pair(word)
    }

    #[inline(always)]
    fn column<S: Simd>(simd: S, halves: [u16; LANES]) -> S::F {
        simd.f16_halves(halves)
    }
}

/// Two to a word, each the upper half of a binary32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bf16;

impl Float for Bf16 {
    const PER_WORD: usize = 2;

    #[inline(always)]
    fn columns<S: Simd>(simd: S, word: S::I) -> [S::F; 2] {
        let high = simd.and(word, simd.splat_word(0xffff_0000));
        [simd.as_floats(simd.shl(word, 16)), simd.as_floats(high)]
    }

    #[inline(always)]
    fn column<S: Simd>(simd: S, halves: [u16; LANES]) -> S::F {
        simd.as_floats(simd.shl(simd.halves(halves), 16))
    }
}

impl<F: Float> Kernel for F {
    type Input<'x> = &'x [f32];
    const PAIRS: bool = true;

    #[inline(always)]
    fn sums<S: Simd, T: Source, const B: usize, const G: usize>(
        simd: S,
        groups: [T; G],
        x: [&[f32]; B],
    ) -> [[[f32; LANES]; B]; G] {
        let row_bytes = groups[0].row_bytes();
        let mut acc = [[simd.splat(0.0); B]; G];
        let mut at = 0;
        while row_bytes - at >= LINE {
            if T::PACKED {
                packed_line::<F, S, T, B, G>(simd, &mut acc, groups, x, at);
            } else {
                for (acc, group) in acc.iter_mut().zip(groups) {
                    for quarter in 0..LINE / 16 {
                        group.prefetch(at, 2 * quarter, 2);
                        step::<F, S, T, B>(simd, acc, group, x, at + 16 * quarter);
                    }
                }
            }
            at += LINE;
        }
        for (acc, group) in acc.iter_mut().zip(groups) {
            rest::<F, S, T, B>(simd, acc, group, x, at);
        }
        to_arrays(simd, acc)
    }
}

/// A line of each row, with all groups side by side: they share the inputs.
#[inline(always)]
fn packed_line<F: Float, S: Simd, T: Source, const B: usize, const G: usize>(
    simd: S,
    acc: &mut [[S::F; B]; G],
    groups: [T; G],
    x: [&[f32]; B],
    at: usize,
) {
    for group in groups {
        group.prefetch(at, 0, LANES);
    }
    for word in 0..LINE / 4 {
        let at = at + 4 * word;
        for (acc, group) in acc.iter_mut().zip(groups) {
            let columns = F::columns(simd, group.word(simd, at));
            for (acc, x) in acc.iter_mut().zip(x) {
                let first = at / 4 * F::PER_WORD;
                for (column, x) in columns.iter().zip(&x[first..first + F::PER_WORD]) {
                    *acc = simd.add(*acc, simd.mul(*column, simd.splat(*x)));
                }
            }
        }
    }
}

/// Sixteen bytes of each row, left to right.
#[inline(always)]
fn step<F: Float, S: Simd, T: Source, const B: usize>(
    simd: S,
    acc: &mut [S::F; B],
    group: T,
    x: [&[f32]; B],
    at: usize,
) {
    let words = group.load(simd, at);
    let first = at / 4 * F::PER_WORD;
    let mut columns = [[simd.splat(0.0); 2]; 4];
    for (columns, word) in columns.iter_mut().zip(words) {
        *columns = F::columns(simd, word);
    }
    for (acc, x) in acc.iter_mut().zip(x) {
        let x = &x[first..first + 4 * F::PER_WORD];
        let mut sum = *acc;
        for i in 0..4 * F::PER_WORD {
            let column = columns[i / F::PER_WORD][i % F::PER_WORD];
            sum = simd.add(sum, simd.mul(column, simd.splat(x[i])));
        }
        *acc = if B > 1 { simd.keep(sum) } else { sum };
    }
}

/// What is left of each row after whole lines.
#[inline(always)]
fn rest<F: Float, S: Simd, T: Source, const B: usize>(
    simd: S,
    acc: &mut [S::F; B],
    group: T,
    x: [&[f32]; B],
    mut at: usize,
) {
    let row_bytes = group.row_bytes();
    while row_bytes - at >= 16 {
        step::<F, S, T, B>(simd, acc, group, x, at);
        at += 16;
    }
    while row_bytes - at >= 4 {
        let columns = F::columns(simd, group.word(simd, at));
        for (acc, x) in acc.iter_mut().zip(x) {
            let first = at / 4 * F::PER_WORD;
            for (column, x) in columns.iter().zip(&x[first..first + F::PER_WORD]) {
                *acc = simd.add(*acc, simd.mul(*column, simd.splat(*x)));
            }
        }
        at += 4;
    }
    if at < row_bytes {
        let column = F::column(simd, group.halves(at));
        for (acc, x) in acc.iter_mut().zip(x) {
            *acc = simd.add(*acc, simd.mul(column, simd.splat(x[at / 2])));
        }
    }
}
