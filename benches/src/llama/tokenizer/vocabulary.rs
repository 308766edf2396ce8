//! What the file has of each token: its text, its bytes, whether it is for control.

#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::bytes::Decoder;
use super::merge::{Merge, Merges};
use crate::gguf::{Array, Gguf};
use crate::llama::{ModelError, metadata};

const TOKENS: &str = "tokenizer.ggml.tokens";
pub(super) const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";

/// The type numbers of tokens that are found in text as they are written.
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

/// The bytes of all tokens, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Vocabulary {
    bytes: Vec<u8>,
    /// Where the bytes of each token end.
    ends: Vec<usize>,
    types: Vec<i32>,
}

impl Vocabulary {
    /// Reads the tokens, and gives the number of each text. Of two tokens with one text, the first has it.
    pub(super) fn from_gguf<'a>(
        gguf: &Gguf<'a>,
    ) -> Result<(Self, HashMap<&'a str, u32>), ModelError> {
        let tokens = metadata::strings(gguf, TOKENS)?;
        let types = read_types(gguf, tokens.len())?;
        let decoder = Decoder::new();
        let mut vocabulary =
            Self { bytes: Vec::new(), ends: Vec::with_capacity(tokens.len()), types };
        let mut ids = HashMap::with_capacity(tokens.len());
        for (id, token) in (0..).zip(tokens) {
            let not_utf8 = ModelError::Value { key: TOKENS, expected: "UTF-8 in every token" };
            let text = token.as_str().ok_or(not_utf8)?;
            ids.entry(text).or_insert(id);
            match vocabulary.is_special(id) {
                true => vocabulary.bytes.extend(text.as_bytes()),
                false => decoder.decode(text, &mut vocabulary.bytes),
            }
            vocabulary.ends.push(vocabulary.bytes.len());
        }
        Ok((vocabulary, ids))
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn bytes(&self, token: u32) -> &[u8] {
        let token = token as usize;
        let Some(&end) = self.ends.get(token) else { return &[] };
        let start = token.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..end]
    }

    pub(super) fn is_control(&self, token: u32) -> bool {
        self.types.get(token as usize) == Some(&CONTROL)
    }

    fn is_special(&self, token: u32) -> bool {
        matches!(self.types.get(token as usize), Some(&CONTROL | &USER_DEFINED))
    }

    /// The texts of user-defined tokens and, if asked for, of control tokens.
    pub(super) fn special(&self, with_control: bool) -> impl Iterator<Item = (&str, u32)> {
        let ids = (0..self.len() as u32)
            .filter(move |&id| self.is_special(id) && (with_control || !self.is_control(id)));
        ids.filter_map(|id| Some((str::from_utf8(self.bytes(id)).ok()?, id)))
    }
}

/// The type of each token; normal without the key.
fn read_types(gguf: &Gguf<'_>, n_tokens: usize) -> Result<Vec<i32>, ModelError> {
    let all = |array: Array<'_>| -> Option<Vec<i32>> {
        let types = array.iter().map(|value| i32::try_from(value.as_u64()?).ok());
        types.collect::<Option<Vec<i32>>>().filter(|types| types.len() == n_tokens)
    };
    let expected = "an array of a type for each token";
    let found = metadata::optional(gguf, TYPES, expected, |value| value.as_array().and_then(all))?;
    Ok(found.unwrap_or_else(|| vec![1; n_tokens]))
}

/// The merges, ranked as they stand in the file. Of two for one pair the first counts.
pub(super) fn merges(gguf: &Gguf<'_>, ids: &HashMap<&str, u32>) -> Result<Merges, ModelError> {
    let lines = metadata::strings(gguf, MERGES)?;
    let mut merges = Merges::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let of_tokens = || {
            let line = line.as_str()?;
            let (first, second) = line.split_once(' ')?;
            let token = *ids.get([first, second].concat().as_str())?;
            let pair = (*ids.get(first)?, *ids.get(second)?);
            Some((pair, Merge { rank: u32::try_from(index).ok()?, token }))
        };
        let (pair, merge) = of_tokens().ok_or(ModelError::Merge(index))?;
        merges.entry(pair).or_insert(merge);
    }
    Ok(merges)
}
