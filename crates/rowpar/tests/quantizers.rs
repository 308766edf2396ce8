//! `Format::quantize`: rounding against exact values, and errors within what a format allows.

mod common;
mod exact;

use common::{Random, Values};
use exact::{Exact, from_f16};
use rowpar::{Format, MatrixError, Q8Activation, oracle};

fn f16(value: f32) -> u16 {
    let bytes = Format::F16.quantize(&[value]).expect("one value");
    u16::from_le_bytes(bytes.try_into().expect("two bytes"))
}

fn bf16(value: f32) -> u16 {
    let bytes = Format::Bf16.quantize(&[value]).expect("one value");
    u16::from_le_bytes(bytes.try_into().expect("two bytes"))
}

/// The weights that the values become.
fn through(format: Format, values: &[f32]) -> Vec<f32> {
    let bytes = format.quantize(values).expect("whole blocks");
    let mut weights = vec![0.0; values.len()];
    oracle::row_to_f32(format, &bytes, &mut weights);
    weights
}

#[test]
fn every_binary16_comes_back() {
    for bits in 0..=u16::MAX {
        let value = from_f16(bits);
        if value.is_nan() {
            assert!(from_f16(f16(f32::from_bits(u32::from(bits) << 16 | 0x7f80_0001))).is_nan());
        } else {
            assert_eq!(f16(value), bits);
        }
        let value = f32::from_bits(u32::from(bits) << 16);
        if value.is_nan() {
            assert!(f32::from_bits(u32::from(bf16(value)) << 16).is_nan(), "{bits:#06x}");
        } else {
            assert_eq!(bf16(value), bits);
        }
    }
}

/// Neighbours, and what rounds to which: rounding is right everywhere if it is right around each middle.
fn rounds_around_each_middle(round: fn(f32) -> u16, widen: fn(u16) -> f32, infinity: u16) {
    for low in 0..infinity {
        let high = low + 1;
        // Where infinity would be if it were a number like the others.
        let gap =
            if high == infinity { widen(low) - widen(low - 1) } else { widen(high) - widen(low) };
        let middle = if gap / 2.0 > 0.0 { widen(low) + gap / 2.0 } else { continue };
        let even = if low.is_multiple_of(2) { low } else { high };
        let below = f32::from_bits(middle.to_bits() - 1);
        let above = f32::from_bits(middle.to_bits() + 1);
        for (value, expected) in [(below, low), (middle, even), (above, high)] {
            assert_eq!(round(value), expected, "{value:e}");
            assert_eq!(round(-value), expected | 0x8000, "{:e}", -value);
        }
    }
}

#[test]
fn floats_are_rounded_to_the_nearest_and_ties_to_even() {
    rounds_around_each_middle(f16, from_f16, 0x7c00);
    rounds_around_each_middle(bf16, |bits| f32::from_bits(u32::from(bits) << 16), 0x7f80);
    assert_eq!((f16(f32::MAX), f16(f32::NEG_INFINITY), f16(-1e-45)), (0x7c00, 0xfc00, 0x8000));
    assert_eq!((bf16(f32::MAX), bf16(f32::NEG_INFINITY), bf16(1e-45)), (0x7f80, 0xff80, 0));
    let nans = [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff)];
    for nan in nans {
        assert!(from_f16(f16(nan)).is_nan() && f32::from_bits(u32::from(bf16(nan)) << 16).is_nan());
    }
}

#[test]
fn binary16_is_the_one_that_is_nearest_by_exact_arithmetic() {
    let mut random = Random(2);
    for _ in 0..20_000 {
        // Any mantissa, exponents from below the least binary16 to the largest.
        let bits = (random.next() >> 32) as u32;
        let value = f32::from_bits(bits & 0x807f_ffff | (100 + random.below(42) as u32) << 23);
        let exact = exact::exact(value);
        // In units of 2^-75, each float here is an integer.
        let units = |x: Exact| match (x.mantissa as i128, x.negative) {
            (0, _) => 0,
            (mantissa, false) => mantissa << (x.exponent + 75),
            (mantissa, true) => -(mantissa << (x.exponent + 75)),
        };
        let distance = |bits: u16| units(exact::exact(from_f16(bits))).abs_diff(units(exact));
        let found = f16(value);
        let neighbours = [found.wrapping_sub(1), found + 1];
        for other in neighbours.into_iter().filter(|other| from_f16(*other).is_finite()) {
            let (mine, its) = (distance(found), distance(other));
            assert!(
                mine < its || (mine == its && found.is_multiple_of(2)),
                "{value:e} became {found:#06x}"
            );
        }
    }
}

/// How far a weight may be from its value, by the values of its part and of its block.
///
/// Half a step; and a step is what the part needs, plus one unit of the block's integer scale where the scale was rounded up to
/// that. A 512th of the largest value is for scales and minima that are rounded to binary16, by a 2048th each: at the ends of
/// the range they all add up.
fn allowed(format: Format, part: &[f32], block: &[f32]) -> f32 {
    let largest = |x: &[f32]| x.iter().fold(0.0, |largest: f32, x| largest.max(x.abs()));
    let lowest = |x: &[f32]| x.iter().copied().fold(f32::INFINITY, f32::min);
    let highest = |x: &[f32]| x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let depth = |x: &[f32]| (-lowest(x)).max(0.0);
    let steps = match format {
        Format::F32 => return 0.0,
        Format::F16 => return largest(part) / 2048.0,
        Format::Bf16 => return largest(part) / 256.0,
        Format::Q8_0 => largest(part) / 127.0,
        Format::Q5_0 => largest(part) / 15.0,
        Format::Q4_0 => largest(part) / 7.0,
        Format::Q5_1 => (highest(part) - lowest(part)) / 31.0,
        Format::Q4_1 => (highest(part) - lowest(part)) / 15.0,
        Format::Q6K => largest(part) / 31.0 + largest(block) / (31.0 * 127.0),
        Format::Q4K | Format::Q5K => {
            let limit = if format == Format::Q4K { 15.0 } else { 31.0 };
            // The minimum is rounded up by less than a unit.
            let range = (highest(part) + depth(part)).max(0.0) + depth(block) / 63.0;
            let of_block = block.chunks(32).map(|part| highest(part) + depth(part));
            let of_block = of_block.fold(0.0, f32::max) + depth(block) / 63.0;
            (range + of_block / 63.0) / limit
        }
        _ => panic!("{format} is new"),
    };
    steps / 2.0 + largest(part) / 512.0
}

