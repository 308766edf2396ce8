//! What is hard on kernels: integers at their ends, scales that are no numbers, inputs that are none.

mod blocks;
mod common;
mod exact;

use blocks::{Minimum, Weight};
use common::{Bits, Guarded, Random, Values, assert_same, by_oracle, halves, quantized, weights};
use rowpar::{Activation, Format, Kernels, Matrix, PackedMatrix, Q8Activation, oracle};

fn block_formats() -> impl Iterator<Item = Format> {
    Format::ALL.iter().copied().filter(|format| format.is_block())
}

/// Every kernel, as the rows lie and packed, one input at a time and all at once.
#[track_caller]
fn all_kernels_give(w: Matrix<'_>, x: &[Activation<'_>], expected: &[f32], context: &str) {
    let packed = PackedMatrix::new(w);
    for kernels in Kernels::supported() {
        for w in [w, packed.as_matrix()] {
            let mut out = Guarded::new(expected.len());
            kernels.matvec(w, x, out.inside());
            assert_same(out.check(), expected, &|| {
                format!("{w:?}, {} inputs, {}, {context}", x.len(), kernels.isa())
            });
            for (x, expected) in x.iter().zip(expected.chunks(w.n_rows())) {
                let mut out = Guarded::new(w.n_rows());
                kernels.matvec(w, &[*x], out.inside());
                assert_same(out.check(), expected, &|| {
                    format!("{w:?}, one input, {}, {context}", kernels.isa())
                });
            }
        }
    }
}

#[test]
fn every_kind_of_weight_meets_every_kind_of_input() {
    let mut random = Random(23);
    for format in Format::ALL {
        let n_cols = if format.is_block() { 2 * format.block_len() } else { 77 };
        for bits in Bits::ALL {
            let bytes = weights(&mut random, *format, 35 * n_cols, bits);
            let w = Matrix::new(*format, 35, n_cols, &bytes).unwrap();
            let values = Values::ALL.map(|values| values.fill(n_cols, random.next()));
            let q8 = [0, 1, 2, 3].map(|input| quantized(&values[input]));
            let mut x: Vec<Activation<'_>> = values.iter().map(|x| x[..].into()).collect();
            x.extend(q8.iter().map(Activation::Q8));
            all_kernels_give(w, &x, &by_oracle(w, &x), &format!("{bits:?}"));
        }
    }
}

/// A block with one byte everywhere, scales of 1, and integer scales at their ends where a format has them.
fn uniform_block(format: Format, integers: u8, scales: u8) -> Vec<u8> {
    let mut block = vec![integers; format.block_bytes()];
    match format {
        Format::Q4K | Format::Q5K => block[4..16].fill(scales),
        Format::Q6K => block[192..208].fill(scales),
        _ => {}
    }
    for half in halves(format) {
        block[*half..half + 2].copy_from_slice(&0x3c00_u16.to_le_bytes());
    }
    block
}

/// The largest magnitude that a sum of the integers of 32 columns may have.
fn largest_sum(format: Format) -> i64 {
    let weight = match format {
        Format::Q8_0 => 128,
        Format::Q4_0 => 8,
        Format::Q4_1 => 15,
        Format::Q5_0 => 16,
        Format::Q5_1 => 31,
        Format::Q4K => 63 * 15,
        Format::Q5K => 63 * 31,
        Format::Q6K => 128 * 32,
        _ => panic!("{format} has no integers"),
    };
    weight * 127 * 32
}

