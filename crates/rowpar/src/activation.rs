//! Inputs of a matvec: floats, or quantized once for all matrices that share them.

#![forbid(unsafe_code)]

use crate::Kernels;

/// Values of a block of a quantized input.
pub(crate) const ACTIVATION_BLOCK: usize = 32;

/// What the largest magnitude of a block becomes.
const Q_MAX: f32 = 127.0;
/// Blocks of smaller magnitudes are zero: long before `127 / amax` is no longer a finite float.
const TINY: f32 = f32::from_bits((127 - 100) << 23); // 2^-100
/// Added to a value within ±2^22, it leaves the nearest integer in the lowest bits, ties to even: on every CPU, by IEEE
/// arithmetic alone.
const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23

/// An input of a matvec.
#[derive(Clone, Copy, Debug)]
pub enum Activation<'a> {
    /// As it is. Every weight is widened to `f32`, and a row is the literal loop over products.
    F32(&'a [f32]),
    /// Quantized: block weights are multiplied as integers. Float weights take the values as they were.
    Q8(&'a Q8Activation),
}

impl<'a> Activation<'a> {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.values().len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values, as they were before quantization.
    pub fn values(&self) -> &'a [f32] {
        match self {
            Self::F32(values) => values,
            Self::Q8(quantized) => quantized.values(),
        }
    }
}

impl<'a> From<&'a [f32]> for Activation<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a Q8Activation> for Activation<'a> {
    fn from(quantized: &'a Q8Activation) -> Self {
        Self::Q8(quantized)
    }
}

/// An input in blocks of 32 integers with a scale each, for block weights. Quantize once, use for every matrix of a group.
///
/// Quantization is defined to the bit, on every CPU. For a block with the largest magnitude `amax`:
///
/// - `amax` infinite, or a value that is NaN: the scale is NaN and the integers are 0, so that every row becomes NaN;
/// - `amax < 2⁻¹⁰⁰`: the scale and the integers are 0;
/// - else `scale = amax / 127`, kept in `f32`, and `q = x · (127 / amax)`, rounded to the nearest integer, ties to even,
///   within ±127.
///
/// A last block that is not full counts the missing values as 0. The values themselves are kept as well: float weights
/// use them.
///
/// # Examples
///
/// ```
/// use rowpar::Q8Activation;
///
/// let mut x = Q8Activation::new();
/// x.quantize(&[1.0, -0.5, 0.25, 0.0]);
/// assert_eq!(x.len(), 4);
/// assert_eq!(x.block(0).scale, 1.0 / 127.0);
/// assert_eq!(x.block(0).q[..4], [127, -64, 32, 0]); // -63.5 and 31.75
/// ```
#[derive(Clone, Debug, Default)]
pub struct Q8Activation {
    values: Vec<f32>,
    blocks: Vec<Q8Block>,
}

/// 32 values of a [`Q8Activation`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(16))]
pub struct Q8Block {
    /// Integers within ±127.
    pub q: [i8; ACTIVATION_BLOCK],
    /// What they are multiplied with.
    pub scale: f32,
    /// The sum of all integers, exactly.
    pub sum: f32,
    /// The sums of the first and of the second sixteen integers, exactly.
    pub half_sums: [f32; 2],
}

impl Q8Activation {
    /// Without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the values of `x`, in the memory of the last ones if that suffices.
    ///
    /// Works under the default floating-point environment, whatever the thread has set.
    pub fn quantize(&mut self, x: &[f32]) {
        self.values.clear();
        self.values.extend_from_slice(x);
        self.blocks.resize(x.len().div_ceil(ACTIVATION_BLOCK), Q8Block::ZERO);
        Kernels::best().quantize(x, &mut self.blocks);
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values before quantization.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Values `32 * index` and on.
    ///
    /// # Panics
    ///
    /// If there are no such values.
    pub fn block(&self, index: usize) -> &Q8Block {
        &self.blocks[index]
    }

    pub(crate) fn blocks(&self) -> &[Q8Block] {
        &self.blocks
    }
}

impl Q8Block {
    const ZERO: Self = Self { q: [0; ACTIVATION_BLOCK], scale: 0.0, sum: 0.0, half_sums: [0.0; 2] };