#[test]
fn no_weight_is_further_from_its_value_than_half_a_step() {
    let mut random = Random(8);
    for format in Format::ALL {
        let part_len = if *format == Format::Q6K { 16 } else { format.block_len().min(32) };
        for round in 0..60 {
            let mut block = Values::Tame.fill(format.block_len().max(32), random.next());
            for part in block.chunks_mut(part_len) {
                // Parts of different sizes, and of one sign or both.
                let (size, shift) = (random.below(9) as f32 / 8.0, random.below(5) as f32 - 2.0);
                let shift = if round % 2 == 0 { 0.0 } else { shift };
                part.iter_mut().for_each(|x| *x = (*x + shift) * size);
            }
            let weights = through(*format, &block);
            for (part, weights) in block.chunks(part_len).zip(weights.chunks(part_len)) {
                for (value, weight) in part.iter().zip(weights) {
                    let of = if format.is_block() { part } else { &[*value] };
                    let (error, allowed) = ((value - weight).abs(), allowed(*format, of, &block));
                    assert!(
                        error <= allowed,
                        "{format}: {value} became {weight}, {error} off, {allowed} allowed"
                    );
                }
            }
        }
    }
}

#[test]
fn values_that_a_format_has_are_kept() {
    // Of every block format: zero; and the values at the ends of the range, within the rounding of a scale.
    for format in Format::ALL {
        let n = format.block_len();
        assert_eq!(through(*format, &vec![0.0; n]), vec![0.0; n], "{format}");
        assert_eq!(through(*format, &[]), []);
        for value in [1.0, -1.0] {
            for weight in through(*format, &vec![value; n]) {
                assert!((weight - value).abs() < 2e-3, "{format}: {value} became {weight}");
            }
        }
    }
    let multiples: Vec<f32> =
        (0..32).map(|i| (8 * i - 127).clamp(-127, 127) as f32 * 0.25).collect();
    assert_eq!(through(Format::Q8_0, &multiples), multiples);
    let sixteen: Vec<f32> = (0..32).map(|i| (i % 16) as f32 * 0.5 - 3.0).collect();
    assert_eq!(through(Format::Q4_1, &sixteen), sixteen);
    let all: Vec<f32> = (0..32).map(|i| i as f32 * 0.5 - 3.0).collect();
    assert_eq!(through(Format::Q5_1, &all), all);
    let signed: Vec<f32> = (0..32).map(|i| (i % 31 - 15) as f32 * 4.0).collect();
    assert_eq!(through(Format::Q5_0, &signed), signed);
}

#[test]
fn blocks_that_no_scale_holds_become_nan_as_a_whole() {
    for format in Format::ALL.iter().filter(|format| format.is_block()) {
        let n = format.block_len();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e30, -1e30] {
            for at in [0, n / 2 + 5, n - 1] {
                let mut values = Values::Tame.fill(2 * n, 4);
                values[at] = bad;
                let weights = through(*format, &values);
                assert!(weights[..n].iter().all(|weight| weight.is_nan()), "{format}, {bad}");
                assert!(weights[n..].iter().all(|weight| weight.is_finite()), "{format}, {bad}");
            }
        }
        // So small that the scale is a subnormal, or nothing: no weight is larger than the values were, by a unit.
        for small in [1e-6, 1e-8, 1e-20, f32::MIN_POSITIVE, 1e-45] {
            let values: Vec<f32> = Values::Tame.fill(n, 6).iter().map(|x| x * small).collect();
            for (value, weight) in values.iter().zip(through(*format, &values)) {
                assert!(
                    (value - weight).abs() <= small.max(1e-5),
                    "{format}: {value:e}, {weight:e}"
                );
            }
        }
    }
}

#[test]
fn values_that_are_no_whole_blocks_are_an_error() {
    for format in Format::ALL.iter().filter(|format| format.is_block()) {
        for n_cols in [1, 31, 33, format.block_len() - 1, format.block_len() + 1] {
            let error = MatrixError::Blocks { format: *format, n_cols };
            assert_eq!(format.quantize(&vec![1.0; n_cols]), Err(error));
        }
    }
}

#[test]
fn an_input_is_quantized_like_a_row_of_q8_0() {
    // The same integers where the scale is a binary16.
    let mut x: Vec<f32> = (0..96).map(|i| ((i * 37 % 255) as f32 - 127.0) * 0.125).collect();
    x.iter_mut().step_by(32).for_each(|x| *x = 127.0 * 0.125);
    let mut activation = Q8Activation::new();
    activation.quantize(&x);
    for (index, block) in Format::Q8_0.quantize(&x).unwrap().chunks(34).enumerate() {
        let q: Vec<i8> = block[2..].iter().map(|byte| byte.cast_signed()).collect();
        assert_eq!(q, activation.block(index).q);
    }
}
