//! Weights from floats, as simply as each format allows.

#![forbid(unsafe_code)]

use crate::{Format, MatrixError, kernel::DefaultFpEnv, oracle::f16_to_f32};

/// Weights of a block that is one part.
const SHORT: usize = 32;
/// Weights of a block of several parts.
const LONG: usize = 256;

impl Format {
    /// The bytes of rows of weights, one value after another: for tests, examples and small tools.
    ///
    /// Floats are rounded to the nearest, ties to even. A block takes its scale from its largest magnitude, or its scale and
    /// minimum from the range of its values, and each weight is the nearest one that these allow. That is the simplest way and
    /// not the best: quantizers that search for scales lose less.
    ///
    /// A block with a value that is not finite, or whose scale is more than a binary16 holds, becomes NaN as a whole. Works
    /// under the default floating-point environment, whatever the thread has set.
    ///
    /// # Errors
    ///
    /// [`MatrixError::Blocks`] if the values are no whole number of blocks.
    ///
    /// # Examples
    ///
    /// ```
    /// use rowpar::{Format, Matrix, Serial, matvec};
    ///
    /// let values: Vec<f32> = (0..64).map(|i| i as f32 - 32.0).collect();
    /// let bytes = Format::Q8_0.quantize(&values)?;
    /// let w = Matrix::new(Format::Q8_0, 2, 32, &bytes)?;
    ///
    /// let mut row = [0.0; 32];
    /// w.row_to_f32(1, &mut row);
    /// assert!(row.iter().zip(&values[32..]).all(|(weight, value)| (weight - value).abs() < 0.13));
    /// assert!(Format::Q8_0.quantize(&values[1..]).is_err());
    /// # Ok::<(), rowpar::MatrixError>(())
    /// ```
    pub fn quantize(self, values: &[f32]) -> Result<Vec<u8>, MatrixError> {
        let n_bytes = self.row_bytes(values.len());
        let n_bytes = n_bytes.ok_or(MatrixError::Blocks { format: self, n_cols: values.len() })?;
        let _env = DefaultFpEnv::enter();
        let mut bytes = Vec::with_capacity(n_bytes);
        match self {
            Self::F32 => values.iter().for_each(|x| bytes.extend(x.to_le_bytes())),
            Self::F16 => values.iter().for_each(|x| bytes.extend(f16_bits(*x).to_le_bytes())),
            Self::Bf16 => values.iter().for_each(|x| bytes.extend(bf16_bits(*x).to_le_bytes())),
            Self::Q8_0 => blocks(values, |x| q8_0(x, &mut bytes)),
            Self::Q5_0 => blocks(values, |x| centered(x, 16, &mut bytes)),
            Self::Q4_0 => blocks(values, |x| centered(x, 8, &mut bytes)),
            Self::Q5_1 => blocks(values, |x| from_minimum(x, 31, &mut bytes)),
            Self::Q4_1 => blocks(values, |x| from_minimum(x, 15, &mut bytes)),
            Self::Q4K => blocks(values, |x| in_parts(x, 15, &mut bytes)),
            Self::Q5K => blocks(values, |x| in_parts(x, 31, &mut bytes)),
            Self::Q6K => blocks(values, |x| q6_k(x, &mut bytes)),
        }
        Ok(bytes)
    }
}

/// Calls `f` for each block. One that is not finite is given as infinities, which no scale has room for.
fn blocks<const N: usize>(values: &[f32], mut f: impl FnMut(&[f32; N])) {
    for block in values.as_chunks().0 {
        let is_finite = block.iter().all(|x| x.is_finite());
        f(if is_finite { block } else { &[f32::INFINITY; N] });
    }
}

fn q8_0(x: &[f32; SHORT], bytes: &mut Vec<u8>) {
    let d = Half::scale(largest(x) / 127.0);
    bytes.extend(d.bits.to_le_bytes());
    bytes.extend(x.map(|x| nearest(x, d.value, -127.0, 127.0) as i8 as u8));
}

