//! Rows of blocks: with inputs of floats, the literal loop over widened weights; with quantized inputs, exact sums of
//! integers for every 32 columns, and floats from there on. `oracle` has the definitions.

#![forbid(unsafe_code)]

use std::marker::PhantomData;

use super::{
    rows::{Kernel, to_arrays},
    simd::{LANES, Simd},
    source::{LINE, Source},
};
use crate::Q8Block;

mod k_quants;
mod plain;

pub(super) use self::{
    k_quants::{Q4K, Q5K, Q6K},
    plain::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0},
};

/// A part of 32 columns of eight rows.
///
/// What a format does not have is a splat that nothing reads.
#[derive(Clone, Copy)]
pub(super) struct Part<S: Simd> {
    /// Integers, with the offset of the format: factors of the source, 32 bytes of each row.
    q: [S::I; 8],
    /// The float scale.
    d: S::F,
    /// The integer scales of the first and of the second sixteen columns.
    scales: [S::F; 2],
    /// The float of the minimum, and its integer.
    minimum: [S::F; 2],
}

/// What a weight is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// q·d with q signed.
    Signed,
    /// (q − offset)·d.
    Offset(u32),
    /// q·d + m.
    Added,
    /// q·(d·sc) − dmin·mn.
    Subtracted,
    /// (q − offset)·(d·sc), with a scale for each sixteen columns.
    Halves(u32),
}

/// A block format.
pub(super) trait Block {
    /// Bytes of a block.
    const BYTES: usize;
    /// Parts of a block.
    const PARTS: usize;
    /// How often parts are read until all of a block have been.
    const TURNS: usize;
    /// How integers and scales make a weight.
    const FORM: Form;
    /// What the parts of a block share.
    type Head<S: Simd>: Copy;
    /// Parts that are taken apart together, as they share words: `PARTS / TURNS` of them.
    type Parts<S: Simd>: AsRef<[Part<S>]>;

    /// Reads what the parts of the rows, which are a block each, share.
    fn head<S: Simd, T: Source>(simd: S, rows: T) -> Self::Head<S>;
    /// Reads the parts of a turn.
    fn parts<S: Simd, T: Source>(
        simd: S,
        rows: T,
        head: &Self::Head<S>,
        turn: usize,
    ) -> Self::Parts<S>;
    /// The sums of the products of sixteen or of all integers, as they are stored, with an input.
    fn dot<S: Simd, T: Source, const N: usize>(simd: S, q: [S::I; N], x: &[[i8; 4]; N]) -> S::I;
}

/// What a format is multiplied with.
trait Mode {
    /// An input.
    type Input<'x>: Copy;

    /// Adds the products of the part of this index to the sums of each input.
    fn add<F: Block, S: Simd, T: Source, const B: usize>(
        simd: S,
        acc: &mut [S::F; B],
        part: &Part<S>,
        x: [Self::Input<'_>; B],
        index: usize,
    );
}

/// Quantized inputs.
#[derive(Debug)]
struct Q8;

/// Inputs of floats.
#[derive(Debug)]
struct Floats;

/// A block format with quantized inputs.
#[derive(Debug)]
pub(super) struct Quantized<F>(PhantomData<F>);

/// A block format with inputs of floats.
#[derive(Debug)]
pub(super) struct Widened<F>(PhantomData<F>);

impl<F: Block> Kernel for Quantized<F> {
    type Input<'x> = &'x [Q8Block];
    const PAIRS: bool = false;

    #[inline(always)]
    fn sums<S: Simd, T: Source, const B: usize, const G: usize>(
        simd: S,
        groups: [T; G],
        x: [&[Q8Block]; B],
    ) -> [[[f32; LANES]; B]; G] {
        if !S::STRAIGHT || T::PACKED || B > 1 {
            // Words in lanes, once there, serve all inputs.
            return sums::<F, Q8, S, T, B, G>(simd, groups, x);
        }
        let mut straight = [groups[0].straight(); G];
        for (straight, group) in straight.iter_mut().zip(groups) {
            *straight = group.straight();
        }
        sums::<F, Q8, S, T::Straight, B, G>(simd, straight, x)
    }
}

impl<F: Block> Kernel for Widened<F> {
    type Input<'x> = &'x [f32];
    const PAIRS: bool = false;

