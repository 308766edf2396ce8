//! Every format, instruction set, batch, packing and pool, with shapes around every boundary: bit for bit the oracle.

mod common;

use std::{
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use common::{Bits, Guarded, Random, Values, assert_same, by_oracle, pools, quantized, weights};
use rowpar::{
    Activation, Format, Kernels, Matrix, Matvec, PackedMatrix, Q8Activation, ReadPattern, RowPool,
    Serial, matvec, matvec_batch, matvec_batch_with, matvec_many, matvec_many_with, oracle,
    read_weights,
};

/// Around groups of eight rows, two of them, tiles of sixteen, and streams of several rows.
const ROWS: &[usize] = &[
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 100,
];
/// What is compiled is eight, four, two and one at once: all the ways to make a number of those.
const BATCHES: &[usize] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17];
const MAX_BATCH: usize = 17;

/// Columns around words, vectors and lines of each format; odd ones where a weight is half a word.
fn columns(format: Format) -> &'static [usize] {
    match format {
        Format::F32 => {
            &[0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 19, 20, 31, 32, 33, 63, 64, 65, 150]
        }
        Format::F16 | Format::Bf16 => &[
            0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 31, 32, 33, 35, 39, 40, 41, 63, 64, 65, 127,
            129, 300,
        ],
        _ if format.block_len() == 32 => &[0, 32, 64, 96, 128, 288],
        _ => &[0, 256, 512, 768],
    }
}

/// A matrix, packed as well, and inputs of both kinds, with what the oracle makes of them.
struct Case {
    format: Format,
    n_rows: usize,
    n_cols: usize,
    bytes: Vec<u8>,
    packed: PackedMatrix,
    values: Vec<Vec<f32>>,
    quantized: Vec<Q8Activation>,
    /// Of floats, and of quantized inputs.
    expected: [Vec<f32>; 2],
}

impl Case {
    fn new(format: Format, n_rows: usize, n_cols: usize, n_inputs: usize, bits: Bits) -> Self {
        let seed = (format.gguf_id() as usize * 1000 + n_rows) * 1000 + n_cols;
        let mut random = Random(seed as u64 + 1);
        let bytes = weights(&mut random, format, n_rows * n_cols, bits);
        let packed = PackedMatrix::from_vec(format, n_rows, n_cols, bytes.clone()).unwrap();
        let values: Vec<_> =
            (0..n_inputs).map(|_| Values::Tame.fill(n_cols, random.next())).collect();
        let quantized = values.iter().map(|x| quantized(x)).collect();
        let expected = [Vec::new(), Vec::new()];
        let mut case = Self { format, n_rows, n_cols, bytes, packed, values, quantized, expected };
        case.expected = [false, true].map(|q8| by_oracle(case.plain(), &case.inputs(q8, n_inputs)));
        case
    }

    fn plain(&self) -> Matrix<'_> {
        Matrix::new(self.format, self.n_rows, self.n_cols, &self.bytes).unwrap()
    }

    /// As it lies, and packed.
    fn layouts(&self) -> [Matrix<'_>; 2] {
        [self.plain(), self.packed.as_matrix()]
    }

    /// The first inputs, as floats or quantized.
    fn inputs(&self, q8: bool, n_inputs: usize) -> Vec<Activation<'_>> {
        (0..n_inputs).map(|input| self.input(input, q8)).collect()
    }

    fn input(&self, input: usize, q8: bool) -> Activation<'_> {
        if q8 { (&self.quantized[input]).into() } else { self.values[input][..].into() }
    }

    /// The outputs for an input.
    fn outputs(&self, input: usize, q8: bool) -> &[f32] {
        &self.expected[usize::from(q8)][input * self.n_rows..][..self.n_rows]
    }

    fn check(
        &self,
        kernels: Kernels,
        pool: &(impl RowPool + ?Sized),
        n_inputs: usize,
        context: &str,
    ) {
        for q8 in [false, true] {
            let x = self.inputs(q8, n_inputs);
            for w in self.layouts() {
                let mut out = Guarded::new(self.n_rows * n_inputs);
                matvec_batch_with(kernels, pool, w, &x, out.inside());
                let expected = &self.expected[usize::from(q8)][..self.n_rows * n_inputs];
                assert_same(out.check(), expected, &|| {
                    let (isa, packed) = (kernels.isa(), w.is_packed());
                    format!("{w:?}, packed {packed}, {n_inputs} inputs, q8 {q8}, {isa}, {context}")
                });
            }
        }
    }
}

