//! Text from a model of the llama family: its tokenizer, and its decode on any [`RowPool`](rowpar::RowPool).

mod error;
mod metadata;
mod tokenizer;

pub use self::error::ModelError;
pub use self::tokenizer::{TextStream, Tokenizer};
