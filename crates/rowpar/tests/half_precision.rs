//! Numbers of 16 bits become the same numbers of 32 in every kernel: as weights, and as scales of blocks.

mod common;

use common::{Bits, Guarded, Random, Values, assert_same, by_oracle, quantized, weights};
use rowpar::{Activation, Format, Kernels, Matrix, PackedMatrix, Serial, matvec_batch_with};

/// Each kernel, with rows as they lie and packed, against the oracle.
fn check(w: Matrix<'_>, x: Activation<'_>) {
    let expected = by_oracle(w, &[x]);
    let packed = PackedMatrix::new(w);
    for kernels in Kernels::supported() {
        for matrix in [w, packed.as_matrix()] {
            let mut out = Guarded::new(w.n_rows());
            matvec_batch_with(kernels, &Serial, matrix, &[x], out.inside());
            assert_same(out.check(), &expected, &|| format!("{matrix:?}, {}", kernels.isa()));
        }
    }
}

#[test]
fn every_binary16_is_widened_exactly() {
    // Alone, in a word of two, in sixteen bytes, and in a cache line: each is loaded in a way of its own.
    for n_cols in [1, 2, 8, 32] {
        let mut rows = vec![0_u16; n_cols << 16];
        for (half, row) in (0..=u16::MAX).zip(rows.chunks_exact_mut(n_cols)) {
            row[usize::from(half) * 5 % n_cols] = half;
        }
        let bytes: Vec<u8> = rows.iter().flat_map(|half| half.to_le_bytes()).collect();
        let w = Matrix::new(Format::F16, 1 << 16, n_cols, &bytes).unwrap();
        check(w, Activation::F32(&vec![1.0; n_cols]));
    }
}

#[test]
fn scales_may_be_subnormal_or_special() {
    let mut random = Random(3);
    for format in Format::ALL {
        let n_cols = format.block_len();
        let x = Values::Tame.fill(n_cols, 1);
        for bits in Bits::ALL {
            let bytes = weights(&mut random, *format, 500 * n_cols, bits);
            let w = Matrix::new(*format, 500, n_cols, &bytes).unwrap();
            check(w, Activation::F32(&x));
            check(w, Activation::Q8(&quantized(&x)));
        }
    }
}
