//! What can be wrong with a GGUF file, and where.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

/// Most bytes of a name that an error keeps, so that a hostile name is not copied whole.
const NAME_LEN: usize = 80;

/// Why a file is no GGUF file that can be read: the problem, the byte at which it was found, and what was being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufError {
    /// What is wrong.
    pub problem: Problem,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What stands there.
    pub item: Item,
}

/// The part of a file that an error is about. Names longer than 80 bytes are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Magic, version and counts.
    Header,
    /// The metadata entry of this index, in the order of the file, whose key could not be read.
    KeyIndex(u64),
    /// The metadata entry of this key.
    Key(String),
    /// The tensor of this index, in the order of the file, whose name could not be read.
    TensorIndex(u64),
    /// The tensor of this name.
    Tensor(String),
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file ends too early.
    CutShort {
        /// Bytes that have to follow.
        needed: u64,
        /// Bytes that do.
        left: u64,
    },
    /// The first four bytes are not `GGUF`.
    Magic([u8; 4]),
    /// The numbers are big-endian.
    BigEndian,
    /// A version other than 2 and 3.
    Version(u32),
    /// No value has a type of this number.
    ValueType(u32),
    /// A truth value that is neither 0 nor 1.
    Bool(u8),
    /// Arrays within arrays, more of them than [`Array::MAX_DEPTH`](super::Array::MAX_DEPTH).
    Depth,
    /// A name that is longer than the format allows.
    NameTooLong {
        /// Its bytes.
        len: u64,
        /// Bytes that it may have: 65,535 for a key, 64 for a tensor.
        max_len: u64,
        /// Its first characters.
        begins: String,
    },
    /// A name that is not UTF-8.
    NotUtf8,
    /// A second entry or tensor of this name.
    Duplicate,
    /// `general.alignment` is not a 32-bit number that is a power of two and a multiple of 8.
    Alignment,
    /// More than four dimensions.
    Dimensions(u32),
    /// A tensor type that is not known.
    TensorType(u32),
    /// A row that ends inside a quantization block.
    PartialBlock {
        /// Elements of a row.
        row_len: u64,
        /// Elements of a block.
        block_len: u64,
    },
    /// A tensor of more bytes than can be counted.
    TooLarge,
    /// Tensor data that does not begin at a multiple of the alignment.
    Unaligned {
        /// Where it begins, from the beginning of all data.
        start: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// Tensor data that reaches beyond the end of the file.
    OutOfFile {
        /// Where it ends, in bytes of the file.
        end: u64,
        /// The length of the file.
        file_len: u64,
    },
    /// Tensor data that begins inside the data of another tensor, which is named.
    Overlap(String),
}

impl fmt::Display for GgufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at byte {}: {}", self.item, self.offset, self.problem)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => write!(f, "header"),
            Self::KeyIndex(index) => write!(f, "metadata entry {index}"),
            Self::Key(name) => write!(f, "key {name:?}"),
            Self::TensorIndex(index) => write!(f, "tensor {index}"),
            Self::Tensor(name) => write!(f, "tensor {name:?}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutShort { needed, left } => {
                write!(f, "cut short: {needed} bytes needed, {left} left")
            }
            Self::Magic(found) => {
                write!(f, "not a GGUF file: it begins with \"{}\"", found.escape_ascii())
            }
            Self::BigEndian => write!(f, "big-endian files are not supported"),
            Self::Version(version) => write!(f, "version {version} is not supported, only 2 and 3"),
            Self::ValueType(id) => write!(f, "unknown value type {id}"),
            Self::Bool(byte) => write!(f, "a truth value of {byte}"),
            Self::Depth => write!(f, "too many arrays within arrays"),
            Self::NameTooLong { len, max_len, begins } => write!(
                f,
                "a name of {len} bytes, at most {max_len} are possible; it begins with {begins:?}"
            ),
            Self::NotUtf8 => write!(f, "a name that is not UTF-8"),
            Self::Duplicate => write!(f, "the second of this name"),
            Self::Alignment => {
                write!(f, "the alignment must be a u32, a power of two, and at least 8")
            }
            Self::Dimensions(n) => write!(f, "{n} dimensions, at most 4 are possible"),
            Self::TensorType(id) => write!(f, "unknown tensor type {id}"),
            Self::PartialBlock { row_len, block_len } => {
                write!(f, "rows of {row_len} elements in blocks of {block_len}")
            }
            Self::TooLarge => write!(f, "more bytes than can be counted"),
            Self::Unaligned { start, alignment } => {
                write!(f, "data begins at {start}, which is no multiple of {alignment}")
            }
            Self::OutOfFile { end, file_len } => {
                write!(f, "data ends at byte {end} of a file of {file_len}")
            }
            Self::Overlap(other) => write!(f, "data begins inside that of {other:?}"),
        }
    }
}

impl Error for GgufError {}

/// A problem and its place, before it is known what it is about.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) problem: Problem,
    pub(super) offset: usize,
}

impl Fault {
    pub(super) fn of(self, item: Item) -> GgufError {
        GgufError { problem: self.problem, offset: self.offset as u64, item }
    }
}

impl Item {
    pub(super) fn key(name: &str) -> Self {
        Self::Key(excerpt(name.as_bytes()))
    }

    pub(super) fn tensor(name: &str) -> Self {
        Self::Tensor(excerpt(name.as_bytes()))
    }
}

/// The beginning of a name, not cut inside a character; up to the first byte that is no UTF-8.
pub(crate) fn excerpt(name: &[u8]) -> String {
    let start = &name[..name.len().min(NAME_LEN)];
    start.utf8_chunks().next().map_or(String::new(), |chunk| chunk.valid().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(excerpt(b"token_embd.weight"), "token_embd.weight");
        let name = "é".repeat(100);
        assert_eq!(excerpt(name.as_bytes()).len(), NAME_LEN);
        assert_eq!(excerpt(format!("a{name}").as_bytes()).len(), NAME_LEN - 1);
        assert_eq!(excerpt(b"ab\xffcd"), "ab");
        assert_eq!(excerpt(b""), "");
    }
}
