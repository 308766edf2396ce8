//! Seeded data: the same bits on every machine and for every number of filling threads.

#![forbid(unsafe_code)]

use std::thread;

use rowpar::Matrix;

/// Elements that share one generator; the unit in which threads divide a fill.
const BLOCK_LEN: usize = 1 << 16;

/// SplitMix64: tiny, fast, and good enough for benchmark data and jitter.
///
/// ```
/// let mut random = benches::SplitMix64::new(7);
/// assert_ne!(random.next_u64(), random.next_u64());
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator whose sequence depends on nothing but `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0.0..1.0`.
    pub fn next_unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Maps 32 random bits to a multiple of 2⁻²³ in `-1.0..1.0`, exactly.
#[inline]
fn unit_f32(bits: u32) -> f32 {
    ((bits as i32) >> 8) as f32 * (1.0 / 8_388_608.0)
}

/// Maps 32 random bits to the bits of two halves that are about one as a bfloat16 and about two as a binary16.
#[inline]
fn noise_f32(bits: u32) -> f32 {
    f32::from_bits(bits & 0x80ff_80ff | 0x3f00_3f00)
}

/// Fills `out` with numbers in `-scale..scale` that depend only on `seed`, with up to `n_threads` threads.
///
/// Each thread fills one contiguous part, as the threads of a pool will read it: on a machine with
/// several memory nodes the pages land near their readers.
pub fn fill_uniform(out: &mut [f32], seed: u64, scale: f32, n_threads: usize) {
    fill(out, seed, n_threads, |bits| unit_f32(bits) * scale);
}

/// Fills `out` with bytes that are weights in every format, as fast as memory takes them.
///
/// Read as any [`rowpar::Format`] they are finite, and floats and scales are between 1/2 and 2: a subnormal number
/// among them would cost as much as a hundred others. Otherwise as [`fill_uniform`].
pub fn fill_noise(out: &mut [f32], seed: u64, n_threads: usize) {
    fill(out, seed, n_threads, noise_f32);
}

/// The bytes of numbers, as they lie in memory.
pub fn as_bytes(values: &[f32]) -> &[u8] {
    Matrix::from_f32(values, 1, values.len()).expect("one row of all values").bytes()
}

fn fill(out: &mut [f32], seed: u64, n_threads: usize, value: impl Fn(u32) -> f32 + Copy + Send) {
    let n_blocks = out.len().div_ceil(BLOCK_LEN);
    let blocks_per_thread = n_blocks.div_ceil(n_threads.max(1)).max(1);
    let parts = out.chunks_mut(blocks_per_thread * BLOCK_LEN).enumerate();
    thread::scope(|scope| {
        for (part_index, part) in parts {
            scope.spawn(move || fill_part(part, seed, part_index * blocks_per_thread, value));
        }
    });
}

fn fill_part(part: &mut [f32], seed: u64, first_block: usize, value: impl Fn(u32) -> f32 + Copy) {
    for (index, block) in part.chunks_mut(BLOCK_LEN).enumerate() {
        let block_seed = SplitMix64::new((first_block + index) as u64).next_u64();
        fill_block(block, SplitMix64::new(seed ^ block_seed), value);
    }
}

fn fill_block(block: &mut [f32], mut random: SplitMix64, value: impl Fn(u32) -> f32) {
    let (pairs, rest) = block.as_chunks_mut::<2>();
    for pair in pairs {
        let bits = random.next_u64();
        *pair = [value(bits as u32), value((bits >> 32) as u32)];
    }
    for last in rest {
        *last = value(random.next_u64() as u32);
    }
}

/// A vector of `len` numbers as [`fill_uniform`] makes them.
pub fn uniform(len: usize, seed: u64, scale: f32, n_threads: usize) -> Vec<f32> {
    let mut data = vec![0.0; len];
    fill_uniform(&mut data, seed, scale, n_threads);
    data
}

#[cfg(test)]
mod tests {
    use rowpar::Format;

    use super::*;

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        for len in [0, 1, BLOCK_LEN - 1, BLOCK_LEN, 3 * BLOCK_LEN + 5] {
            let one = uniform(len, 42, 1.0, 1);
            for n_threads in [2, 3, 7] {
                assert_eq!(uniform(len, 42, 1.0, n_threads), one, "{len} with {n_threads}");
            }
        }
    }

    #[test]
    fn noise_is_ordinary_numbers_in_every_format() {
        let mut noise = vec![0.0; 8192];
        fill_noise(&mut noise, 3, 2);
        for format in Format::ALL {
            let n_cols = 4 * format.block_len();
            let row_bytes = format.row_bytes(n_cols).unwrap();
            let n_rows = 4 * noise.len() / row_bytes;
            let bytes = &as_bytes(&noise)[..n_rows * row_bytes];
            let w = Matrix::new(*format, n_rows, n_cols, bytes).unwrap();
            let mut row = vec![0.0; n_cols];
            let mut n_zeros = 0;
            for i in 0..n_rows {
                w.row_to_f32(i, &mut row);
                assert!(row.iter().all(|v| v.is_finite() && !v.is_subnormal()), "{format}");
                n_zeros += row.iter().filter(|v| **v == 0.0).count();
            }
            assert!(n_zeros * 4 < n_rows * n_cols, "{format}: {n_zeros} zeros");
        }
    }

    #[test]
    fn values_are_spread_over_the_interval() {
        let data = uniform(4 * BLOCK_LEN, 1, 0.5, 2);
        let mean = data.iter().map(|&v| f64::from(v)).sum::<f64>() / data.len() as f64;
        let variance = data.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / data.len() as f64;
        assert!(data.iter().all(|v| (-0.5..0.5).contains(v)));
        assert!(mean.abs() < 0.01, "mean {mean}");
        assert!((variance - 0.25 / 3.0).abs() < 0.005, "variance {variance}");
    }

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs for seed 1234567, as published with the reference code.
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }
}
