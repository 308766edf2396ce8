//! Text to tokens and back, by the vocabulary of the file: byte-level BPE as of GPT-2.

mod beginning;
mod bytes;
mod merge;
mod special;
mod split;
mod stream;
mod vocabulary;

use self::merge::{Merges, NO_TOKEN, merge};
use self::special::SpecialTokens;
use self::split::Splitter;
pub use self::stream::TextStream;
use self::vocabulary::Vocabulary;
use super::{ModelError, metadata};
use crate::gguf::Gguf;

/// The tokenizer of a model.
///
/// Bytes for which the vocabulary has no token are left out, as llama.cpp leaves them out: SmolLM2 lacks six control characters
/// and 15 bytes that text has rarely or never.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    byte_tokens: [u32; 256],
    merges: Merges,
    splitter: Splitter,
    /// Those that are parsed in any text.
    user_defined: SpecialTokens,
    /// Those and the control tokens.
    special: SpecialTokens,
    /// What the file wants at the beginning of a text.
    first: Option<u32>,
}

impl Tokenizer {
    /// Reads the vocabulary of a file.
    ///
    /// # Errors
    ///
    /// A key is missing or of a wrong type, the vocabulary is of another kind than `gpt2`, its rules for splitting text are
    /// neither `smollm` nor `gpt-2`, a merge is not of tokens, or the file wants texts to begin with a token that it does not name.
    pub fn from_gguf(gguf: &Gguf<'_>) -> Result<Self, ModelError> {
        let (model, pre) = ("tokenizer.ggml.model", "tokenizer.ggml.pre");
        let kind = metadata::string(gguf, model)?;
        if kind != "gpt2" {
            return Err(ModelError::unsupported(model, kind));
        }
        let rules = metadata::string(gguf, pre)?;
        let splitter = Splitter::named(rules).ok_or_else(|| ModelError::unsupported(pre, rules))?;
        let (vocabulary, ids) = Vocabulary::from_gguf(gguf)?;
        let alphabet = bytes::alphabet();
        let byte_tokens = alphabet.map(|character| {
            ids.get(character.encode_utf8(&mut [0; 4])).copied().unwrap_or(NO_TOKEN)
        });
        Ok(Self {
            byte_tokens,
            merges: vocabulary::merges(gguf, &ids)?,
            splitter,
            user_defined: special_tokens(&vocabulary, false)?,
            special: special_tokens(&vocabulary, true)?,
            first: beginning::first_token(gguf, vocabulary.len())?,
            vocabulary,
        })
    }

    /// The number of tokens.
    pub fn n_tokens(&self) -> usize {
        self.vocabulary.len()
    }

    /// The tokens of a text in which nothing is a control token, whatever it looks like: of what a user says, say.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_around(text, &self.user_defined)
    }

    /// The tokens of a text in which `<|im_end|>` and its like are control tokens.
    pub fn encode_with_control(&self, text: &str) -> Vec<u32> {
        self.encode_around(text, &self.special)
    }

    /// The tokens of the beginning of a text: `tokens` with what the file wants in front (`tokenizer.ggml.add_bos_token`), which is
    /// nothing if the file does not say so. What stands there already does not come twice. What a file wants at the end of a
    /// text is not asked: a text that is to be continued has none.
    pub fn mark_beginning(&self, mut tokens: Vec<u32>) -> Vec<u32> {
        if let Some(first) = self.first.filter(|first| tokens.first() != Some(first)) {
            tokens.insert(0, first);
        }
        tokens
    }

    fn encode_around(&self, text: &str, special: &SpecialTokens) -> Vec<u32> {
        let mut tokens = Vec::new();
        special.split(text, |part| match part {
            special::Part::Token(token) => tokens.push(token),
            special::Part::Text(text) => {
                self.splitter.split(text, |piece| self.encode_piece(piece, &mut tokens));
            }
        });
        tokens
    }

    fn encode_piece(&self, piece: &str, tokens: &mut Vec<u32>) {
        let bytes: Vec<u32> =
            piece.bytes().map(|byte| self.byte_tokens[usize::from(byte)]).collect();
        merge(&bytes, &self.merges, tokens);
    }

    /// What a token stands for; nothing if there is no such token. It may end inside a character.
    pub fn bytes(&self, token: u32) -> &[u8] {
        self.vocabulary.bytes(token)
    }

    /// The text of some tokens, control tokens as they are written; what is no UTF-8 becomes U+FFFD.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|&token| self.bytes(token)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The control token that is written so.
    pub fn control(&self, text: &str) -> Option<u32> {
        self.special.get(text).filter(|&token| self.vocabulary.is_control(token))
    }

    /// Whether a token is for control only, and no text.
    pub fn is_control(&self, token: u32) -> bool {
        self.vocabulary.is_control(token)
    }
}

fn special_tokens(vocabulary: &Vocabulary, control: bool) -> Result<SpecialTokens, ModelError> {
    let too_many = ModelError::Value { key: vocabulary::TYPES, expected: "few special tokens" };
    SpecialTokens::new(vocabulary.special(control)).map_err(|_| too_many)
}
