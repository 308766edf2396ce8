//! The decode replay: the matvecs of one token of a model, in their order and with their dependencies.
//!
//! What stands between the matvecs is not a transformer, but it costs about as little and it passes every
//! output on: no step can start before the one in front of it has finished. The weights are
//! seeded noise, one contiguous stretch of f32, read once per token: layer by layer `q`, `k`, `v`, `o`,
//! `gate`, `up`, `down`, and the head at the end.
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

use rowpar::{Activation, Matrix, Matvec, RowPool, matvec, matvec_batch, matvec_many};

use crate::ModelShape;
use crate::data::{fill_uniform, uniform};

/// Weights and state of one replayed model.
///
/// ```
/// use benches::{Decode, ModelShape};
/// let shape = ModelShape { name: "tiny", n_layers: 2, d_model: 8, d_query: 8, d_kv: 4, d_ff: 16, n_vocab: 32 };
/// let mut decode = Decode::new(shape, 1, 1);
/// decode.token(&rowpar::Serial, false);
/// let separate = decode.checksum();
/// decode.reset();
/// decode.token(&rowpar::Serial, true);
/// assert_eq!(decode.checksum(), separate);
/// ```
#[derive(Debug)]
pub struct Decode {
    shape: ModelShape,
    seed: u64,
    weights: Vec<f32>,
    state: State,
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
}

impl Decode {
    /// Allocates and fills the weights of `shape` with `n_threads` threads, and sets the first input.
    pub fn new(shape: ModelShape, seed: u64, n_threads: usize) -> Self {
        let mut weights = vec![0.0; shape.n_weights()];
        let scale = (3.0 / shape.d_model as f32).sqrt();
        fill_uniform(&mut weights, seed, scale, n_threads);
        let mut decode = Self { shape, seed, weights, state: State::new(&shape) };
        decode.reset();
        decode
    }

    /// The shape of the model.
    pub fn shape(&self) -> ModelShape {
        self.shape
    }

    /// Goes back to the input of the first token.
    pub fn reset(&mut self) {
        self.state.x = uniform(self.shape.d_model, !self.seed, 1.0, 1);
        self.state.logits.fill(0.0);
    }

    /// All weights, in the order given at the top of this module.
    pub fn weights(&self) -> &[f32] {
        &self.weights
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
        let layer_weights = self.shape.layer_weights();
        let (layers, head) = self.weights.split_at(self.shape.n_layers * layer_weights);
        for layer in layers.chunks_exact(layer_weights) {
            self.state.attention(&self.shape, pool, grouped, layer);
            self.state.feed_forward(&self.shape, pool, grouped, layer);
        }
        self.state.head(pool, head)
    }

    /// A hash of the bits of the last logits and the next input.
    pub fn checksum(&self) -> u64 {
        let values = self.state.logits.iter().chain(&self.state.x);
        values.fold(0xcbf2_9ce4_8422_2325, |hash: u64, value| {
            (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

impl State {
    fn new(shape: &ModelShape) -> Self {
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
        }
    }

    fn attention(&mut self, shape: &ModelShape, pool: &dyn RowPool, grouped: bool, layer: &[f32]) {
        let [q, k, v, o, ..] = split_layer(shape, layer);
        scale_into(&mut self.h, &self.x);
        let h = [Activation::F32(&self.h)];
        run(
            pool,
            grouped,
            &mut [
                Matvec { w: q, x: &h, out: &mut self.q },
                Matvec { w: k, x: &h, out: &mut self.k },
                Matvec { w: v, x: &h, out: &mut self.v },
            ],
        );
        for group in self.q.chunks_mut(shape.d_kv) {
            for ((q, k), v) in group.iter_mut().zip(&self.k).zip(&self.v) {
                *q = *q + *k - 0.5 * *v;
            }
        }
        let wide = &mut self.wide[..shape.d_query];
        scale_into(wide, &self.q);
        matvec(pool, o, Activation::F32(wide), &mut self.update);
        add(&mut self.x, &self.update);
    }

    fn feed_forward(
        &mut self,
        shape: &ModelShape,
        pool: &dyn RowPool,
        grouped: bool,
        layer: &[f32],
    ) {
        let [_, _, _, _, gate, up, down] = split_layer(shape, layer);
        scale_into(&mut self.h, &self.x);
        let h = [Activation::F32(&self.h)];
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
        let wide = &mut self.wide[..shape.d_ff];
        scale_into(wide, &self.gate);
        matvec(pool, down, Activation::F32(wide), &mut self.update);
        add(&mut self.x, &self.update);
    }

    fn head(&mut self, pool: &dyn RowPool, head: &[f32]) -> usize {
        scale_into(&mut self.h, &self.x);
        let matrix = matrix(head, self.logits.len(), self.h.len());
        matvec(pool, matrix, Activation::F32(&self.h), &mut self.logits);
        let token = argmax(&self.logits);
        let row = head.chunks_exact(self.h.len()).nth(token).expect("a logit for each head row");
        for ((x, row), h) in self.x.iter_mut().zip(row).zip(&self.h) {
            *x = *row + 0.25 * *h;
        }
        token
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

/// The matrices of one layer: q, k, v, o, gate, up, down.
fn split_layer<'w>(shape: &ModelShape, layer: &'w [f32]) -> [Matrix<'w>; 7] {
    let mut rest = layer;
    shape.layer().map(|shape| {
        let (weights, behind) = rest.split_at(shape.n_weights());
        rest = behind;
        matrix(weights, shape.n_rows, shape.n_cols)
    })
}

fn matrix(weights: &[f32], n_rows: usize, n_cols: usize) -> Matrix<'_> {
    Matrix::from_f32(weights, n_rows, n_cols).expect("weights of the shape")
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

fn argmax(values: &[f32]) -> usize {
    let mut best = (0, f32::NEG_INFINITY);
    for (index, &value) in values.iter().enumerate() {
        if value > best.1 {
            best = (index, value);
        }
    }
    best.0
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

    #[test]
    fn the_first_of_equal_logits_wins() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0, -1.0]), 1);
        assert_eq!(argmax(&[f32::NEG_INFINITY]), 0);
    }
}