    /// Plain loops, which the compiler turns into vectors where it is called.
    #[inline(always)]
    pub(crate) fn of(x: &[f32; ACTIVATION_BLOCK]) -> Self {
        // Magnitudes as integers are in the order of the floats, with infinity and NaN at the end.
        let mut largest = 0;
        for x in x {
            largest = largest.max(x.to_bits() & 0x7fff_ffff);
        }
        let amax = f32::from_bits(largest);
        if !amax.is_finite() || amax < TINY {
            let scale = if amax.is_finite() { 0.0 } else { f32::NAN };
            return Self { q: [0; ACTIVATION_BLOCK], scale, sum: 0.0, half_sums: [0.0; 2] };
        }
        let factor = Q_MAX / amax;
        let mut q = [0; ACTIVATION_BLOCK];
        for (q, x) in q.iter_mut().zip(x) {
            // The sum's lowest bits are the integer, which is within ±127: no value is larger than `amax`.
            *q = (x * factor + ROUND).to_bits() as i8;
        }
        let mut half_sums = [0.0; 2];
        for (sum, q) in half_sums.iter_mut().zip(q.as_chunks::<16>().0) {
            let mut integer = 0;
            for q in q {
                integer += i32::from(*q);
            }
            *sum = integer as f32;
        }
        Self { q, scale: amax / Q_MAX, sum: half_sums[0] + half_sums[1], half_sums }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantized(x: &[f32]) -> Q8Activation {
        let mut quantized = Q8Activation::new();
        quantized.quantize(x);
        quantized
    }

    #[test]
    fn the_rounding_constant_agrees_with_round_ties_even() {
        for step in -2549..=2549 {
            let x = step as f32 / 20.0;
            assert_eq!((x + ROUND).to_bits() as i8, x.round_ties_even() as i8, "{x}");
        }
    }

    #[test]
    fn blocks_without_a_finite_scale() {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let block = *quantized(&[1.0, bad, 2.0]).block(0);
            assert!(block.scale.is_nan() && block.q == [0; 32] && block.half_sums == [0.0; 2]);
        }
        for small in [0.0, -0.0, 1e-45, -7e-31] {
            let block = *quantized(&[small; 32]).block(0);
            assert_eq!((block.scale, block.q), (0.0, [0; 32]), "{small}");
        }
        let block = *quantized(&[8e-31, f32::MIN_POSITIVE]).block(0);
        assert_eq!((block.q[0], block.q[1]), (127, 0));
        assert_eq!(quantized(&[f32::MAX, f32::MIN]).block(0).q[..2], [127, -127]);
    }

    #[test]
    fn sums_are_those_of_the_integers_and_the_rest_is_padded() {
        let x: Vec<f32> = (0..75).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
        let quantized = quantized(&x);
        assert_eq!((quantized.len(), quantized.blocks().len()), (75, 3));
        assert_eq!(quantized.block(2).q[11..], [0; 21]);
        for block in quantized.blocks() {
            let sum = |q: &[i8]| q.iter().map(|q| i32::from(*q)).sum::<i32>() as f32;
            assert_eq!(block.half_sums, [sum(&block.q[..16]), sum(&block.q[16..])]);
            assert_eq!(block.sum, sum(&block.q));
        }
    }

    #[test]
    fn every_set_of_kernels_quantizes_the_same() {
        // Any bits at all, and values of about one size: a last block that is not full, too.
        let bits = (1..3000_u32).map(|i| i.wrapping_mul(0x9e37_79b9));
        let any: Vec<f32> = bits.clone().map(f32::from_bits).collect();
        let tame: Vec<f32> = bits.map(|bits| bits as i32 as f32 * 1e-9).collect();
        for x in [&any[..], &tame[..], &any[..1], &tame[..31], &tame[..32], &[]] {
            let quantized = quantized(x);
            for kernels in Kernels::supported() {
                let mut blocks = vec![Q8Block::ZERO; quantized.blocks().len()];
                kernels.quantize(x, &mut blocks);
                for (found, expected) in blocks.iter().zip(quantized.blocks()) {
                    assert_eq!(found.q, expected.q, "{}", kernels.isa());
                    assert_eq!((found.sum, found.half_sums), (expected.sum, expected.half_sums));
                    let same_nan = found.scale.is_nan() && expected.scale.is_nan();
                    assert!(same_nan || found.scale.to_bits() == expected.scale.to_bits());
                }
            }
        }
    }
}
