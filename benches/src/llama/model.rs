//! One pass of some tokens through all layers.

#![forbid(unsafe_code)]

use rowpar::{Matvec, RowPool, matvec_batch, matvec_many, with_default_floats};

use super::attention::{Cache, Item};
use super::inputs::Inputs;
use super::rope::{Rope, rotate};
use super::weights::Weights;
use super::{Activations, Config, ModelError, math};
use crate::gguf::Gguf;
use crate::pack::packed_copies;

/// A model of the llama family, with its weights where they are in the file.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    config: Config,
    weights: Weights<'a>,
}

impl<'a> Model<'a> {
    /// Takes sizes and weights out of a file.
    ///
    /// # Errors
    ///
    /// Something is missing, has another shape or type than it must, or is not known.
    pub fn from_gguf(gguf: &Gguf<'a>) -> Result<Self, ModelError> {
        // Some numbers are widened or rounded on the way.
        with_default_floats(|| {
            let config = Config::from_gguf(gguf)?;
            let weights = Weights::from_gguf(gguf, &config)?;
            Ok(Self { config, weights })
        })
    }

    /// Its sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The number of tokens that it knows.
    pub fn n_vocab(&self) -> usize {
        self.weights.embedding.n_rows()
    }

    /// Bytes of weights that are read for a token: all matrices, and of the embedding a row, or all of it where it is the head.
    pub fn bytes_per_token(&self) -> usize {
        self.weights.matrices().map(|matrix| matrix.bytes().len()).sum()
    }

    /// Packs a copy of every matrix that is multiplied for a token, on the threads of a pool: [`on_packed`](Self::on_packed)
    /// takes the bytes. An embedding of its own, of which a token needs one row, is none of them.
    pub fn pack(&self, pool: &dyn RowPool) -> Vec<u8> {
        packed_copies(pool, self.weights.matrices())
    }

    /// The same model on what [`pack`](Self::pack) gave. Bytes from elsewhere are other weights.
    ///
    /// # Panics
    ///
    /// If there are not [`bytes_per_token`](Self::bytes_per_token) of them.
    pub fn on_packed<'b>(&self, bytes: &'b [u8]) -> Model<'b>
    where
        'a: 'b,
    {
        Model { config: self.config, weights: self.weights.on_packed(bytes) }
    }
}

/// What a pass over the model is at: see [`Session::forward_watched`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Matrices times the inputs of a layer or of the head.
    Matvec,
    /// Queries against the keys and values so far.
    Attention,
    /// What stands between them: norms, rotations, quantizing of inputs.
    Rest,
}

/// Is told of a stage when it begins.
type Watch<'w> = &'w mut dyn FnMut(Stage);

/// A text in the making: what is kept of its tokens, and memory to work in.
///
/// Logits depend on the tokens before and on [`Activations`], and on nothing else: not on the pool, not on how many tokens went
/// through together, not on the machine, and not on how a thread rounds or whether it flushes subnormals. Two sessions that
/// were given the same tokens give the same bits.
#[derive(Clone, Debug)]
pub struct Session<'m, 'a> {
    model: &'m Model<'a>,
    rope: Rope,
    cache: Cache,
    n_tokens: usize,
    inputs: Inputs,
    work: Work,
}

/// A row of each for every token of a pass.
#[derive(Clone, Debug, Default)]
struct Work {
    turns: Vec<Vec<[f32; 2]>>,
    /// The residual stream.
    x: Vec<f32>,
    normed: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    items: Vec<Item>,
    attended: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    delta: Vec<f32>,
    logits: Vec<f32>,
}

impl<'m, 'a> Session<'m, 'a> {
    /// An empty text that may grow to `capacity` tokens. For what lies beyond [`Config::n_context`] no model was made, and
    /// nothing here looks at that.
    ///
    /// # Errors
    ///
    /// There is no memory for the keys and values of so many tokens.
    pub fn new(
        model: &'m Model<'a>,
        capacity: usize,
        activations: Activations,
    ) -> Result<Self, ModelError> {
        let config = model.config();
        Ok(Self {
            model,
            rope: with_default_floats(|| Rope::new(config.rope_dims, config.rope_base)),
            cache: Cache::new(config, capacity)?,
            n_tokens: 0,
            inputs: Inputs::new(activations),
            work: Work::default(),
        })
    }

    /// The number of tokens so far.
    pub fn len(&self) -> usize {
        self.n_tokens
    }