/// Q4_0 and Q5_0: `offset` stands for zero.
fn centered(x: &[f32; SHORT], offset: u8, bytes: &mut Vec<u8>) {
    let limit = f32::from(offset - 1);
    let d = Half::scale(largest(x) / limit);
    bytes.extend(d.bits.to_le_bytes());
    let q = x.map(|x| (nearest(x, d.value, -limit, limit) as i8 + offset as i8) as u8);
    short_integers(&q, offset > 8, bytes);
}

/// Q4_1 and Q5_1: 0 stands for the lowest value, `limit` for the highest.
fn from_minimum(x: &[f32; SHORT], limit: u8, bytes: &mut Vec<u8>) {
    let [lowest, highest] = extent(x);
    let d = Half::scale((highest - lowest) / f32::from(limit));
    let m = Half::scale(lowest);
    bytes.extend(d.bits.to_le_bytes());
    bytes.extend(m.bits.to_le_bytes());
    let q = x.map(|x| nearest(x - m.value, d.value, 0.0, f32::from(limit)) as u8);
    short_integers(&q, limit > 15, bytes);
}

/// A word of fifth bits, if there are any, and sixteen bytes of nibbles.
fn short_integers(q: &[u8; SHORT], has_fifth_bits: bool, bytes: &mut Vec<u8>) {
    let mut fifth_bits = 0_u32;
    let mut nibbles = [0; SHORT / 2];
    for (i, q) in q.iter().enumerate() {
        fifth_bits |= u32::from(q >> 4) << i;
        nibbles[i % 16] |= (q & 15) << (i / 16 * 4);
    }
    if has_fifth_bits {
        bytes.extend(fifth_bits.to_le_bytes());
    }
    bytes.extend(nibbles);
}

/// Q4_K and Q5_K: each part has a minimum that is not above zero, and a step that reaches its highest value from there.
/// Their integers are rounded up; the floats are rounded to nearest, which may cut a range by as much as that is off.
fn in_parts(x: &[f32; LONG], limit: u8, bytes: &mut Vec<u8>) {
    let parts: &[[f32; SHORT]] = x.as_chunks().0;
    let extents: [[f32; 2]; 8] = std::array::from_fn(|part| extent(&parts[part]));

    let depths = extents.map(|[lowest, _]| (-lowest).max(0.0));
    let dmin = Half::scale(largest(&depths) / 63.0);
    let minima = depths.map(|depth| multiples_up(depth, dmin.value, 63.0));
    let floors = minima.map(|minimum| dmin.value * minimum);
    let steps: [f32; 8] =
        std::array::from_fn(|part| (extents[part][1] + floors[part]).max(0.0) / f32::from(limit));
    let d = Half::scale(largest(&steps) / 63.0);
    let scales = steps.map(|step| multiples_up(step, d.value, 63.0));

    bytes.extend(d.bits.to_le_bytes());
    bytes.extend(dmin.bits.to_le_bytes());
    bytes.extend(six_bits(scales.map(|scale| scale as u8), minima.map(|minimum| minimum as u8)));
    let (mut fifth_bits, mut nibbles) = ([0; 32], [0; 128]);
    for (i, x) in x.iter().enumerate() {
        let (part, place) = (i / 32, i % 32);
        let step = d.value * scales[part];
        let q = nearest(x + floors[part], step, 0.0, f32::from(limit)) as u8;
        fifth_bits[place] |= (q >> 4) << part;
        nibbles[part / 2 * 32 + place] |= (q & 15) << (part % 2 * 4);
    }
    if limit > 15 {
        bytes.extend(fifth_bits);
    }
    bytes.extend(nibbles);
}

/// Eight scales and eight minima in twelve bytes.
fn six_bits(scales: [u8; 8], minima: [u8; 8]) -> [u8; 12] {
    let mut packed = [0; 12];
    for part in 0..4 {
        let (scale, minimum) = (scales[part + 4], minima[part + 4]);
        packed[part] = scales[part] | (scale >> 4) << 6;
        packed[part + 4] = minima[part] | (minimum >> 4) << 6;
        packed[part + 8] = (scale & 15) | (minimum & 15) << 4;
    }
    packed
}

