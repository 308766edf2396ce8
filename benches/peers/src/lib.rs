//! Pools that others wrote, behind [`rowpar::RowPool`]: what the pools of this workspace are measured against.
//!
//! Each is used as its documentation advises for a parallel loop, in the configuration that suits it best. The rows of a job
//! are handed to it in units of the job's grain; where it knows no tiles of its own, units go out in tiles
//! like those that pthreadpool's documentation has in mind, some 16 for each thread.
//!
//! ```
//! let participants = peers::with_pool(benches::Backend::Chili, 2, |pool| pool.participants());
//! assert_eq!(participants.unwrap(), 2);
//! ```

mod calls;
mod gate;
mod pool;

pub use self::pool::{missing, with_pool};
