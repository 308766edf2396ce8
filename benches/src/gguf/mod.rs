//! Reads GGUF, the file format of llama.cpp's models, without copying: values and tensors are views of the file's bytes.
//!
//! Facts are from the format's specification (`docs/gguf.md` of the ggml repository) and were checked against its Python
//! package `gguf`. Versions 2 and 3 are read, in little-endian order.
//!
//! Nothing in a file is believed: each length is checked against what is left of it, and what [`Gguf::parse`] allocates is
//! less than the file. What is wrong is a [`GgufError`] with the place, never a panic.
//!
//! ```
//! use benches::gguf::{Gguf, Value};
//!
//! // Version 3, no tensors, one key: `a` is the 8-bit number 7.
//! let mut file = b"GGUF\x03\0\0\0".to_vec();
//! file.extend(0u64.to_le_bytes());
//! file.extend(1u64.to_le_bytes());
//! file.extend(1u64.to_le_bytes());
//! file.extend(b"a\0\0\0\0\x07");
//! let gguf = Gguf::parse(&file)?;
//! assert_eq!(gguf.get("a"), Some(Value::U8(7)));
//! assert_eq!(gguf.tensors().count(), 0);
//!
//! let error = Gguf::parse(&file[..30]).unwrap_err();
//! assert_eq!(error.to_string(), "header, at byte 24: cut short: 13 bytes needed, 6 left");
//! # Ok::<(), benches::gguf::GgufError>(())
//! ```

mod cursor;
mod error;
mod file;
mod map;
mod tensor;
mod value;

pub(crate) use self::error::excerpt;
pub use self::error::{GgufError, Item, Problem};
pub use self::file::Gguf;
pub use self::map::MappedFile;
pub use self::tensor::{Tensor, TensorType};
pub use self::value::{Array, Value, ValueType, Values};
