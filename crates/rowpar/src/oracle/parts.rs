//! Block formats, read one part of 32 weights at a time.

#![forbid(unsafe_code)]

use super::f16_to_f32;
use crate::{Format, Q8Block};

/// Weights of a [`Part`].
pub const PART_LEN: usize = 32;

/// 32 weights of a row of blocks, taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The integers, less the offset that the format has.
    pub q: [i8; PART_LEN],
    /// The integer scales of the first and of the second sixteen weights; 1 where a format has none.
    pub scales: [i32; 2],
    /// The float scale.
    pub d: f32,
    /// What is added to every weight.
    pub minimum: Minimum,
}

/// What is added to every weight of a [`Part`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Minimum {
    /// Nothing.
    None,
    /// This number.
    Added(f32),
    /// The product of a float and an integer is taken away.
    Subtracted(f32, i32),
}

impl Part {
    /// The product with 32 values of a quantized input: integer sums, which are exact and below 2²⁴, and then floats,
    /// each operation rounded by itself.
    ///
    /// With `s = Σ scale · q · x.q` over the part: `f32(s) · (d · x.scale)`; where there is a minimum, then plus
    /// `x.sum · (m · x.scale)`, or minus `f32(mn · x.sum) · (dmin · x.scale)`.
    pub fn product(&self, x: &Q8Block) -> f32 {
        let mut sum = 0;
        for (col, (q, x)) in self.q.iter().zip(&x.q).enumerate() {
            sum += self.scales[col / 16] * i32::from(*q) * i32::from(*x);
        }
        let product = sum as f32 * (self.d * x.scale);
        match self.minimum {
            Minimum::None => product,
            Minimum::Added(m) => product + x.sum * (m * x.scale),
            Minimum::Subtracted(dmin, mn) => {
                product - (mn * x.sum as i32) as f32 * (dmin * x.scale)
            }
        }
    }

    /// The weights as floats, each operation rounded by itself.
    pub fn weights(&self) -> [f32; PART_LEN] {
        std::array::from_fn(|col| {
            let scaled = (self.d * self.scales[col / 16] as f32) * f32::from(self.q[col]);
            match self.minimum {
                Minimum::None => scaled,
                Minimum::Added(m) => scaled + m,
                Minimum::Subtracted(dmin, mn) => scaled - dmin * mn as f32,
            }
        })
    }

    /// Weights `32 * index` and on of a row of blocks.
    ///
    /// # Panics
    ///
    /// If `row` is too short, or if `format` has no blocks.
    pub fn read(format: Format, row: &[u8], index: usize) -> Self {
        let parts_per_block = format.block_len() / PART_LEN;
        assert!(parts_per_block > 0, "{format} has no blocks");
        let block = &row[index / parts_per_block * format.block_bytes()..][..format.block_bytes()];
        let part = index % parts_per_block;
        let plain = |q, d, minimum| Self { q, scales: [1; 2], d, minimum };
        match format {
            Format::Q8_0 => {
                plain(std::array::from_fn(|i| block[2 + i] as i8), half(block, 0), Minimum::None)
            }
            Format::Q4_0 => plain(less(8, nibbles(&block[2..])), half(block, 0), Minimum::None),
            Format::Q4_1 => {
                plain(nibbles(&block[4..]), half(block, 0), Minimum::Added(half(block, 2)))
            }
            Format::Q5_0 => {
                let q = with_fifth_bits(nibbles(&block[6..]), &block[2..6]);
                plain(less(16, q), half(block, 0), Minimum::None)
            }
            Format::Q5_1 => {
                let q = with_fifth_bits(nibbles(&block[8..]), &block[4..8]);
                plain(q, half(block, 0), Minimum::Added(half(block, 2)))
            }
            Format::Q4K => scaled_part(block, part, halves_of_bytes(&block[16..], part)),
            Format::Q5K => {
                let fifth = |i: usize| (block[16 + i] >> part & 1) as i8;
                let q = halves_of_bytes(&block[48..], part);
                scaled_part(block, part, std::array::from_fn(|i| q[i] + 16 * fifth(i)))
            }
            _ => q6_k(block, part),
        }
    }
}

/// The binary16 at a byte.
fn half(block: &[u8], at: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([block[at], block[at + 1]]))
}

/// Sixteen bytes: low nibbles are the first sixteen weights, high ones the others.
fn nibbles(bytes: &[u8]) -> [i8; PART_LEN] {
    std::array::from_fn(|i| (bytes[i % 16] >> (i / 16 * 4) & 15) as i8)
}

fn less(offset: i8, q: [i8; PART_LEN]) -> [i8; PART_LEN] {
    q.map(|q| q - offset)
}

/// Bit i of a little-endian word is the fifth bit of weight i.
fn with_fifth_bits(q: [i8; PART_LEN], word: &[u8]) -> [i8; PART_LEN] {
    std::array::from_fn(|i| q[i] + 16 * (word[i / 8] >> (i % 8) & 1) as i8)
}

/// 32 bytes for two parts: low nibbles are the even part, high ones the odd part.
fn halves_of_bytes(bytes: &[u8], part: usize) -> [i8; PART_LEN] {
    std::array::from_fn(|i| (bytes[part / 2 * 32 + i] >> (part % 2 * 4) & 15) as i8)
}

/// A part of Q4_K or Q5_K, whose block begins with d, dmin, and eight 6-bit scales and minima in twelve bytes: those
/// of parts 0–3 whole, those of parts 4–7 as nibbles, with their upper two bits above the first ones.
fn scaled_part(block: &[u8], part: usize, q: [i8; PART_LEN]) -> Part {
    let packed = &block[4..16];
    let (scale, minimum) = if part < 4 {
        (packed[part] & 63, packed[part + 4] & 63)
    } else {
        (
            (packed[part + 4] & 15) | (packed[part - 4] >> 6) << 4,
            (packed[part + 4] >> 4) | (packed[part] >> 6) << 4,
        )
    };
    let minimum = Minimum::Subtracted(half(block, 2), i32::from(minimum));
    Part { q, scales: [i32::from(scale); 2], d: half(block, 0), minimum }
}

/// A part of Q6_K: each half of the block has 64 bytes of nibbles and 32 bytes of upper pairs of bits for four parts.
fn q6_k(block: &[u8], part: usize) -> Part {
    let (in_half, part_of_half) = (part / 4, part % 4);
    let low = &block[64 * in_half + part_of_half % 2 * 32..];
    let high = &block[128 + 32 * in_half..];
    let scale = |of_sixteen: usize| i32::from(block[192 + 2 * part + of_sixteen] as i8);
    let q = std::array::from_fn(|i| {
        let nibble = low[i] >> (part_of_half / 2 * 4) & 15;
        let pair = high[i] >> (2 * part_of_half) & 3;
        (nibble | pair << 4) as i8 - 32
    });
    Part { q, scales: [scale(0), scale(1)], d: half(block, 208), minimum: Minimum::None }
}
