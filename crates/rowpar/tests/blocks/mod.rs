//! The block formats, one weight at a time, written from their description alone.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use rowpar::Format;

use crate::exact::{add, from_f16, from_integer, mul, sub};

/// What weight `i` of a block is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    /// The integer, less the offset of its format.
    pub(crate) q: i64,
    /// The integer scale, 1 if there is none.
    pub(crate) scale: i64,
    /// The float scale.
    pub(crate) d: f32,
    pub(crate) minimum: Minimum,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Minimum {
    None,
    /// Added to the weight.
    Plus(f32),
    /// Taken from the weight: a float times an integer.
    Minus(f32, i64),
}

impl Weight {
    pub(crate) fn read(format: Format, block: &[u8], i: usize) -> Self {
        assert!(block.len() == format.block_bytes() && i < format.block_len());
        let float = |at: usize| from_f16(u16::from_le_bytes([block[at], block[at + 1]]));
        // Weights 0-15 are the low halves of sixteen bytes, 16-31 their high halves.
        let nibble = |at: usize| {
            i64::from(if i < 16 { block[at + i] & 15 } else { block[at + i - 16] >> 4 })
        };
        // Bit i of a little-endian word of four bytes.
        let fifth = |at: usize| i64::from(block[at + i / 8] >> (i % 8) & 1) << 4;
        let plain = |q, minimum| Self { q, scale: 1, d: float(0), minimum };
        match format {
            Format::Q4_0 => plain(nibble(2) - 8, Minimum::None),
            Format::Q4_1 => plain(nibble(4), Minimum::Plus(float(2))),
            Format::Q5_0 => plain((nibble(6) | fifth(2)) - 16, Minimum::None),
            Format::Q5_1 => plain(nibble(8) | fifth(4), Minimum::Plus(float(2))),
            Format::Q8_0 => plain(i64::from(block[2 + i].cast_signed()), Minimum::None),
            Format::Q4K => with_six_bit_scales(block, i, nibble_of_64(&block[16..], i)),
            Format::Q5K => {
                // Bit j of byte l is for weight l of the j-th 32.
                let fifth = i64::from(block[16 + i % 32] >> (i / 32) & 1) << 4;
                with_six_bit_scales(block, i, nibble_of_64(&block[48..], i) | fifth)
            }
            Format::Q6K => {
                let scale = i64::from(block[192 + i / 16].cast_signed());
                Self { q: six_bits(block, i), scale, d: float(208), minimum: Minimum::None }
            }
            _ => panic!("{format} has no blocks"),
        }
    }

    /// The weight as a float: `q·(d·scale)`, and then the minimum, each operation rounded.
    pub(crate) fn value(self) -> f32 {
        let scaled = mul(mul(self.d, from_integer(self.scale)), from_integer(self.q));
        match self.minimum {
            Minimum::None => scaled,
            Minimum::Plus(m) => add(scaled, m),
            Minimum::Minus(dmin, integer) => sub(scaled, mul(dmin, from_integer(integer))),
        }
    }
}

/// For each 64 weights there are 32 bytes: the low halves are the first 32, the high halves the others.
fn nibble_of_64(bytes: &[u8], i: usize) -> i64 {
    let byte = bytes[i / 64 * 32 + i % 32];
    i64::from(if i % 64 < 32 { byte & 15 } else { byte >> 4 })
}

fn with_six_bit_scales(block: &[u8], i: usize, q: i64) -> Weight {
    let float = |at: usize| from_f16(u16::from_le_bytes([block[at], block[at + 1]]));
    let (packed, j) = (&block[4..16], i / 32);
    let (scale, minimum) = match j {
        0..4 => (packed[j] & 63, packed[j + 4] & 63),
        _ => (
            (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4,
            (packed[j + 4] >> 4) | (packed[j] >> 6) << 4,
        ),
    };
    let minimum = Minimum::Minus(float(2), minimum.into());
    Weight { q, scale: scale.into(), d: float(0), minimum }
}

/// Q6_K: for each 128 weights, 64 bytes of low halves and 32 bytes of upper pairs.
fn six_bits(block: &[u8], i: usize) -> i64 {
    let (low, high) = (&block[i / 128 * 64..], &block[128 + i / 128 * 32..]);
    let l = i % 32;
    let (nibble, pair) = match i % 128 / 32 {
        0 => (low[l] & 15, high[l] & 3),
        1 => (low[l + 32] & 15, high[l] >> 2 & 3),
        2 => (low[l] >> 4, high[l] >> 4 & 3),
        _ => (low[l + 32] >> 4, high[l] >> 6 & 3),
    };
    i64::from(nibble | pair << 4) - 32
}