/// One test for each format, so that they run side by side.
macro_rules! for_each_format {
    ($($name:ident $format:ident),*) => { $(
        mod $name {
            use super::*;

            #[test]
            fn every_kernel_at_every_boundary() {
                kernels_at_every_boundary(Format::$format);
            }

            #[test]
            fn every_pool_and_packing() {
                on_every_pool(Format::$format);
            }
        }
    )* };
}

for_each_format!(
    f32 F32, f16 F16, bf16 Bf16, q8_0 Q8_0, q5_0 Q5_0, q5_1 Q5_1, q4_0 Q4_0, q4_1 Q4_1, q4_k Q4K, q5_k Q5K, q6_k Q6K
);

fn kernels_at_every_boundary(format: Format) {
    let mut turn = 0;
    for &n_rows in ROWS {
        for &n_cols in columns(format) {
            let bits = if turn % 8 == 7 { Bits::Wild } else { Bits::Tame };
            let case = Case::new(format, n_rows, n_cols, MAX_BATCH, bits);
            for kernels in Kernels::supported() {
                // Small matrices take every batch; large ones take one each, in turn.
                let is_small = n_rows * n_cols <= 133 * format.block_len().max(17);
                let batches =
                    if is_small { BATCHES } else { &BATCHES[turn % BATCHES.len()..][..1] };
                for &n_inputs in batches {
                    case.check(kernels, &Serial, n_inputs, "serial");
                }
                turn += 1;
            }
        }
    }
}

fn on_every_pool(format: Format) {
    let pools = pools();
    let unit = format.block_len();
    // More rows than sixteen for each participant, and rows that are left after tiles.
    for (n_rows, n_cols) in
        [(1, 2 * unit), (16, unit), (33, 3 * unit), (203, unit), (330, 37 * unit)]
    {
        let case = Case::new(format, n_rows, n_cols.min(512), 9, Bits::Tame);
        for (name, pool) in &pools {
            for kernels in Kernels::supported() {
                for n_inputs in [1, 2, 9] {
                    case.check(kernels, &**pool, n_inputs, name);
                }
            }
        }
    }
}

#[test]
fn weights_may_begin_at_any_byte() {
    for format in Format::ALL {
        let n_cols = if format.is_block() { 2 * format.block_len() } else { 53 };
        let case = Case::new(*format, 19, n_cols, 3, Bits::Tame);
        for offset in 0..16 {
            // Before and after the weights there is nothing of use, and after them no memory of ours.
            let mut buffer = vec![0xff; offset + case.bytes.len()];
            buffer[offset..].copy_from_slice(&case.bytes);
            let w = Matrix::new(*format, 19, n_cols, &buffer[offset..]).unwrap();
            for kernels in Kernels::supported() {
                for (q8, n_inputs) in [(false, 1), (false, 3), (true, 1), (true, 3)] {
                    let mut out = Guarded::new(19 * n_inputs);
                    kernels.matvec(w, &case.inputs(q8, n_inputs), out.inside());
                    let expected = &case.expected[usize::from(q8)][..19 * n_inputs];
                    assert_same(out.check(), expected, &|| {
                        format!("{format} at byte {offset}, {n_inputs}, {q8}, {}", kernels.isa())
                    });
                }
            }
        }
    }
}

