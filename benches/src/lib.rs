//! What `cargo xtask bench` measures: model shapes, seeded data, backends by name and the decode replay.
//!
//! The binary `bench-runner` measures one [`Contender`] in one suite per process and prints one JSON
//! document ([`protocol::Report`]); so does `peer-runner`, of the package in `benches/peers`, for pools that others wrote. The
//! criterion targets use the same parts.
//!
//! ```
//! use benches::{Backend, Decode, ModelShape};
//! let shape = ModelShape { name: "tiny", n_layers: 2, d_model: 16, d_query: 16, d_kv: 8, d_ff: 32, n_vocab: 64 };
//! let checksum = |backend: Backend| {
//!     let mut decode = Decode::new(shape, rowpar::Format::F32, 7, 2);
//!     backend.with_pool(2, |pool| decode.token(pool, true)).unwrap();
//!     decode.checksum()
//! };
//! assert_eq!(checksum(Backend::Epoch), checksum(Backend::Serial));
//! ```

mod argmax;
mod backend;
mod ceiling;
mod contender;
pub mod cpu_time;
pub mod data;
mod decode;
pub mod decode_suite;
pub mod dispatch;
pub mod gguf;
pub mod library;
pub mod llama;
pub mod matvec;
pub mod metered;
pub mod model_suite;
mod pack;
pub mod protocol;
mod rates;
pub mod round_trip;
pub mod runner;
mod shape;
mod spawn;
pub mod stats;
mod track;
mod variants;
pub mod work;

pub use rowpar::Placement;

pub use self::backend::{Backend, PoolError};
pub use self::contender::Contender;
pub use self::data::SplitMix64;
pub use self::decode::Decode;
pub use self::shape::{MatrixShape, ModelShape};
pub use self::spawn::Spawn;
pub use self::variants::{Input, Variants};

/// The examples of the workspace's README use all of its crates, so they are tested here.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
