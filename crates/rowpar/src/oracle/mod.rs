//! The definition of every result in this crate, as plain loops.
//!
//! Nothing here is fast, and nothing here is clever: each function is the loop that a kernel has to
//! agree with, bit for bit. Use them to test an engine against, or as documentation.
//!
//! Blocks are read by [`Part::read`]: every block format is parts of 32 weights, and a part has integers, a scale, and
//! perhaps a minimum. Both ways to multiply a part with an input follow from that:
//!
//! - with floats, a weight is widened as GGUF defines it, and a row is the literal loop over its weights, [`dot`];
//! - with a quantized input, integers are summed exactly, and a row is the literal loop over its parts, [`dot_q8`].

#![forbid(unsafe_code)]

use crate::{Format, Q8Activation};

mod parts;

pub use self::parts::{Minimum, PART_LEN, Part};

/// `acc = 0; for j in 0..n { acc = acc + w[j] * x[j] }`: rounded after each step, never fused, left to
/// right, where `n = x.len()`.
///
/// This is the arithmetic contract of [`matvec_rows`](crate::matvec_rows) for one row. It starts from
/// `+0.0`, so the sum of no products, and of products that are all zero of either sign, is `+0.0`.
///
/// # Panics
///
/// If `w` and `x` differ in length.
///
/// # Examples
///
/// ```
/// // Left to right: the large terms cancel first, and the small one survives.
/// assert_eq!(rowpar::oracle::dot_f32(&[1e30, -1e30, 1.0], &[1.0, 1.0, 1.0]), 1.0);
/// // In another order it would be lost.
/// assert_eq!(rowpar::oracle::dot_f32(&[1e30, 1.0, -1e30], &[1.0, 1.0, 1.0]), 0.0);
/// ```
pub fn dot_f32(w: &[f32], x: &[f32]) -> f32 {
    assert!(w.len() == x.len(), "w has {} values but x has {}", w.len(), x.len());
    let mut acc = 0.0;
    for (weight, input) in w.iter().zip(x) {
        acc += weight * input;
    }
    acc
}

/// A row of any format with an input of floats: [`dot_f32`] of the weights that [`row_to_f32`] gives.
///
/// # Panics
///
/// If `row` is not the bytes of a row of `x.len()` weights.
pub fn dot(format: Format, row: &[u8], x: &[f32]) -> f32 {
    let mut weights = vec![0.0; x.len()];
    row_to_f32(format, row, &mut weights);
    dot_f32(&weights, x)
}

/// A row of a block format with a quantized input: `acc = 0; for each part { acc = acc + product }`, left to right,
/// where the product of a part is [`Part::product`].
///
/// A row of floats takes the values before quantization, as [`dot`] does.
///
/// # Panics
///
/// If `row` is not the bytes of a row of `x.len()` weights.
pub fn dot_q8(format: Format, row: &[u8], x: &Q8Activation) -> f32 {
    if !format.is_block() {
        return dot(format, row, x.values());
    }
    check_row(format, row, x.len());
    let mut acc = 0.0;
    for index in 0..x.len() / PART_LEN {
        acc += Part::read(format, row, index).product(x.block(index));
    }
    acc
}

/// The weights of a row: floats widened exactly, blocks as GGUF defines them (the table of [`Format`]), each operation
/// rounded by itself.
///
/// # Panics
///
/// If `row` is not the bytes of a row of `out.len()` weights.
pub fn row_to_f32(format: Format, row: &[u8], out: &mut [f32]) {
    check_row(format, row, out.len());
    match format {
        Format::F32 => widen(row, out, f32::from_le_bytes),
        Format::F16 => widen(row, out, |bytes| f16_to_f32(u16::from_le_bytes(bytes))),
        Format::Bf16 => widen(row, out, |bytes| bf16_to_f32(u16::from_le_bytes(bytes))),
        _ => {
            for (index, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
                *out = Part::read(format, row, index).weights();
            }
        }
    }
}

fn widen<const N: usize>(row: &[u8], out: &mut [f32], widen: impl Fn([u8; N]) -> f32) {
    for (bytes, out) in row.as_chunks::<N>().0.iter().zip(out) {
        *out = widen(*bytes);
    }
}

#[track_caller]
fn check_row(format: Format, row: &[u8], n_cols: usize) {
    let expected = format.row_bytes(n_cols);
    let found = row.len();
    assert!(
        expected == Some(found),
        "a row of {n_cols} {format} weights is {expected:?} bytes, not {found}"
    );
}

/// binary16 to binary32, which has room for every value.
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, mantissa) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => (mantissa as f32 * f32::from_bits((127 - 24) << 23)).to_bits(),
        31 => 0x7f80_0000 | mantissa << 13,
        _ => (exponent + 127 - 15) << 23 | mantissa << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// The upper half of a binary32 to the whole of it.
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}
