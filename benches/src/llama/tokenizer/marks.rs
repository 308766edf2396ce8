//! Tokens that a file wants at the beginning and at the end of every text.

#![forbid(unsafe_code)]

use crate::gguf::{Gguf, Value};
use crate::llama::{ModelError, metadata};

/// The two; most files of this kind of vocabulary want neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) first: Option<u32>,
    pub(super) last: Option<u32>,
}

impl Marks {
    /// Reads what a file with so many tokens wants. A file that does not say so wants nothing, as llama.cpp takes vocabularies of
    /// the kind `gpt2` with the rules that are known here.
    pub(super) fn from_gguf(gguf: &Gguf<'_>, n_tokens: usize) -> Result<Self, ModelError> {
        let mark = |wanted, id| mark(gguf, wanted, id, n_tokens);
        Ok(Self {
            first: mark("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id")?,
            last: mark("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id")?,
        })
    }

    /// Puts the first mark in front, unless it stands there: a template may begin with it.
    pub(super) fn begin(&self, tokens: &mut Vec<u32>) {
        if let Some(first) = self.first.filter(|first| tokens.first() != Some(first)) {
            tokens.insert(0, first);
        }
    }

    /// Puts the last mark behind, unless it stands there.
    pub(super) fn end(&self, tokens: &mut Vec<u32>) {
        if let Some(last) = self.last.filter(|last| tokens.last() != Some(last)) {
            tokens.push(last);
        }
    }
}

/// The token of the key `id`, if the truth value of the key `wanted` asks for it.
fn mark(
    gguf: &Gguf<'_>,
    wanted: &'static str,
    id: &'static str,
    n_tokens: usize,
) -> Result<Option<u32>, ModelError> {
    if metadata::optional(gguf, wanted, "true or false", Value::as_bool)? != Some(true) {
        return Ok(None);
    }
    let found = metadata::optional(gguf, id, "a token of the vocabulary", |value| {
        let token = value.as_u64().and_then(|token| u32::try_from(token).ok())?;
        ((token as usize) < n_tokens).then_some(token)
    })?;
    found.map(Some).ok_or(ModelError::MissingKey(id))
}
