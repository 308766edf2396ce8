//! Every format, instruction set, batch, packing and pool, with shapes around every boundary: bit for bit the oracle.

mod common;

use common::{Guarded, Random, Values, assert_same};
use rowpar::{
    Activation, Format, Kernels, Matrix, PackedMatrix, Q8Activation, Serial, matvec_batch_with,
    oracle,
};

/// Rows of a format: blocks of random integers, and scales that keep everything finite.
fn weights(random: &mut Random, format: Format, n_rows: usize, n_cols: usize) -> Vec<u8> {
    let n_bytes = n_rows * format.row_bytes(n_cols).unwrap();
    let mut bytes: Vec<u8> = (0..n_bytes).map(|_| random.next() as u8).collect();
    let halves: &[usize] = match format {
        Format::F32 => &[],
        Format::F16 | Format::Bf16 | Format::Q8_0 | Format::Q5_0 | Format::Q4_0 => &[0],
        Format::Q6K => &[208],
        _ => &[0, 2],
    };
    for block in bytes.chunks_exact_mut(format.block_bytes()) {
        for half in halves {
            // An exponent near one, a random sign and mantissa.
            let bits = (random.next() >> 20) as u16;
            let bits = if format == Format::Bf16 {
                bits & 0x807f | (0x3f00 + ((random.next() >> 20) as u16 & 0x80))
            } else {
                bits & 0x83ff | ((12 + random.below(5) as u16) << 10)
            };
            block[*half..half + 2].copy_from_slice(&bits.to_le_bytes());
        }
        if format == Format::F32 {
            block.copy_from_slice(
                &((random.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).to_le_bytes(),
            );
        }
    }
    bytes
}

/// What the oracle makes of every row and input.
fn expected(w: Matrix<'_>, x: &[Activation<'_>]) -> Vec<f32> {
    let mut out = Vec::new();
    for x in x {
        for row in w.bytes().chunks_exact(w.row_bytes().max(1)).take(w.n_rows()) {
            out.push(match x {
                Activation::F32(x) => oracle::dot(w.format(), row, x),
                Activation::Q8(x) => oracle::dot_q8(w.format(), row, x),
            });
        }
    }
    out.resize(w.n_rows() * x.len(), 0.0);
    out
}

#[test]
fn every_kernel_is_the_oracle() {
    let mut random = Random(5);
    for format in Format::ALL {
        let cols: &[usize] = match format.block_len() {
            1 => &[0, 1, 2, 7, 8, 15, 16, 31, 32, 33, 65, 127],
            32 => &[32, 64, 96, 288],
            _ => &[256, 512],
        };
        for &n_cols in cols {
            for n_rows in [0, 1, 5, 8, 15, 16, 17, 32, 40, 63] {
                let bytes = weights(&mut random, *format, n_rows, n_cols);
                let w = Matrix::new(*format, n_rows, n_cols, &bytes).unwrap();
                let packed = PackedMatrix::new(w);
                let values: Vec<_> =
                    (0..9).map(|seed| Values::Tame.fill(n_cols, seed + 1)).collect();
                let quantized: Vec<_> = values
                    .iter()
                    .map(|x| {
                        let mut quantized = Q8Activation::new();
                        quantized.quantize(x);
                        quantized
                    })
                    .collect();
                for n_inputs in [1, 2, 3, 4, 8, 9] {
                    let floats: Vec<_> =
                        values.iter().map(|x| Activation::F32(x)).take(n_inputs).collect();
                    let q8: Vec<_> = quantized.iter().map(Activation::Q8).take(n_inputs).collect();
                    for x in [floats, q8] {
                        let expected = expected(w, &x);
                        for kernels in Kernels::supported() {
                            for matrix in [w, packed.as_matrix()] {
                                let mut out = Guarded::new(n_rows * n_inputs);
                                matvec_batch_with(kernels, &Serial, matrix, &x, out.inside());
                                assert_same(out.check(), &expected, &|| {
                                    format!(
                                        "{matrix:?}, packed {}, {n_inputs} inputs, {:?}, {}",
                                        matrix.is_packed(),
                                        std::mem::discriminant(&x[0]),
                                        kernels.isa()
                                    )
                                });
                            }
                        }
                    }
                }
            }
        }
    }
}
