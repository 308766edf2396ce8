//! Block layouts and weights against those of the Python package `gguf`, as `data/generate.py` wrote them down.

mod blocks;
mod common;
mod exact;

use blocks::Weight;
use common::{Guarded, assert_same};
use rowpar::{Activation, Format, Kernels, Matrix, PackedMatrix, oracle};

const BLOCKS: &str = include_str!("data/blocks.txt");

/// A line of the file.
#[derive(Clone)]
struct Block {
    format: Format,
    bytes: Vec<u8>,
    weights: Vec<f32>,
}

fn lines() -> Vec<Block> {
    let blocks = BLOCKS.lines().filter(|line| !line.starts_with('#'));
    blocks
        .map(|line| {
            let [name, bytes, weights] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("three words: {line}");
            };
            let hex = |text: &str| u32::from_str_radix(text, 16).expect("hexadecimal");
            let words = |text: &str, len: usize| -> Vec<u32> {
                (0..text.len()).step_by(len).map(|at| hex(&text[at..at + len])).collect()
            };
            Block {
                format: name.parse().expect("a format"),
                bytes: words(bytes, 2).into_iter().map(|byte| byte as u8).collect(),
                weights: words(weights, 8).into_iter().map(f32::from_bits).collect(),
            }
        })
        .collect()
}

#[test]
fn the_oracle_widens_as_gguf_does() {
    let blocks = lines();
    for format in Format::ALL.iter().filter(|format| format.is_block()) {
        assert_eq!(blocks.iter().filter(|block| block.format == *format).count(), 6, "{format}");
    }
    for block in &blocks {
        let mut weights = vec![f32::NAN; block.format.block_len()];
        oracle::row_to_f32(block.format, &block.bytes, &mut weights);
        assert_same(&weights, &block.weights, &|| format!("{}", block.format));
    }
}

/// A column of each block at a time: an input that is 1 there and 0 elsewhere gives back the weight.
///
/// A weight of -0 becomes the sum +0, and finite weights are not changed by the zeros added to them.
#[test]
fn kernels_widen_as_gguf_does() {
    for format in Format::ALL.iter().filter(|format| format.is_block()) {
        let blocks: Vec<_> =
            lines().into_iter().filter(|block| block.format == *format).cycle().take(21).collect();
        let bytes: Vec<u8> = blocks.iter().flat_map(|block| &block.bytes).copied().collect();
        let w = Matrix::new(*format, blocks.len(), format.block_len(), &bytes).unwrap();
        let packed = PackedMatrix::new(w);
        for first in (0..format.block_len()).step_by(8) {
            let inputs: [Vec<f32>; 8] = std::array::from_fn(|column| {
                (0..format.block_len()).map(|i| f32::from(i == first + column)).collect()
            });
            let x: Vec<Activation<'_>> = inputs.iter().map(|x| x[..].into()).collect();
            let expected: Vec<f32> = (first..first + 8)
                .flat_map(|column| blocks.iter().map(move |block| block.weights[column] + 0.0))
                .collect();
            for kernels in Kernels::supported() {
                for w in [w, packed.as_matrix()] {
                    let mut out = Guarded::new(8 * blocks.len());
                    kernels.matvec(w, &x, out.inside());
                    assert_same(out.check(), &expected, &|| format!("{w:?}, {}", kernels.isa()));
                }
            }
        }
    }
}

/// What products with quantized inputs are tested against reads integers and scales as gguf does.
#[test]
fn the_description_in_these_tests_is_that_of_gguf() {
    for block in lines() {
        let weight = |i| Weight::read(block.format, &block.bytes, i).value();
        let weights: Vec<f32> = (0..block.format.block_len()).map(weight).collect();
        assert_same(&weights, &block.weights, &|| format!("{}", block.format));
    }
}
