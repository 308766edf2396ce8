//! The oracle itself: against arithmetic in integers, and a reading of blocks from their description alone.

mod blocks;
mod common;
mod exact;

use blocks::{Minimum, Weight};
use common::{Bits, Random, Values, assert_same, weights};
use exact::{add, div, exact as exactly, from_f16, from_integer, mul, sub};
use rowpar::{Format, Q8Activation, oracle};

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn arithmetic_in_integers_is_that_of_the_processor() {
    // Not what is tested here: that the yardstick is straight.
    let mut random = Random(3);
    for round in 0..60_000 {
        let values = Values::ALL[round % Values::ALL.len()];
        let [a, b] = [0, 1].map(|_| values.fill(1, random.next())[0]);
        // Neighbours of a number cancel in part.
        let c = f32::from_bits(a.to_bits() ^ (1 << 31) ^ (random.next() as u32 & 7));
        for (a, b) in [(a, b), (b, a), (a, c)] {
            assert!(same(mul(a, b), a * b), "{a:e} * {b:e}");
            assert!(same(add(a, b), a + b), "{a:e} + {b:e}");
            assert!(same(sub(a, b), a - b), "{a:e} - {b:e}");
        }
        let [a, b] = [a, b].map(f32::abs);
        if a.is_finite() && b.is_finite() && b > 0.0 {
            assert!(same(div(a, b), a / b), "{a:e} / {b:e}");
        }
    }
}

#[test]
fn every_binary16_and_bfloat16_is_widened_exactly() {
    for bits in 0..=u16::MAX {
        assert!(same(oracle::f16_to_f32(bits), from_f16(bits)), "{bits:#06x}");
        assert_eq!(oracle::bf16_to_f32(bits).to_bits(), u32::from(bits) << 16);
    }
}

/// The documented quantizer of inputs, one block: integers and scale.
fn quantized(x: &[f32]) -> ([i64; 32], f32) {
    let mut q = [0; 32];
    if x.iter().any(|x| !x.is_finite()) {
        return (q, f32::NAN);
    }
    let amax = x.iter().fold(0.0, |amax: f32, x| amax.max(x.abs()));
    if amax < f32::from_bits((127 - 100) << 23) {
        return (q, 0.0);
    }
    let factor = div(127.0, amax);
    for (q, x) in q.iter_mut().zip(x) {
        *q = (exactly(mul(*x, factor)).round_to_integer() as i64).clamp(-127, 127);
    }
    (q, div(amax, 127.0))
}

#[test]
fn inputs_are_quantized_as_documented() {
    let mut random = Random(11);
    let mut activation = Q8Activation::new();
    for round in 0..400 {
        let values = Values::ALL[round % Values::ALL.len()];
        let mut x = values.fill(1 + random.below(100), random.next());
        match round % 5 {
            // Every magnitude that blocks may have, and the one below which there are none.
            0 => x.iter_mut().for_each(|x| *x *= f32::from_bits((random.below(254) as u32) << 23)),
            1 => {
                x.fill(-1e-38);
                let limit = (127 - 100) << 23;
                x.iter_mut()
                    .step_by(32)
                    .for_each(|x| *x = f32::from_bits(limit - 1 + random.below(3) as u32));
            }
            // Halves between integers: 127 makes the factor 1.
            2 => {
                x.iter_mut().for_each(|x| *x = random.below(255) as f32 - 127.0 + 0.5);
                x.iter_mut().step_by(32).for_each(|x| *x = -127.0);
            }
            _ => {}
        }
        activation.quantize(&x);
        assert_same(activation.values(), &x, &|| "values are kept".into());
        for (index, x) in x.chunks(32).enumerate() {
            let (q, scale) = quantized(x);
            let block = activation.block(index);
            assert!(same(block.scale, scale), "{x:?}");
            assert_eq!(block.q.map(i64::from), q, "{x:?}");
            let halves = [&q[..16], &q[16..]].map(|half| half.iter().sum::<i64>());
            assert_eq!(block.half_sums.map(|sum| sum as i64), halves);
            assert_eq!(block.sum, from_integer(halves[0] + halves[1]));
        }
    }
}

/// A row with a quantized input, as documented: integers of 32 columns exactly, then each operation rounded.
fn dot_q8(format: Format, row: &[u8], x: &[f32]) -> f32 {
    let (block_len, block_bytes) = (format.block_len(), format.block_bytes());
    let mut acc = 0.0;
    for (index, x) in x.chunks(32).enumerate() {
        let (x, scale) = quantized(x);
        let first = index * 32;
        let block = &row[first / block_len * block_bytes..][..block_bytes];
        let weights: [Weight; 32] =
            std::array::from_fn(|i| Weight::read(format, block, first % block_len + i));
        let sum: i64 = weights.iter().zip(x).map(|(w, x)| w.scale * w.q * x).sum();
        assert!(sum.abs() < 1 << 24, "{sum} is not exact as a float");
        let sum_of_x = x.iter().sum::<i64>();
        let product = mul(from_integer(sum), mul(weights[0].d, scale));
        let product = match weights[0].minimum {
            Minimum::None => product,
            Minimum::Plus(m) => add(product, mul(from_integer(sum_of_x), mul(m, scale))),
            Minimum::Minus(dmin, minimum) => {
                sub(product, mul(from_integer(minimum * sum_of_x), mul(dmin, scale)))
            }
        };
        acc = add(acc, product);
    }
    acc
}

/// A row with an input of floats: the literal loop over widened weights.
fn dot(weights: &[f32], x: &[f32]) -> f32 {
    weights.iter().zip(x).fold(0.0, |acc, (w, x)| add(acc, mul(*w, *x)))
}

/// The weights of a row, each by itself.
fn widened(format: Format, row: &[u8]) -> Vec<f32> {
    let blocks = row.chunks_exact(format.block_bytes());
    match format {
        Format::F32 => blocks.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        Format::F16 => blocks.map(|b| from_f16(u16::from_le_bytes([b[0], b[1]]))).collect(),
        Format::Bf16 => blocks.map(|b| f32::from_le_bytes([0, 0, b[0], b[1]])).collect(),
        _ => blocks
            .flat_map(|block| {
                (0..format.block_len()).map(|i| Weight::read(format, block, i).value())
            })
            .collect(),
    }
}

#[test]
fn rows_are_read_and_multiplied_as_documented() {
    let mut random = Random(17);
    let mut activation = Q8Activation::new();
    for format in Format::ALL {
        for round in 0..24 {
            let n_cols = format.block_len() * (1 + round % 3);
            let n_cols = if format.is_block() { n_cols } else { 7 * n_cols };
            let bits = Bits::ALL[round % Bits::ALL.len()];
            let row = weights(&mut random, *format, n_cols, bits);
            let context = || format!("{format}, {n_cols} columns, {bits:?}");

            let expected = widened(*format, &row);
            let mut found = vec![0.0; n_cols];
            oracle::row_to_f32(*format, &row, &mut found);
            assert_same(&found, &expected, &context);

            for values in Values::ALL {
                let x = values.fill(n_cols, random.next());
                let sum = oracle::dot(*format, &row, &x);
                assert_same(&[sum], &[dot(&expected, &x)], &context);
                activation.quantize(&x);
                let sum = oracle::dot_q8(*format, &row, &activation);
                let of_format = match format.is_block() {
                    true => dot_q8(*format, &row, &x),
                    false => dot(&expected, &x),
                };
                assert_same(&[sum], &[of_format], &context);
            }
        }
    }
}
