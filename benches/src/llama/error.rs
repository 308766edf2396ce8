//! Why a file, sound as such, is no model that can be run, or not for a text of this length.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use crate::gguf::excerpt;

/// What is missing in a model's file, is not supported, or does not fit into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelError {
    /// A key that has to be there.
    MissingKey(&'static str),
    /// A key with a value of another type, or out of its range.
    Value {
        /// The key.
        key: &'static str,
        /// What its value should be.
        expected: &'static str,
    },
    /// A key with a value that asks for something that is not built.
    Unsupported {
        /// The key.
        key: &'static str,
        /// Its value; the beginning of a long one.
        value: String,
    },
    /// A tensor that has to be there.
    MissingTensor(String),
    /// A tensor that this program does not know what to do with: without it the model would be another one.
    UnknownTensor(String),
    /// A tensor of another shape than the sizes of the model ask for.
    Shape {
        /// Its name.
        tensor: String,
        /// The lengths that its dimensions should have.
        expected: [u64; 4],
        /// Those that they have.
        found: [u64; 4],
    },
    /// A tensor stored in a way for which there are no kernels.
    TensorType {
        /// Its name.
        tensor: String,
        /// Its type.
        tensor_type: &'static str,
    },
    /// No memory for the keys and values of so many tokens.
    Memory {
        /// The number of tokens.
        n_tokens: usize,
    },
    /// A merge of the vocabulary that is not two tokens which together are a token.
    Merge(usize),
}

impl ModelError {
    /// A text of the file may be as long as the file: an error has its beginning.
    pub(super) fn unsupported(key: &'static str, value: &str) -> Self {
        Self::Unsupported { key, value: excerpt(value.as_bytes()) }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingKey(key) => write!(f, "key {key:?} is missing"),
            Self::Value { key, expected } => write!(f, "key {key:?} should be {expected}"),
            Self::Unsupported { key, value } => write!(f, "{key:?} = {value:?} is not supported"),
            Self::MissingTensor(name) => write!(f, "tensor {name:?} is missing"),
            Self::UnknownTensor(name) => write!(f, "tensor {name:?} is none of this family"),
            Self::Shape { tensor, expected, found } => {
                write!(f, "tensor {tensor:?} has the dimensions {found:?} instead of {expected:?}")
            }
            Self::TensorType { tensor, tensor_type } => {
                write!(f, "tensor {tensor:?} is of type {tensor_type}, which has no kernels")
            }
            Self::Memory { n_tokens } => {
                write!(f, "no memory for the keys and values of {n_tokens} tokens")
            }
            Self::Merge(index) => {
                write!(f, "merge {index} is not two tokens which together are a token")
            }
        }
    }
}

impl Error for ModelError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_repeat_a_long_value() {
        assert_eq!(
            ModelError::unsupported("a", "short").to_string(),
            "\"a\" = \"short\" is not supported"
        );
        let long = ModelError::unsupported("a", &"x".repeat(1 << 20)).to_string();
        assert!(long.len() < 200, "{} bytes", long.len());
    }
}
