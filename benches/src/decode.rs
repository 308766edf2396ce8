//! The decode replay: the matvecs of one token of a model, in their order and with their dependencies.
//!
//! What stands between the matvecs is not a transformer, but it costs about as little and it passes every
//! output on: no step can start before the one in front of it has finished. The weights are
//! seeded noise, one contiguous stretch, read once per token: layer by layer `q`, `k`, `v`, `o`,
//! `gate`, `up`, `down`, and the head at the end; rows as in a file, or packed. In a format of blocks an input is
//! quantized once for all the matrices that share it.
//!
//! ```text
//! per layer   h = scaled(x)      q, k, v = W h           a = q + k - v/2  (k, v repeated to the length of q)
//!             h = scaled(a)      x = x + O h
//!             h = scaled(x)      gate, up = W h          a = gate / (1 + |gate|) * up
//!             h = scaled(a)      x = x + Down h
//! at the end  h = scaled(x)      logits = Head h         x = head row of the largest logit + h/4
//! ```
//!
//! `scaled` multiplies by the power of two that brings the largest magnitude into `1..2`, which is exact.

#![forbid(unsafe_code)]

use rowpar::{
    Activation, Format, Matrix, Matvec, Q8Activation, RowPool, matvec, matvec_batch, matvec_many,
};

use crate::ModelShape;
use crate::argmax::argmax;
use crate::data::{as_bytes, fill_noise, fill_uniform, uniform};
use crate::pack::packed_copies;
use crate::shape::MatrixShape;

/// Weights and state of one replayed model.
///
/// ```
/// use benches::{Decode, ModelShape};
/// use rowpar::Format;
/// let shape = ModelShape { name: "tiny", n_layers: 2, d_model: 32, d_query: 32, d_kv: 8, d_ff: 64, n_vocab: 32 };
/// for format in [Format::F32, Format::Q8_0] {
///     let mut decode = Decode::new(shape, format, 1, 1);
///     decode.token(&rowpar::Serial, false);
///     let separate = decode.checksum();
///     decode.reset();
///     decode.token(&rowpar::Serial, true);
///     assert_eq!(decode.checksum(), separate);
///     let mut packed = decode.packed(&rowpar::Serial);
///     packed.token(&rowpar::Serial, true);
///     assert_eq!(packed.checksum(), separate);
/// }
/// ```
#[derive(Debug)]
pub struct Decode {
    seed: u64,
    model: Model,
    state: State,
}

#[derive(Debug)]
struct Model {
    shape: ModelShape,
    format: Format,
    weights: Weights,
}

/// The bytes of all matrices, one behind the other.
#[derive(Debug)]
enum Weights {
    /// In memory of floats, which may have room for some bytes more.
    Rows(Vec<f32>),
    Packed(Vec<u8>),
}

/// Everything a token writes.
#[derive(Debug)]
struct State {
    x: Vec<f32>,
    h: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    wide: Vec<f32>,
    update: Vec<f32>,
    logits: Vec<f32>,
    /// The input of the matvecs of a moment, if weights are in blocks.
    quantized: Option<Q8Activation>,
}

impl Decode {
    /// Allocates and fills the weights of `shape` with `n_threads` threads, and sets the first input.
    ///
    /// A matrix whose rows are no whole blocks of `format` is stored as [`MatrixShape::stored_as`] says.
    pub fn new(shape: ModelShape, format: Format, seed: u64, n_threads: usize) -> Self {
        let mut weights = vec![0.0; shape.n_bytes(format).div_ceil(size_of::<f32>())];
        match format {
            Format::F32 => {
                let scale = (3.0 / shape.d_model as f32).sqrt();
                fill_uniform(&mut weights, seed, scale, n_threads);
            }
            _ => fill_noise(&mut weights, seed, n_threads),
        }
        Self::with(Model { shape, format, weights: Weights::Rows(weights) }, seed)
    }

    /// The same model with its matrices packed, in memory of its own, at the first input.
    pub fn packed(&self, pool: &dyn RowPool) -> Self {
        let weights = Weights::Packed(packed_copies(pool, self.matrices()));
        Self::with(Model { weights, ..self.model }, self.seed)
    }

    fn with(model: Model, seed: u64) -> Self {
        let state = State::new(&model.shape, model.format.is_block());
        let mut decode = Self { seed, model, state };
        decode.reset();
        decode
    }

    /// The shape of the model.
    pub fn shape(&self) -> ModelShape {
        self.model.shape
    }

    /// The format of its weights.
    pub fn format(&self) -> Format {
        self.model.format
    }

