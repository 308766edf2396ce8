//! Programs that must not compile.
//!
//! A job may be called on several threads at once, so it must be `Sync`:
//!
//! ```compile_fail,E0277
//! let pool = epoch_pool::Pool::new(1).unwrap();
//! let counter = std::cell::Cell::new(0);
//! pool.run_rows(8, |rows| counter.set(counter.get() + rows.len()));
//! ```
//!
//! A borrow that a job is given does not outlive the call:
//!
//! ```compile_fail,E0373
//! fn job() -> impl Fn(usize, usize) + Sync {
//!     let local = 1;
//!     |_, _| _ = std::hint::black_box(&local)
//! }
//! epoch_pool::Pool::new(1).unwrap().run(job());
//! ```
//!
//! Nor can a job write through a borrow that it shares with the others:
//!
//! ```compile_fail,E0594
//! let pool = epoch_pool::Pool::new(1).unwrap();
//! let mut sum = 0;
//! pool.run_rows(8, |rows| sum += rows.len());
//! ```
#![forbid(unsafe_code)]
