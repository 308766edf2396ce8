//! Matrices of any format, shape and bytes, with inputs of any bits: every set of kernels is the oracle, as the rows lie and packed.

#![no_main]

use std::ops::Range;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use rowpar::{Activation, Format, Kernels, Matrix, PackedMatrix, Q8Activation, oracle};

fuzz_target!(|data: &[u8]| {
    if let Ok(case) = Case::read(&mut Unstructured::new(data)) {
        case.check();
    }
});

struct Case {
    format: Format,
    n_rows: usize,
    n_cols: usize,
    bytes: Vec<u8>,
    /// Values, and whether they are quantized.
    inputs: Vec<(Q8Activation, bool)>,
    /// Some of the rows.
    part: Range<usize>,
    /// Where in a buffer the matrix starts.
    offset: usize,
}

impl Case {
    fn read(data: &mut Unstructured<'_>) -> Result<Self> {
        let format = *data.choose(Format::ALL)?;
        let n_rows = data.int_in_range(0..=70)?;
        let most_blocks = match format.block_len() {
            1 => 140,
            32 => 5,
            _ => 2,
        };
        let n_cols = format.block_len() * data.int_in_range(0..=most_blocks)?;
        let end = data.int_in_range(0..=n_rows)?;
        let part = data.int_in_range(0..=end)?..end;
        let offset = data.int_in_range(0..=7)?;
        let n_inputs = data.int_in_range(1..=11)?;
        let kinds: u16 = data.arbitrary()?;

        let row_bytes = format.row_bytes(n_cols).expect("whole blocks");
        let half = data.len() / 2;
        let bytes = repeated(data.bytes(half)?, n_rows * row_bytes);
        let values = repeated(data.bytes(data.len())?, 4 * n_inputs * n_cols);
        let values: Vec<f32> =
            values.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let input = |input: usize| {
            let mut quantized = Q8Activation::new();
            quantized.quantize(&values[input * n_cols..][..n_cols]);
            (quantized, kinds >> input & 1 == 1)
        };
        let inputs = (0..n_inputs).map(input).collect();
        Ok(Self { format, n_rows, n_cols, bytes, inputs, part, offset })
    }

    fn check(&self) {
        let x: Vec<Activation<'_>> = self
            .inputs
            .iter()
            .map(|(x, is_q8)| if *is_q8 { Activation::Q8(x) } else { Activation::F32(x.values()) })
            .collect();
        let plain =
            Matrix::new(self.format, self.n_rows, self.n_cols, &self.bytes).expect("the shape");
        let packed = PackedMatrix::new(plain);
        let mut buffer = vec![0xff; self.offset];
        buffer.extend(&self.bytes);
        let moved = Matrix::new(self.format, self.n_rows, self.n_cols, &buffer[self.offset..])
            .expect("the shape");

        let all = self.by_oracle(&x, 0..self.n_rows);
        let of_part = self.by_oracle(&x, self.part.clone());
        for kernels in Kernels::supported() {
            is_same(kernels, packed.as_matrix(), &x, &all);
            is_same(kernels, moved, &x, &all);
            is_same(kernels, plain.rows(self.part.clone()), &x, &of_part);
        }
        assert!(packed.into_unpacked() == self.bytes);
        for (x, _) in &self.inputs {
            let bytes = self.format.quantize(x.values()).expect("whole blocks");
            assert_eq!(Some(bytes.len()), self.format.row_bytes(self.n_cols));
        }
    }

    fn by_oracle(&self, x: &[Activation<'_>], rows: Range<usize>) -> Vec<f32> {
        let row_bytes = self.format.row_bytes(self.n_cols).expect("whole blocks");
        let row = |row: usize| &self.bytes[row * row_bytes..][..row_bytes];
        let of_input = |x: &Activation<'_>| match *x {
            Activation::F32(x) => {
                rows.clone().map(|i| oracle::dot(self.format, row(i), x)).collect::<Vec<_>>()
            }
            Activation::Q8(x) => {
                rows.clone().map(|i| oracle::dot_q8(self.format, row(i), x)).collect()
            }
        };
        x.iter().flat_map(of_input).collect()
    }
}

#[track_caller]
fn is_same(kernels: Kernels, w: Matrix<'_>, x: &[Activation<'_>], expected: &[f32]) {
    let mut out = vec![7.0; expected.len()];
    kernels.matvec(w, x, &mut out);
    for (i, (found, expected)) in out.iter().zip(expected).enumerate() {
        assert!(
            found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()),
            "{w:?}, {} inputs, {}: output {i} is {found:?} and not {expected:?}",
            x.len(),
            kernels.isa()
        );
    }
}

/// As many bytes as are wanted from those that there are, changed a little in each round.
fn repeated(bytes: &[u8], len: usize) -> Vec<u8> {
    let byte = |i: usize| match bytes.len() {
        0 => i as u8,
        n => bytes[i % n] ^ (i / n) as u8,
    };
    (0..len).map(byte).collect()
}
