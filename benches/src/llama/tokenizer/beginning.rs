//! The token that a file wants at the beginning of every text.

#![forbid(unsafe_code)]

use crate::gguf::{Gguf, Value};
use crate::llama::{ModelError, metadata};

/// What a file says of it.
const WANTED: &str = "tokenizer.ggml.add_bos_token";
const TOKEN: &str = "tokenizer.ggml.bos_token_id";

/// What a file with so many tokens wants. A file that does not say so wants nothing, as llama.cpp takes vocabularies of the kind
/// `gpt2` with the rules that are known here.
pub(super) fn first_token(gguf: &Gguf<'_>, n_tokens: usize) -> Result<Option<u32>, ModelError> {
    if metadata::optional(gguf, WANTED, "true or false", Value::as_bool)? != Some(true) {
        return Ok(None);
    }
    let found = metadata::optional(gguf, TOKEN, "a token of the vocabulary", |value| {
        let token = value.as_u64().and_then(|token| u32::try_from(token).ok())?;
        ((token as usize) < n_tokens).then_some(token)
    })?;
    found.map(Some).ok_or(ModelError::MissingKey(TOKEN))
}
