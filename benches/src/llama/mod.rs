//! Text from a model of the llama family: its tokenizer, and its decode on any [`RowPool`](rowpar::RowPool).

mod attention;
mod chat;
mod compare;
mod config;
mod error;
mod generate;
mod inputs;
mod math;
mod metadata;
mod model;
mod rope;
mod sample;
mod tokenizer;
mod weights;

pub use self::chat::ChatTemplate;
pub use self::compare::{Difference, Side, compare};
pub use self::config::Config;
pub use self::error::ModelError;
pub use self::generate::{Generator, Guesses, PREFILL_BATCH};
pub use self::inputs::Activations;
pub use self::model::{Model, Session, Stage};
pub use self::sample::{Sampler, Sampling};
pub use self::tokenizer::{TextStream, Tokenizer};
