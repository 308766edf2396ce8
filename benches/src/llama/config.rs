//! The sizes of a model, from its metadata.

#![forbid(unsafe_code)]

use super::{ModelError, metadata};
use crate::gguf::{Gguf, Value};

/// The sizes and constants of a model of the llama family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Number of layers.
    pub n_layers: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Width between the two halves of the feed-forward part.
    pub d_ff: usize,
    /// Query heads of a layer.
    pub n_heads: usize,
    /// Key and value heads of a layer; each serves `n_heads / n_kv_heads` query heads.
    pub n_kv_heads: usize,
    /// Width of a head.
    pub d_head: usize,
    /// Values of a head that turn with the position.
    pub rope_dims: usize,
    /// The base of the frequencies of that.
    pub rope_base: f32,
    /// What is added to the mean square in a norm.
    pub norm_epsilon: f32,
    /// Most tokens that the model was made for.
    pub n_context: usize,
}

const HEADS: &str = "llama.attention.head_count";
const KV_HEADS: &str = "llama.attention.head_count_kv";
const ROPE_DIMS: &str = "llama.rope.dimension_count";
const KEY_LENGTH: &str = "llama.attention.key_length";
const VALUE_LENGTH: &str = "llama.attention.value_length";

impl Config {
    /// Reads the metadata. That the tensors are so is checked when they are taken.
    ///
    /// # Errors
    ///
    /// The model is not of the llama family, asks for what is not built, or has sizes that do not fit together.
    pub fn from_gguf(gguf: &Gguf<'_>) -> Result<Self, ModelError> {
        refuse_what_is_not_built(gguf)?;
        let size = |key| Ok(optional_size(gguf, key)?.ok_or(ModelError::MissingKey(key)));
        let size = |key| size(key)?;
        let d_model = size("llama.embedding_length")?;
        let n_heads = size(HEADS)?;
        let n_kv_heads = optional_size(gguf, KV_HEADS)?.unwrap_or(n_heads);
        if !n_heads.is_multiple_of(n_kv_heads) {
            return Err(wrong(KV_HEADS, "a divisor of the number of heads"));
        }
        let d_head = optional_size(gguf, KEY_LENGTH)?.unwrap_or(d_model / n_heads);
        if d_head == 0 || !d_head.is_multiple_of(2) {
            return Err(wrong(HEADS, "so many that a head has an even width"));
        }
        if optional_size(gguf, VALUE_LENGTH)?.is_some_and(|len| len != d_head) {
            return Err(wrong(VALUE_LENGTH, "the width of the keys"));
        }
        let rope_dims = optional_size(gguf, ROPE_DIMS)?.unwrap_or(d_head);
        if rope_dims > d_head || !rope_dims.is_multiple_of(2) {
            return Err(wrong(ROPE_DIMS, "even and at most the width of a head"));
        }
        Ok(Self {
            n_layers: size("llama.block_count")?,
            d_model,
            d_ff: size("llama.feed_forward_length")?,
            n_heads,
            n_kv_heads,
            d_head,
            rope_dims,
            rope_base: positive(gguf, "llama.rope.freq_base")?.unwrap_or(10_000.0),
            norm_epsilon: positive(gguf, "llama.attention.layer_norm_rms_epsilon")?
                .ok_or(ModelError::MissingKey("llama.attention.layer_norm_rms_epsilon"))?,
            n_context: size("llama.context_length")?,
        })
    }

    /// Values of all query heads.
    pub fn d_query(&self) -> usize {
        self.n_heads.saturating_mul(self.d_head)
    }

    /// Values of all key heads, and of all value heads.
    pub fn d_kv(&self) -> usize {
        self.n_kv_heads.saturating_mul(self.d_head)
    }
}

fn wrong(key: &'static str, expected: &'static str) -> ModelError {
    ModelError::Value { key, expected }
}

/// What changes the arithmetic, and is not built: it would give another text without a word.
fn refuse_what_is_not_built(gguf: &Gguf<'_>) -> Result<(), ModelError> {
    let architecture = metadata::string(gguf, "general.architecture")?;
    if architecture != "llama" {
        return Err(ModelError::unsupported("general.architecture", architecture));
    }
    let scaling = "llama.rope.scaling.type";
    match metadata::optional(gguf, scaling, "a string", |value| value.as_str())? {
        None | Some("none") => {}
        Some(other) => return Err(ModelError::unsupported(scaling, other)),
    }
    for factor in ["llama.rope.scaling.factor", "llama.rope.scale_linear"] {
        match metadata::optional(gguf, factor, "a number", Value::as_f32)? {
            None | Some(1.0) => {}
            Some(other) => {
                return Err(ModelError::Unsupported { key: factor, value: other.to_string() });
            }
        }
    }
    let experts = "llama.expert_count";
    match metadata::optional(gguf, experts, "a number", Value::as_u64)? {
        None | Some(0) => Ok(()),
        Some(n) => Err(ModelError::Unsupported { key: experts, value: n.to_string() }),
    }
}

/// A number from 1.
fn optional_size(gguf: &Gguf<'_>, key: &'static str) -> Result<Option<usize>, ModelError> {
    metadata::optional(gguf, key, "a number from 1 to 2³²−1", |value| {
        let size = value.as_u64().and_then(|size| u32::try_from(size).ok());
        usize::try_from(size?).ok().filter(|size| *size > 0)
    })
}

fn positive(gguf: &Gguf<'_>, key: &'static str) -> Result<Option<f32>, ModelError> {
    metadata::optional(gguf, key, "a positive number", |value| {
        value.as_f32().filter(|value| *value > 0.0 && value.is_finite())
    })
}
