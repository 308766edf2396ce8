//! Metadata with the type that is needed, or an error with the key.

#![forbid(unsafe_code)]

use super::ModelError;
use crate::gguf::{Array, Gguf, Value, ValueType};

/// The value of a key as `read` takes it, if there is such a key.
pub(super) fn optional<'a, T>(
    gguf: &Gguf<'a>,
    key: &'static str,
    expected: &'static str,
    read: impl FnOnce(&Value<'a>) -> Option<T>,
) -> Result<Option<T>, ModelError> {
    let Some(value) = gguf.get(key) else { return Ok(None) };
    read(&value).map(Some).ok_or(ModelError::Value { key, expected })
}

/// A string that has to be there.
pub(super) fn string<'a>(gguf: &Gguf<'a>, key: &'static str) -> Result<&'a str, ModelError> {
    let found = optional(gguf, key, "a string", |value| value.as_str())?;
    found.ok_or(ModelError::MissingKey(key))
}

/// An array of strings that has to be there.
pub(super) fn strings<'a>(gguf: &Gguf<'a>, key: &'static str) -> Result<Array<'a>, ModelError> {
    let is_strings = |array: &Array<'_>| array.element_type() == ValueType::String;
    let found =
        optional(gguf, key, "an array of strings", |value| value.as_array().filter(is_strings))?;
    found.ok_or(ModelError::MissingKey(key))
}
