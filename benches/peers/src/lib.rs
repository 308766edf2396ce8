//! Pools that others wrote, behind [`rowpar::RowPool`], and libraries that multiply matrices with threads of their own: what this
//! workspace is measured against.
//!
//! Each pool is used as its documentation advises for a parallel loop. The rows of a job are handed to it in units of the job's grain,
//! and the units in tiles, some 16 for each thread; `original` cuts them up by itself. Several parts are one dispatch for all.
//!
//! ```
//! let participants = peers::with_pool(benches::Backend::Chili, 2, |pool| pool.participants());
//! assert_eq!(participants.unwrap(), 2);
//! ```

mod calls;
mod gate;
mod library;
mod pool;

pub use self::library::open_library;
pub use self::pool::{missing, with_pool};