#[test]
fn inputs_of_both_kinds_share_a_batch() {
    // One bit for each input: whether it is quantized.
    const PATTERNS: [u32; 8] =
        [0b1, 0b10, 0b0101, 0b0011, 0b1100_1111, 0b1_0101_0101, 0b1111_0000_1111_0000, 0x0ff8];
    for format in Format::ALL {
        let case = Case::new(*format, 35, 4 * format.block_len(), MAX_BATCH, Bits::Tame);
        for (turn, pattern) in PATTERNS.into_iter().enumerate() {
            let n_inputs = [2, 5, 9, MAX_BATCH][turn % 4];
            let is_q8 = |input: usize| pattern >> input & 1 == 1;
            let x: Vec<_> = (0..n_inputs).map(|input| case.input(input, is_q8(input))).collect();
            for kernels in Kernels::supported() {
                for w in case.layouts() {
                    let mut out = Guarded::new(35 * n_inputs);
                    kernels.matvec(w, &x, out.inside());
                    for (input, out) in out.check().chunks(35).enumerate() {
                        assert_same(out, case.outputs(input, is_q8(input)), &|| {
                            format!("{w:?}, input {input} of {pattern:b}, {}", kernels.isa())
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn products_of_all_formats_share_a_dispatch() {
    let pools = pools();
    let cases: Vec<_> = Format::ALL
        .iter()
        .cycle()
        .take(19) // more than sixteen: two dispatches
        .enumerate()
        .map(|(i, format)| {
            let n_rows = [40, 1, 17, 0, 64, 9, 33][i % 7];
            Case::new(*format, n_rows, (1 + i % 3) * format.block_len(), 4, Bits::Tame)
        })
        .collect();
    let is_q8 = |i: usize, input: usize| (i + input).is_multiple_of(2);
    let inputs: Vec<Vec<_>> = cases
        .iter()
        .enumerate()
        .map(|(i, case)| (0..i % 5).map(|input| case.input(input, is_q8(i, input))).collect())
        .collect();
    for kernels in Kernels::supported() {
        for (name, pool) in &pools {
            let outs = cases.iter().zip(&inputs);
            let mut outs: Vec<_> = outs.map(|(c, x)| Guarded::new(c.n_rows * x.len())).collect();
            let products = cases.iter().zip(&inputs).zip(&mut outs).enumerate();
            let mut products: Vec<_> = products
                .map(|(i, ((case, x), out))| Matvec {
                    w: case.layouts()[i / 2 % 2],
                    x,
                    out: out.inside(),
                })
                .collect();
            matvec_many_with(kernels, &**pool, &mut products);
            for (i, (case, out)) in cases.iter().zip(&outs).enumerate() {
                for (input, out) in out.check().chunks(case.n_rows.max(1)).enumerate() {
                    let expected = case.outputs(input, is_q8(i, input));
                    assert_same(out, expected, &|| {
                        format!("product {i}, input {input}, {name}, {}", kernels.isa())
                    });
                }
            }
        }
    }
}

/// A pool that says from how many bytes on it wants work, and counts the dispatches.
struct From(usize, AtomicUsize);

// SAFETY: as `Serial`.
unsafe impl RowPool for From {
    fn participants(&self) -> usize {
        4
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        self.1.fetch_add(1, Ordering::Relaxed);
        Serial.for_each_range(rows, grain, f);
    }

    fn parallel_bytes(&self) -> usize {
        self.0
    }
}

#[test]
fn the_threshold_of_a_pool_is_in_bytes_of_weights() {
    for format in Format::ALL {
        let case = Case::new(*format, 40, 2 * format.block_len(), 2, Bits::Tame);
        for w in case.layouts() {
            let n_bytes = w.bytes().len();
            for (threshold, taken) in [(0, 1), (n_bytes, 1), (n_bytes + 1, 0), (usize::MAX, 0)] {
                let pool = From(threshold, AtomicUsize::new(0));
                let x = case.inputs(true, 2);
                let mut out = Guarded::new(80);
                matvec(&pool, w, x[0], &mut out.inside()[..40]);
                assert_eq!(pool.1.swap(0, Ordering::Relaxed), taken, "{w:?}, {threshold}");
                // More inputs are no more bytes.
                matvec_batch(&pool, w, &x, out.inside());
                assert_eq!(pool.1.swap(0, Ordering::Relaxed), taken, "{w:?}, {threshold}");
                assert_same(out.check(), &case.expected[1], &|| format!("{w:?}, {threshold}"));
            }
            // Two products together.
            let pool = From(n_bytes + 1, AtomicUsize::new(0));
            let x = case.inputs(false, 1);
            let (mut out1, mut out2) = (Guarded::new(40), Guarded::new(40));
            let mut products =
                [Matvec { w, x: &x, out: out1.inside() }, Matvec { w, x: &x, out: out2.inside() }];
            matvec_many(&pool, &mut products);
            assert_eq!(pool.1.swap(0, Ordering::Relaxed), 1, "{w:?}");
            assert_same(out1.check(), case.outputs(0, false), &|| format!("{w:?}"));
            assert_same(out2.check(), case.outputs(0, false), &|| format!("{w:?}"));
        }
    }
}

/// Notes what it is asked for, and does it as two threads would.
#[derive(Default)]
struct Noting(Mutex<Vec<(usize, usize)>>);

// SAFETY: as `Serial`.
unsafe impl RowPool for Noting {
    fn participants(&self) -> usize {
        2
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        self.0.lock().unwrap().push((rows, grain));
        Serial.for_each_range(rows, grain, f);
    }
}

#[test]
fn weights_are_read_in_the_dispatches_of_their_products() {
    let cases: Vec<_> = Format::ALL
        .iter()
        .cycle()
        .take(19)
        .map(|format| Case::new(*format, 100, 3 * format.block_len(), 1, Bits::Tame))
        .collect();
    let x: Vec<_> = cases.iter().map(|case| case.inputs(false, 1)).collect();
    let mut outs = vec![[0.0; 100]; cases.len()];
    let products = cases.iter().zip(&x).zip(&mut outs);
    let mut products: Vec<_> =
        products.map(|((case, x), out)| Matvec { w: case.layouts()[0], x, out }).collect();
    let matrices: Vec<_> = products.iter().map(|product| product.w).collect();
    for kernels in Kernels::supported() {
        let (multiplied, read) = (Noting::default(), Noting::default());
        matvec_many_with(kernels, &multiplied, &mut products);
        for pattern in ReadPattern::ALL {
            read_weights(kernels, &read, &matrices, *pattern);
            let read = read.0.lock().unwrap().drain(..).collect::<Vec<_>>();
            assert_eq!(read, *multiplied.0.lock().unwrap());
        }
    }
}

#[test]
fn parts_of_a_matrix_and_rows_of_weights() {
    for format in Format::ALL {
        let n_cols = 2 * format.block_len();
        let case = Case::new(*format, 70, n_cols, 1, Bits::Tame);
        let x = case.inputs(true, 1);
        for w in case.layouts() {
            let cuts: &[Range<usize>] = if w.is_packed() {
                &[0..70, 16..64, 32..70, 48..48, 64..67, 16..65, 70..70]
            } else {
                &[0..70, 1..2, 5..22, 33..70, 9..9]
            };
            for cut in cuts {
                let mut out = Guarded::new(cut.len());
                matvec(&Serial, w.rows(cut.clone()), x[0], out.inside());
                let expected = &case.outputs(0, true)[cut.clone()];
                assert_same(out.check(), expected, &|| format!("{w:?}, rows {cut:?}"));
            }
            for row in [0, 15, 16, 63, 64, 69] {
                let (mut found, mut expected) = (vec![0.0; n_cols], vec![0.0; n_cols]);
                w.row_to_f32(row, &mut found);
                let bytes = &case.bytes[row * w.row_bytes()..][..w.row_bytes()];
                oracle::row_to_f32(*format, bytes, &mut expected);
                assert_same(&found, &expected, &|| format!("{w:?}, row {row}"));
            }
        }
    }
}