fn q6_k(x: &[f32; LONG], bytes: &mut Vec<u8>) {
    let sixteens: &[[f32; 16]] = x.as_chunks().0;
    let steps: [f32; 16] = std::array::from_fn(|part| largest(&sixteens[part]) / 31.0);
    let d = Half::scale(largest(&steps) / 127.0);
    let scales = steps.map(|step| multiples_up(step, d.value, 127.0));

    let (mut nibbles, mut pairs) = ([0; 128], [0; 64]);
    for (i, x) in x.iter().enumerate() {
        let q = (nearest(*x, d.value * scales[i / 16], -32.0, 31.0) as i8 + 32) as u8;
        let (half, part, place) = (i / 128, i / 32 % 4, i % 32);
        nibbles[64 * half + part % 2 * 32 + place] |= (q & 15) << (part / 2 * 4);
        pairs[32 * half + place] |= (q >> 4) << (2 * part);
    }
    bytes.extend(nibbles);
    bytes.extend(pairs);
    bytes.extend(scales.map(|scale| scale as i8 as u8));
    bytes.extend(d.bits.to_le_bytes());
}

/// A binary16 and its value.
struct Half {
    bits: u16,
    value: f32,
}

impl Half {
    /// The nearest to a number; NaN instead of infinity.
    fn scale(value: f32) -> Self {
        let bits = f16_bits(value);
        let value = f16_to_f32(bits);
        if value.is_finite() {
            Self { bits, value }
        } else {
            Self { bits: 0x7e00, value: f32::NAN }
        }
    }
}

/// The lowest and the highest of some values.
fn extent(x: &[f32]) -> [f32; 2] {
    [
        x.iter().copied().fold(f32::INFINITY, f32::min),
        x.iter().copied().fold(f32::NEG_INFINITY, f32::max),
    ]
}

fn largest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |largest, x| largest.max(x.abs()))
}

/// The multiple of `step` that is nearest to `x`, within limits; 0 if there is no step.
fn nearest(x: f32, step: f32, lowest: f32, highest: f32) -> f32 {
    if step > 0.0 { (x / step).round_ties_even().clamp(lowest, highest) } else { 0.0 }
}

/// The first multiple of `unit` that is not below `x`, or `highest`; 0 if there is no unit.
fn multiples_up(x: f32, unit: f32, highest: f32) -> f32 {
    if unit > 0.0 { (x / unit).ceil().min(highest) } else { 0.0 }
}

/// The nearest binary16, ties to even. A NaN stays one, and what is too large becomes infinite.
fn f16_bits(value: f32) -> u16 {
    let sign = (value.to_bits() >> 16) as u16 & 0x8000;
    let magnitude = value.to_bits() & 0x7fff_ffff;
    let exponent = magnitude >> 23;
    let rounded = match exponent {
        // Below half of the least subnormal, 2^-25.
        ..102 => 0,
        // Subnormal: in units of 2^-24, of which a binary32 with the exponent 103 is the first.
        102..113 => round_off(magnitude & 0x007f_ffff | 0x0080_0000, 126 - exponent),
        // The exponents are 112 apart. A carry goes into the exponent, and at the end into infinity.
        113..143 => round_off(magnitude - (112 << 23), 13),
        255 if magnitude > 0x7f80_0000 => 0x7e00 | magnitude >> 13 & 0x1ff,
        _ => 0x7c00,
    };
    sign | rounded as u16
}

/// The nearest upper half, ties to even. A NaN stays one.
fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() { (bits >> 16) as u16 | 0x40 } else { round_off(bits, 16) as u16 }
}

/// `bits / 2^n`, rounded to the nearest, ties to even.
fn round_off(bits: u32, n: u32) -> u32 {
    let is_odd = bits >> n & 1;
    (bits + (1 << (n - 1)) - 1 + is_odd) >> n
}