/// With scales of 1 and an input that has but one part, a row is an integer, and the float is that integer.
#[test]
fn the_largest_sums_of_integers_are_exact() {
    for format in block_formats() {
        assert!(largest_sum(format) < 1 << 24);
        let mut reached = 0;
        for (integers, scales) in [
            (0, 0xff),
            (0, 0x80),
            (0, 0x7f),
            (0xff, 0xff),
            (0xff, 0x80),
            (0x80, 0x80),
            (0x7f, 0x7f),
        ] {
            let block = uniform_block(format, integers, scales);
            let bytes = block.repeat(17);
            let w = Matrix::new(format, 17, format.block_len(), &bytes).unwrap();
            for part in 0..format.block_len() / 32 {
                for sign in [127, -127] {
                    let mut x = vec![0.0; format.block_len()];
                    x[32 * part..][..32].fill(sign as f32);
                    let (mut sum, mut added) = (0, 0);
                    for i in 32 * part..32 * part + 32 {
                        let weight = Weight::read(format, &block, i);
                        sum += weight.scale * weight.q * sign;
                        added += match weight.minimum {
                            Minimum::None => 0,
                            Minimum::Plus(_) => sign,
                            Minimum::Minus(_, minimum) => -minimum * sign,
                        };
                    }
                    reached = reached.max(sum.abs());
                    let expected = (sum + added) as f32;
                    assert_eq!(expected as i64, sum + added);
                    let x = quantized(&x);
                    let context = format!("bytes {integers:#x}, scales {scales:#x}, part {part}");
                    all_kernels_give(w, &[(&x).into()], &[expected; 17], &context);
                }
            }
        }
        assert_eq!(reached, largest_sum(format), "{format}");
    }
}

/// Pairs of products that overflow 16 bits if they are added there: a weight of -128 and its neighbours, beside inputs of ±127.
#[test]
fn neighbours_at_their_ends_do_not_saturate() {
    const Q: [i8; 8] = [-128, -128, -127, -1, 0, 1, 126, 127];
    let mut random = Random(29);
    for round in 0..40 {
        for format in block_formats() {
            let n_cols = 2 * format.block_len();
            let mut bytes = weights(&mut random, format, 17 * n_cols, Bits::Tame);
            for block in bytes.chunks_exact_mut(format.block_bytes()) {
                let head = match format {
                    Format::Q8_0 => 2,
                    Format::Q4K | Format::Q5K => 16,
                    Format::Q6K => 0,
                    _ => halves(format).len() * 2,
                };
                let end = if format == Format::Q6K { 192 } else { format.block_bytes() };
                for byte in &mut block[head..end] {
                    *byte = match format {
                        Format::Q8_0 => Q[random.below(Q.len())] as u8,
                        // Integers at the ends of their range, in either half.
                        _ => [0, 0xff, 0x0f, 0xf0][random.below(4)],
                    };
                }
            }
            let signs: Vec<f32> = (0..n_cols)
                .map(|_| if round % 4 == 0 || random.below(2) == 0 { 127.0 } else { -127.0 })
                .collect();
            let x = quantized(&signs);
            let w = Matrix::new(format, 17, n_cols, &bytes).unwrap();
            let x = [Activation::Q8(&x)];
            all_kernels_give(w, &x, &by_oracle(w, &x), "ends");
        }
    }
}

/// Zeros of either sign, the least and the largest, infinities and NaNs of either kind.
const HALVES: [u16; 12] = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfd55,
];

#[test]
fn a_scale_that_is_no_number_is_felt_in_its_row_alone() {
    let mut random = Random(31);
    let n_rows = 3 * HALVES.len() + 1;
    for format in block_formats() {
        let n_cols = 3 * format.block_len();
        for half in halves(format) {
            // Every third row has a special scale, in one of its blocks.
            let mut bytes = weights(&mut random, format, n_rows * n_cols, Bits::Tame);
            let row_bytes = bytes.len() / n_rows;
            for (row, special) in HALVES.iter().enumerate() {
                let block = (3 * row + 1) * row_bytes + row % 3 * format.block_bytes();
                bytes[block + half..][..2].copy_from_slice(&special.to_le_bytes());
            }
            let w = Matrix::new(format, n_rows, n_cols, &bytes).unwrap();
            let values = Values::Tame.fill(n_cols, 5);
            let x = quantized(&values);
            for x in [Activation::F32(&values), Activation::Q8(&x)] {
                let expected = by_oracle(w, &[x]);
                for (row, sum) in expected.iter().enumerate() {
                    let special = if row % 3 == 1 { HALVES[row / 3] } else { 0 };
                    if special & 0x7c00 != 0x7c00 {
                        assert!(sum.is_finite(), "{format}, row {row}");
                    } else if special & 0x3ff != 0 {
                        assert!(sum.is_nan(), "{format}, row {row}");
                    } else {
                        assert!(!sum.is_finite(), "{format}, row {row}");
                    }
                }
                all_kernels_give(w, &[x], &expected, &format!("a float at byte {half}"));
            }
        }
    }
}