    /// Whether its matrices are packed.
    pub fn is_packed(&self) -> bool {
        matches!(self.model.weights, Weights::Packed(_))
    }

    /// Goes back to the input of the first token.
    pub fn reset(&mut self) {
        self.state.x = uniform(self.model.shape.d_model, !self.seed, 1.0, 1);
        self.state.logits.fill(0.0);
    }

    /// All matrices, in the order given at the top of this module.
    pub fn matrices(&self) -> impl Iterator<Item = Matrix<'_>> {
        let layers = (0..self.model.shape.n_layers).flat_map(|layer| self.model.layer(layer));
        layers.chain([self.model.head()])
    }

    /// Calls `f` with the matrices of each dispatch of a token, in their order.
    pub(crate) fn for_each_dispatch(&self, grouped: bool, mut f: impl FnMut(&[Matrix<'_>])) {
        for layer in 0..self.model.shape.n_layers {
            let matrices = self.model.layer(layer);
            let [qkv, o, gate_up, down] = [0..3, 3..4, 4..6, 6..7].map(|range| &matrices[range]);
            for group in [qkv, o, gate_up, down] {
                group.chunks(if grouped { group.len() } else { 1 }).for_each(&mut f);
            }
        }
        f(&[self.model.head()]);
    }

    /// The bytes of all weights, each of them read once per token.
    pub fn bytes(&self) -> &[u8] {
        self.model.bytes()
    }

    /// The input of the next token.
    pub fn input(&self) -> &[f32] {
        &self.state.x
    }

    /// The logits of the last token.
    pub fn logits(&self) -> &[f32] {
        &self.state.logits
    }

    /// Runs the matvecs of one token, q, k, v together and gate, up together if `grouped`.
    ///
    /// Returns the row of the largest logit, the first one of equals.
    pub fn token(&mut self, pool: &dyn RowPool, grouped: bool) -> usize {
        let Self { model, state, .. } = self;
        for layer in 0..model.shape.n_layers {
            let [q, k, v, o, gate, up, down] = model.layer(layer);
            state.attention(pool, grouped, [q, k, v, o]);
            state.feed_forward(pool, grouped, [gate, up, down]);
        }
        state.head(pool, model.head())
    }

    /// A hash of the bits of the last logits and the next input.
    pub fn checksum(&self) -> u64 {
        let values = self.state.logits.iter().chain(&self.state.x);
        values.fold(0xcbf2_9ce4_8422_2325, |hash: u64, value| {
            (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

impl Model {
    fn bytes(&self) -> &[u8] {
        match &self.weights {
            Weights::Rows(floats) => &as_bytes(floats)[..self.shape.n_bytes(self.format)],
            Weights::Packed(bytes) => bytes,
        }
    }

    /// The matrices of one layer: q, k, v, o, gate, up, down.
    fn layer(&self, layer: usize) -> [Matrix<'_>; 7] {
        let shapes = self.shape.layer();
        let n_bytes: usize = shapes.iter().map(|matrix| matrix.n_bytes(self.format)).sum();
        let mut rest = &self.bytes()[layer * n_bytes..];
        shapes.map(|shape| {
            let (bytes, behind) = rest.split_at(shape.n_bytes(self.format));
            rest = behind;
            self.matrix(shape, bytes)
        })
    }

    fn head(&self) -> Matrix<'_> {
        let (shape, bytes) = (self.shape.head(), self.bytes());
        self.matrix(shape, &bytes[bytes.len() - shape.n_bytes(self.format)..])
    }

    fn matrix<'a>(&self, shape: MatrixShape, bytes: &'a [u8]) -> Matrix<'a> {
        let MatrixShape { n_rows, n_cols, .. } = shape;
        let format = shape.stored_as(self.format);
        let view = match self.weights {
            Weights::Rows(_) => Matrix::new,
            Weights::Packed(_) => Matrix::from_packed,
        };
        view(format, n_rows, n_cols, bytes).expect("bytes of the shape")
    }
}

impl State {
    fn new(shape: &ModelShape, quantize: bool) -> Self {
        let zeros = |len| vec![0.0; len];
        let widest = shape.d_query.max(shape.d_ff);
        Self {
            x: zeros(shape.d_model),
            h: zeros(shape.d_model),
            q: zeros(shape.d_query),
            k: zeros(shape.d_kv),
            v: zeros(shape.d_kv),
            gate: zeros(shape.d_ff),
            up: zeros(shape.d_ff),
            wide: zeros(widest),
            update: zeros(shape.d_model),
            logits: zeros(shape.n_vocab),
            quantized: quantize.then(Q8Activation::new),
        }
    }

    fn attention(&mut self, pool: &dyn RowPool, grouped: bool, [q, k, v, o]: [Matrix<'_>; 4]) {
        scale_into(&mut self.h, &self.x);
        let h = [activation(&mut self.quantized, &self.h)];
        run(
            pool,
            grouped,
            &mut [
                Matvec { w: q, x: &h, out: &mut self.q },
                Matvec { w: k, x: &h, out: &mut self.k },
                Matvec { w: v, x: &h, out: &mut self.v },
            ],
        );
        for group in self.q.chunks_mut(self.k.len()) {
            for ((q, k), v) in group.iter_mut().zip(&self.k).zip(&self.v) {
                *q = *q + *k - 0.5 * *v;
            }
        }
        let wide = &mut self.wide[..self.q.len()];
        scale_into(wide, &self.q);
        matvec(pool, o, activation(&mut self.quantized, wide), &mut self.update);
        add(&mut self.x, &self.update);
    }

    fn feed_forward(
        &mut self,
        pool: &dyn RowPool,
        grouped: bool,
        [gate, up, down]: [Matrix<'_>; 3],
    ) {
        scale_into(&mut self.h, &self.x);
        let h = [activation(&mut self.quantized, &self.h)];
        run(
            pool,
            grouped,
            &mut [
                Matvec { w: gate, x: &h, out: &mut self.gate },
                Matvec { w: up, x: &h, out: &mut self.up },
            ],
        );
        for (gate, up) in self.gate.iter_mut().zip(&self.up) {
            *gate = *gate / (1.0 + gate.abs()) * *up;
        }
        let wide = &mut self.wide[..self.gate.len()];
        scale_into(wide, &self.gate);
        matvec(pool, down, activation(&mut self.quantized, wide), &mut self.update);
        add(&mut self.x, &self.update);
    }

    fn head(&mut self, pool: &dyn RowPool, head: Matrix<'_>) -> usize {
        scale_into(&mut self.h, &self.x);
        matvec(pool, head, activation(&mut self.quantized, &self.h), &mut self.logits);
        let token = argmax(&self.logits);
        head.row_to_f32(token, &mut self.x);
        for (x, h) in self.x.iter_mut().zip(&self.h) {
            *x += 0.25 * *h;
        }
        token
    }
}

/// The input of a group of matvecs: quantized here, once for all of them, if their weights are in blocks.
fn activation<'a>(quantized: &'a mut Option<Q8Activation>, x: &'a [f32]) -> Activation<'a> {
    match quantized {
        Some(quantized) => {
            quantized.quantize(x);
            Activation::Q8(quantized)
        }
        None => Activation::F32(x),
    }
}

/// One dispatch for all of `matvecs`, or one for each.
fn run(pool: &dyn RowPool, grouped: bool, matvecs: &mut [Matvec<'_>]) {
    if grouped {
        matvec_many(pool, matvecs);
    } else {
        for matvec in matvecs {
            matvec_batch(pool, matvec.w, matvec.x, matvec.out);
        }
    }
}

/// Copies `input`, multiplied by the power of two that brings its largest magnitude into `1..2`.
fn scale_into(out: &mut [f32], input: &[f32]) {
    let largest = input.iter().fold(0, |max, value| max.max(value.to_bits() & 0x7fff_ffff));
    let exponent = largest >> 23;
    // Zero, subnormals and what has no inverse power of two stay as they are.
    let scale = match exponent {
        1..=253 => f32::from_bits((254 - exponent) << 23),
        _ => 1.0,
    };
    for (out, value) in out.iter_mut().zip(input) {
        *out = value * scale;
    }
}

fn add(x: &mut [f32], update: &[f32]) {
    for (x, update) in x.iter_mut().zip(update) {
        *x += update;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_is_exact_and_bounded() {
        let cases: [(&[f32], &[f32]); 5] = [
            (&[3.0, -6.0], &[0.75, -1.5]),
            (&[1.0, -1.5], &[1.0, -1.5]),
            (&[1e-3, 0.0], &[1.024, 0.0]),
            (&[0.0, 0.0], &[0.0, 0.0]),
            (&[1e38, 5.0], &[1e38 / 8.507_059e37, 5.0 / 8.507_059e37]),
        ];
        for (input, expected) in cases {
            let mut out = vec![9.0; input.len()];
            scale_into(&mut out, input);
            assert_eq!(out, expected, "input {input:?}");
        }
    }
}