    /// Whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.n_tokens == 0
    }

    /// The number of tokens that there is room for.
    pub fn capacity(&self) -> usize {
        self.cache.capacity()
    }

    /// What the last pass gave: see [`forward`](Self::forward).
    pub fn logits(&self) -> &[f32] {
        &self.work.logits
    }

    /// Forgets all tokens but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.n_tokens = self.n_tokens.min(len);
    }

    /// Appends tokens in one pass over the weights; gives the logits after each of the last `n_logits` of them, one after the
    /// other. No tokens change nothing and give no logits.
    ///
    /// All of it is under the default floating-point environment ([`with_default_floats`]), on this thread and on those of the
    /// pool.
    ///
    /// # Panics
    ///
    /// If there is no room for so many tokens, there is no such token, or `n_logits` is more than there are tokens.
    pub fn forward(&mut self, pool: &dyn RowPool, tokens: &[u32], n_logits: usize) -> &[f32] {
        self.forward_watched(pool, tokens, n_logits, &mut |_| ())
    }

    /// The same; `watch` is called at the beginning of each stage. A pass begins and ends in [`Stage::Rest`], without a call; with no
    /// tokens there is no stage.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward) does.
    pub fn forward_watched(
        &mut self,
        pool: &dyn RowPool,
        tokens: &[u32],
        n_logits: usize,
        watch: &mut dyn FnMut(Stage),
    ) -> &[f32] {
        let (room, n_vocab) = (self.capacity() - self.n_tokens, self.model.n_vocab());
        assert!(tokens.len() <= room, "{} tokens and room for {room}", tokens.len());
        assert!(n_logits <= tokens.len(), "{n_logits} logits of {} tokens", tokens.len());
        if tokens.is_empty() {
            self.work.logits.clear();
            return &self.work.logits;
        }
        with_default_floats(|| {
            self.embed(tokens, n_vocab);
            for index in 0..self.model.weights.layers.len() {
                self.attention(pool, index, watch);
                self.feed_forward(pool, index, watch);
            }
            self.n_tokens += tokens.len();
            self.head(pool, n_logits, watch);
        });
        &self.work.logits
    }

    fn embed(&mut self, tokens: &[u32], n_vocab: usize) {
        let Self { model, rope, work, n_tokens, .. } = self;
        let d_model = model.config.d_model;
        work.x.resize(tokens.len() * d_model, 0.0);
        for (&token, x) in tokens.iter().zip(work.x.chunks_exact_mut(d_model)) {
            assert!((token as usize) < n_vocab, "token {token} of {n_vocab}");
            model.weights.embedding.row_to_f32(token as usize, x);
        }
        work.turns.resize_with(tokens.len(), Vec::new);
        for (position, turns) in (*n_tokens..).zip(&mut work.turns) {
            rope.at(position, turns);
        }
    }

    fn attention(&mut self, pool: &dyn RowPool, index: usize, watch: Watch<'_>) {
        let Self { model, cache, inputs, work, n_tokens, .. } = self;
        let config = &model.config;
        let layer = &model.weights.layers[index];
        let n = work.turns.len();
        let (d_query, d_kv) = (config.d_query(), config.d_kv());
        norm(&work.x, &layer.attention_norm, config, &mut work.normed);
        work.query.resize(n * d_query, 0.0);
        work.key.resize(n * d_kv, 0.0);
        work.value.resize(n * d_kv, 0.0);
        let x = inputs.of(&work.normed, config.d_model);
        watch(Stage::Matvec);
        matvec_many(
            pool,
            &mut [
                Matvec { w: layer.query, x: &x, out: &mut work.query },
                Matvec { w: layer.key, x: &x, out: &mut work.key },
                Matvec { w: layer.value, x: &x, out: &mut work.value },
            ],
        );
        watch(Stage::Rest);
        for (b, turns) in work.turns.iter().enumerate() {
            rotate(&mut work.query[b * d_query..][..d_query], config.d_head, turns);
            rotate(&mut work.key[b * d_kv..][..d_kv], config.d_head, turns);
            let (key, value) = (&work.key[b * d_kv..][..d_kv], &work.value[b * d_kv..][..d_kv]);
            cache.store(index, *n_tokens + b, key, value);
        }
        work.attended.resize(n * d_query, 0.0);
        watch(Stage::Attention);
        cache.attend(pool, index, *n_tokens, &work.query, &mut work.items, &mut work.attended);
        watch(Stage::Rest);
        let x = inputs.of(&work.attended, d_query);
        work.delta.resize(n * config.d_model, 0.0);
        watch(Stage::Matvec);
        matvec_batch(pool, layer.attention_out, &x, &mut work.delta);
        watch(Stage::Rest);
        math::add(&mut work.x, &work.delta);
    }

    fn feed_forward(&mut self, pool: &dyn RowPool, index: usize, watch: Watch<'_>) {
        let Self { model, inputs, work, .. } = self;
        let config = &model.config;
        let layer = &model.weights.layers[index];
        let n = work.turns.len();
        norm(&work.x, &layer.ffn_norm, config, &mut work.normed);
        work.gate.resize(n * config.d_ff, 0.0);
        work.up.resize(n * config.d_ff, 0.0);
        let x = inputs.of(&work.normed, config.d_model);
        watch(Stage::Matvec);
        matvec_many(
            pool,
            &mut [
                Matvec { w: layer.gate, x: &x, out: &mut work.gate },
                Matvec { w: layer.up, x: &x, out: &mut work.up },
            ],
        );
        watch(Stage::Rest);
        math::swiglu(&mut work.gate, &work.up);
        let x = inputs.of(&work.gate, config.d_ff);
        work.delta.resize(n * config.d_model, 0.0);
        watch(Stage::Matvec);
        matvec_batch(pool, layer.down, &x, &mut work.delta);
        watch(Stage::Rest);
        math::add(&mut work.x, &work.delta);
    }

    fn head(&mut self, pool: &dyn RowPool, n_logits: usize, watch: Watch<'_>) {
        let Self { model, inputs, work, .. } = self;
        let config = &model.config;
        work.logits.resize(n_logits * model.n_vocab(), 0.0);
        if n_logits == 0 {
            return;
        }
        let last = &work.x[work.x.len() - n_logits * config.d_model..];
        norm(last, &model.weights.norm, config, &mut work.normed);
        let x = inputs.of(&work.normed, config.d_model);
        watch(Stage::Matvec);
        matvec_batch(pool, model.weights.head, &x, &mut work.logits);
        watch(Stage::Rest);
    }
}

/// The norm of every row.
fn norm(x: &[f32], weight: &[f32], config: &Config, out: &mut Vec<f32>) {
    out.resize(x.len(), 0.0);
    let rows = x.chunks_exact(config.d_model).zip(out.chunks_exact_mut(config.d_model));
    rows.for_each(|(x, out)| math::rms_norm(x, weight, config.norm_epsilon, out));
}
