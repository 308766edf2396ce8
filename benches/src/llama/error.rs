//! Why a file, sound as such, is no model that can be run.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

/// What is missing in a model's file, or is not supported.
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
        /// Its value.
        value: String,
    },
    /// A merge of the vocabulary that is not two tokens which together are a token.
    Merge(usize),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingKey(key) => write!(f, "key {key:?} is missing"),
            Self::Value { key, expected } => write!(f, "key {key:?} should be {expected}"),
            Self::Unsupported { key, value } => write!(f, "{key:?} = {value:?} is not supported"),
            Self::Merge(index) => {
                write!(f, "merge {index} is not two tokens which together are a token")
            }
        }
    }
}

impl Error for ModelError {}
