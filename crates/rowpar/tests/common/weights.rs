//! Rows of every format, of bytes that nobody quantized, and inputs for them.

use rowpar::{Activation, Format, Matrix, Q8Activation, oracle};

use super::{Random, Values};

/// What kind of bytes rows are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    /// Any integers, and floats of about one size, either sign.
    Tame,
    /// Any bytes at all: a float may be infinite or NaN.
    Wild,
    /// Any integers, and subnormal floats.
    Subnormal,
    /// Any integers, and floats that are zero, infinite, NaN, or the largest.
    Special,
    /// All bits of the integers set, or all cleared, block by block: the lowest and the highest.
    Extreme,
}

impl Bits {
    pub(crate) const ALL: [Self; 5] =
        [Self::Tame, Self::Wild, Self::Subnormal, Self::Special, Self::Extreme];

    /// A binary16 or, for `Bf16`, the upper half of a binary32.
    fn half(self, random: &mut Random, is_bf16: bool) -> u16 {
        let any = (random.next() >> 40) as u16;
        let exponent_bits = if is_bf16 { 0x7f80 } else { 0x7c00 };
        match self {
            Self::Wild => any,
            Self::Subnormal => any & !exponent_bits,
            Self::Special => {
                let special = [0, exponent_bits, exponent_bits | 0x40, exponent_bits - 1, 1];
                any & 0x8000 | special[random.below(special.len())]
            }
            // Exponents around that of one.
            Self::Tame | Self::Extreme if is_bf16 => {
                any & 0x807f | (125 + random.below(4) as u16) << 7
            }
            Self::Tame | Self::Extreme => any & 0x83ff | (12 + random.below(5) as u16) << 10,
        }
    }

    fn float(self, random: &mut Random) -> f32 {
        let seed = random.next();
        match self {
            Self::Wild => f32::from_bits((seed >> 32) as u32),
            Self::Subnormal => f32::from_bits((seed >> 32) as u32 & 0x807f_ffff),
            Self::Special => Values::Special.fill(1, seed)[0],
            Self::Tame | Self::Extreme => Values::Tame.fill(1, seed)[0],
        }
    }
}

/// Where the floats of a block are.
pub(crate) fn halves(format: Format) -> &'static [usize] {
    match format {
        Format::F32 => &[],
        Format::F16 | Format::Bf16 | Format::Q8_0 | Format::Q5_0 | Format::Q4_0 => &[0],
        Format::Q6K => &[208],
        _ => &[0, 2],
    }
}

/// The bytes of `n_weights` weights.
pub(crate) fn weights(
    random: &mut Random,
    format: Format,
    n_weights: usize,
    bits: Bits,
) -> Vec<u8> {
    let n_bytes = format.row_bytes(n_weights).expect("whole blocks");
    let mut bytes = Vec::with_capacity(n_bytes);
    while bytes.len() < n_bytes {
        bytes.extend(random.next().to_le_bytes());
    }
    bytes.truncate(n_bytes);
    for block in bytes.chunks_exact_mut(format.block_bytes()) {
        if bits == Bits::Extreme {
            block.fill(if random.below(2) == 0 { 0 } else { 0xff });
        }
        for half in halves(format) {
            let half_bits = bits.half(random, format == Format::Bf16);
            block[*half..half + 2].copy_from_slice(&half_bits.to_le_bytes());
        }
        if format == Format::F32 {
            block.copy_from_slice(&bits.float(random).to_le_bytes());
        }
    }
    bytes
}

pub(crate) fn quantized(x: &[f32]) -> Q8Activation {
    let mut quantized = Q8Activation::new();
    quantized.quantize(x);
    quantized
}

/// What the oracle makes of every row and input, one output after another. The rows are not packed.
pub(crate) fn by_oracle(w: Matrix<'_>, x: &[Activation<'_>]) -> Vec<f32> {
    assert!(!w.is_packed());
    let mut out = Vec::with_capacity(w.n_rows() * x.len());
    for x in x {
        for row in 0..w.n_rows() {
            let row = &w.bytes()[row * w.row_bytes()..][..w.row_bytes()];
            out.push(match x {
                Activation::F32(x) => oracle::dot(w.format(), row, x),
                Activation::Q8(x) => oracle::dot_q8(w.format(), row, x),
            });
        }
    }
    out
}
