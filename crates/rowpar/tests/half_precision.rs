//! Numbers of 16 bits become the same numbers of 32 in every kernel: as weights, and as scales of blocks.

mod common;

use common::{Guarded, Random, Values, assert_same};
use rowpar::{
    Activation, Format, Kernels, Matrix, PackedMatrix, Q8Activation, Serial, matvec_batch_with,
    oracle,
};

/// Each kernel, with rows as they lie and packed, against the oracle.
fn check(w: Matrix<'_>, x: Activation<'_>) {
    let rows = w.bytes().chunks_exact(w.row_bytes());
    let expected: Vec<f32> = rows
        .map(|row| match x {
            Activation::F32(x) => oracle::dot(w.format(), row, x),
            Activation::Q8(x) => oracle::dot_q8(w.format(), row, x),
        })
        .collect();
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
fn scales_may_be_subnormal_or_no_numbers() {
    let subnormal = (0..=0x401).chain(0x8000..=0x8401);
    let halves: Vec<u16> = subnormal.chain([0x7bff, 0x7c00, 0x7c01, 0x7e00, 0xfc00]).collect();
    let mut random = Random(3);
    for format in Format::ALL.iter().copied().filter(|format| format.is_block()) {
        let n_cols = format.block_len();
        let mut bytes = Vec::new();
        for (half, other) in halves.iter().zip(halves.iter().rev()) {
            let mut block: Vec<u8> =
                (0..format.block_bytes()).map(|_| random.next() as u8).collect();
            let (scale, minimum) = match format {
                Format::Q6K => (208, None),
                Format::Q8_0 | Format::Q5_0 | Format::Q4_0 => (0, None),
                _ => (0, Some(2)),
            };
            block[scale..scale + 2].copy_from_slice(&half.to_le_bytes());
            if let Some(minimum) = minimum {
                block[minimum..minimum + 2].copy_from_slice(&other.to_le_bytes());
            }
            bytes.extend(block);
        }
        let w = Matrix::new(format, halves.len(), n_cols, &bytes).unwrap();
        let values = Values::Tame.fill(n_cols, 1);
        let mut quantized = Q8Activation::new();
        quantized.quantize(&values);
        check(w, Activation::F32(&values));
        check(w, Activation::Q8(&quantized));
    }
}
