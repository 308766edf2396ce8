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
//!
//! A job of a session cannot reach the pool, whose dispatches do not check that it is free:
//!
//! ```compile_fail,E0502
//! let mut pool = epoch_pool::Pool::new(1).unwrap();
//! let mut session = pool.session();
//! session.run_rows(8, |_rows| pool.run_rows(8, |_rows| {}));
//! ```
//!
//! ```compile_fail,E0500
//! let mut pool = epoch_pool::Pool::new(1).unwrap();
//! let mut session = pool.session();
//! session.run_rows(8, |_rows| session.run_rows(8, |_rows| {}));
//! ```
//!
//! There is one session at a time:
//!
//! ```compile_fail,E0499
//! let mut pool = epoch_pool::Pool::new(1).unwrap();
//! let (mut one, mut other) = (pool.session(), pool.session());
//! one.run_rows(8, |_rows| {});
//! other.run_rows(8, |_rows| {});
//! ```
#![forbid(unsafe_code)]