#[test]
fn an_input_that_is_no_number_poisons_its_rows_and_no_others() {
    let mut random = Random(37);
    for format in block_formats() {
        let n_cols = 2 * format.block_len();
        let bytes = weights(&mut random, format, 19 * n_cols, Bits::Tame);
        let w = Matrix::new(format, 19, n_cols, &bytes).unwrap();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            // The fourth of nine inputs.
            let mut values: [Vec<f32>; 9] =
                std::array::from_fn(|_| Values::Tame.fill(n_cols, random.next()));
            values[3][random.below(n_cols)] = bad;
            let q8: Vec<_> = values.iter().map(|x| quantized(x)).collect();
            let x: Vec<_> = q8.iter().map(Activation::Q8).collect();
            let expected = by_oracle(w, &x);
            for (input, sums) in expected.chunks(19).enumerate() {
                assert!(sums.iter().all(|sum| sum.is_nan() == (input == 3)), "{format}");
            }
            all_kernels_give(w, &x, &expected, "quantized");
            let x: Vec<_> = values.iter().map(|x| Activation::F32(x)).collect();
            all_kernels_give(w, &x, &by_oracle(w, &x), "floats");
        }
    }
}

#[test]
fn inputs_of_any_size() {
    let mut random = Random(41);
    let limit = f32::from_bits((127 - 100) << 23);
    for format in Format::ALL {
        let n_cols = format.block_len().max(64);
        let bytes = weights(&mut random, *format, 18 * n_cols, Bits::Tame);
        let w = Matrix::new(*format, 18, n_cols, &bytes).unwrap();
        let sizes = [1e-45, 1e-38, 1e-31, limit, 1e-30, 1e-10, 1e10, 1e30, 3e38];
        let values = sizes.map(|size| {
            let mut x = Values::Tame.fill(n_cols, random.next());
            x.iter_mut().for_each(|x| *x *= size);
            x
        });
        let q8: Vec<Q8Activation> = values.iter().map(|x| quantized(x)).collect();
        let x: Vec<_> = q8.iter().map(Activation::Q8).collect();
        let expected = by_oracle(w, &x);
        if format.is_block() {
            // Below the limit a block is zero, and so is the sum: +0, which the sum begins with.
            assert!(expected[..3 * 18].iter().all(|sum| sum.to_bits() == 0), "{format}");
        }
        all_kernels_give(w, &x, &expected, "quantized");
        let x: Vec<_> = values.iter().map(|x| Activation::F32(x)).collect();
        all_kernels_give(w, &x, &by_oracle(w, &x), "floats");
    }
}

/// A sum that overflows stays infinite or becomes NaN where the loop says so, column by column.
#[test]
fn overflow_happens_where_the_loop_has_it() {
    for (format, one) in [
        (Format::F32, 1.0_f32.to_le_bytes().to_vec()),
        (Format::F16, vec![0, 0x3c]),
        (Format::Bf16, vec![0x80, 0x3f]),
    ] {
        for n_cols in [3, 40, 67] {
            let bytes = one.repeat(21 * n_cols);
            let w = Matrix::new(format, 21, n_cols, &bytes).unwrap();
            for at in 0..n_cols - 2 {
                let mut x = vec![1.0; n_cols];
                x[at] = f32::MAX;
                x[at + 1] = f32::MAX;
                let infinite = x.clone();
                x[n_cols - 1] = f32::NEG_INFINITY;
                for (x, is_expected) in
                    [(&infinite, f32::is_infinite as fn(f32) -> bool), (&x, f32::is_nan)]
                {
                    let sum = oracle::dot(format, &bytes[..bytes.len() / 21], x);
                    assert!(is_expected(sum));
                    all_kernels_give(w, &[x[..].into()], &[sum; 21], "overflow");
                }
            }
        }
    }
}