    #[inline(always)]
    fn sums<S: Simd, T: Source, const B: usize, const G: usize>(
        simd: S,
        groups: [T; G],
        x: [&[f32]; B],
    ) -> [[[f32; LANES]; B]; G] {
        sums::<F, Floats, S, T, B, G>(simd, groups, x)
    }
}

/// The sums of rows, over their parts from left to right.
#[inline(always)]
fn sums<F: Block, M: Mode, S: Simd, T: Source, const B: usize, const G: usize>(
    simd: S,
    groups: [T; G],
    x: [M::Input<'_>; B],
) -> [[[f32; LANES]; B]; G] {
    let n_blocks = groups[0].row_bytes() / F::BYTES;
    // As a loop: unrolled, it is several times as long and no faster.
    let n_turns = if F::TURNS == 1 { 1 } else { std::hint::black_box(F::TURNS) };
    let mut acc = [[simd.splat(0.0); B]; G];
    let mut line = 0;
    for block in 0..n_blocks {
        let at = block * F::BYTES;
        let mut rows = groups;
        for rows in &mut rows {
            *rows = rows.part(at, F::BYTES);
        }
        let mut heads = [F::head(simd, rows[0]); G];
        for (head, rows) in heads.iter_mut().zip(rows).skip(1) {
            *head = F::head(simd, rows);
        }
        for turn in 0..n_turns {
            if at + turn * (F::BYTES / F::TURNS) >= line {
                for group in groups {
                    group.prefetch(line, 0, LANES);
                }
                line += LINE;
            }
            for group in 0..G {
                let parts = F::parts(simd, rows[group], &heads[group], turn);
                let first = block * F::PARTS + turn * (F::PARTS / F::TURNS);
                for (part, index) in parts.as_ref().iter().zip(first..) {
                    M::add::<F, S, T, B>(simd, &mut acc[group], part, x, index);
                }
            }
        }
    }
    to_arrays(simd, acc)
}

impl Mode for Q8 {
    type Input<'x> = &'x [Q8Block];

    #[inline(always)]
    fn add<F: Block, S: Simd, T: Source, const B: usize>(
        simd: S,
        acc: &mut [S::F; B],
        part: &Part<S>,
        x: [&[Q8Block]; B],
        index: usize,
    ) {
        for (acc, x) in acc.iter_mut().zip(x) {
            *acc = simd.keep(simd.add(*acc, product::<F, S, T>(simd, part, &x[index])));
        }
    }
}

/// `oracle::Part::product` of eight rows.
#[inline(always)]
fn product<F: Block, S: Simd, T: Source>(simd: S, part: &Part<S>, x: &Q8Block) -> S::F {
    let words: &[[i8; 4]; 8] = x.q.as_chunks().0.try_into().expect("32 integers");
    let scale = simd.splat(x.scale);
    let d = simd.mul(part.d, scale);
    // Integers below 2²⁴, as all are here, are subtracted and multiplied exactly as the floats that they become.
    let less = |sums: S::I, offset: u32, of: f32| {
        let offset = simd.mul(simd.splat(offset as f32), simd.splat(of));
        simd.sub(simd.to_float(sums), offset)
    };
    // Not where it isn't used: an operation that is kept in its place is not left out.
    let mut whole = part.q[0];
    if !matches!(F::FORM, Form::Halves(_)) {
        whole = F::dot::<S, T, _>(simd, part.q, words);
    }
    match F::FORM {
        Form::Signed if S::BIAS == 0 => simd.mul(simd.to_float(whole), d),
        Form::Signed => simd.mul(less(whole, S::BIAS, x.sum), d),
        Form::Offset(offset) => simd.mul(less(whole, offset, x.sum), d),
        Form::Added => {
            let minimum = simd.mul(simd.splat(x.sum), simd.mul(part.minimum[0], scale));
            simd.add(simd.mul(simd.to_float(whole), d), minimum)
        }
        Form::Subtracted => {
            let sums = simd.mul(simd.to_float(whole), part.scales[0]);
            let minimum = simd.mul(part.minimum[1], simd.splat(x.sum));
            let minimum = simd.mul(minimum, simd.mul(part.minimum[0], scale));
            simd.sub(simd.mul(sums, d), minimum)
        }
        Form::Halves(offset) => {
            let [a, b, c, e, f, g, h, i] = part.q;
            let (low, high) = words.split_at(4);
            let low =
                F::dot::<S, T, _>(simd, [a, b, c, e], low.try_into().expect("sixteen integers"));
            let high =
                F::dot::<S, T, _>(simd, [f, g, h, i], high.try_into().expect("sixteen integers"));
            let low = less(low, offset, x.half_sums[0]);
            let high = less(high, offset, x.half_sums[1]);
            let sums = simd.add(simd.mul(low, part.scales[0]), simd.mul(high, part.scales[1]));
            simd.mul(sums, d)
        }
    }
}

impl Mode for Floats {
    type Input<'x> = &'x [f32];

    #[inline(always)]
    fn add<F: Block, S: Simd, T: Source, const B: usize>(
        simd: S,
        acc: &mut [S::F; B],
        part: &Part<S>,
        x: [&[f32]; B],
        index: usize,
    ) {
        let mut inputs = [&[[0.0; 4]; 8]; B];
        for (input, x) in inputs.iter_mut().zip(x) {
            let part = &x.as_chunks::<32>().0[index];
            *input = part.as_chunks().0.try_into().expect("32 values");
        }
        let scales = weight_scales::<F, S>(simd, part);
        for word in 0..8 {
            let columns = columns::<F, S>(simd, part, scales, word);
            for (acc, x) in acc.iter_mut().zip(inputs) {
                let mut sum = *acc;
                for (column, x) in columns.iter().zip(&x[word]) {
                    sum = simd.add(sum, simd.mul(*column, simd.splat(*x)));
                }
                *acc = if B > 1 { simd.keep(sum) } else { sum };
            }
        }
    }
}

/// What the integers of the first and of the second sixteen columns are multiplied with, and what is then added.
#[inline(always)]
fn weight_scales<F: Block, S: Simd>(simd: S, part: &Part<S>) -> [S::F; 3] {
    let scaled = |half: usize| simd.mul(part.d, part.scales[half]);
    match F::FORM {
        Form::Signed | Form::Offset(_) | Form::Added => [part.d, part.d, part.minimum[0]],
        Form::Subtracted => [scaled(0), scaled(0), simd.mul(part.minimum[0], part.minimum[1])],
        Form::Halves(_) => [scaled(0), scaled(1), part.d],
    }
}

/// Four columns, widened: `oracle::Part::weights` of eight rows.
#[inline(always)]
fn columns<F: Block, S: Simd>(
    simd: S,
    part: &Part<S>,
    scales: [S::F; 3],
    word: usize,
) -> [S::F; 4] {
    let q = part.q[word];
    let mut columns = [part.d; 4];
    for (byte, column) in columns.iter_mut().enumerate() {
        let in_byte = 8 * byte as u32;
        let q = match F::FORM {
            Form::Signed => simd.sar(simd.shl(q, 24 - in_byte), 24),
            _ => simd.and(simd.shr(q, in_byte), simd.splat_word(0xff)),
        };
        let q = match F::FORM {
            Form::Offset(offset) | Form::Halves(offset) => simd.sub_int(q, simd.splat_word(offset)),
            _ => q,
        };
        let scaled = simd.mul(simd.to_float(q), scales[word / 4]);
        *column = match F::FORM {
            Form::Added => simd.add(scaled, scales[2]),
            Form::Subtracted => simd.sub(scaled, scales[2]),
            _ => scaled,
        };
    }
    columns
}

/// Sixteen bytes of nibbles: the low ones are sixteen columns, and the high ones are sixteen more.
#[inline(always)]
fn nibbles<S: Simd>(simd: S, words: [S::I; 4]) -> [S::I; 8] {
    let mask = simd.splat_word(0x0f0f_0f0f);
    let mut q = [mask; 8];
    for (k, word) in words.into_iter().enumerate() {
        q[k] = simd.and(word, mask);
        q[k + 4] = simd.and(simd.shr(word, 4), mask);
    }
    q
}
