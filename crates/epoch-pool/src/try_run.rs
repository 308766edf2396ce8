//! Dispatching on condition that the pool is free.
#![forbid(unsafe_code)]

use std::ops::Range;

use crate::error::Busy;
use crate::pool::{Part, Pool};
use crate::work::{Many, Rows, Visit};

/// The `run…` methods for callers who have something better to do than to run a job alone. A job that runs inline for another
/// reason (no workers, too small to share, a forked child) is `Ok`.
impl Pool {
    /// As [`Pool::run`], unless the pool is busy.
    ///
    /// ```
    /// let pool = epoch_pool::Pool::new(2)?;
    /// pool.run(|_, _| assert_eq!(pool.try_run(|_, _| {}), Err(epoch_pool::Busy::Nested)));
    /// assert_eq!(pool.try_run(|_, _| {}), Ok(()));
    /// # Ok::<(), epoch_pool::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Busy`] if a job is running already; `f` has not been called then.
    ///
    /// # Panics
    ///
    /// As [`Pool::run`].
    pub fn try_run<F: Fn(usize, usize) + Sync>(&self, f: F) -> Result<(), Busy> {
        self.try_execute(&Visit::new(f, self.participants()))
    }

    /// As [`Pool::run_rows`], unless the pool is busy.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_run`].
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn try_run_rows<F>(&self, rows: usize, f: F) -> Result<(), Busy>
    where
        F: Fn(Range<usize>) + Sync,
    {
        self.try_run_rows_by(1, rows, f)
    }

    /// As [`Pool::run_rows_by`], unless the pool is busy.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_run`].
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn try_run_rows_by<F>(&self, grain: usize, rows: usize, f: F) -> Result<(), Busy>
    where
        F: Fn(Range<usize>) + Sync,
    {
        self.try_execute(&Rows::new(f, grain, rows, self.participants()))
    }

    /// As [`Pool::run_many`], unless the pool is busy.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_run`].
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn try_run_many(&self, parts: &[Part<'_>]) -> Result<(), Busy> {
        self.try_run_many_by(1, parts)
    }

    /// As [`Pool::run_many_by`], unless the pool is busy.
    ///
    /// # Errors
    ///
    /// As [`Pool::try_run`].
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn try_run_many_by(&self, grain: usize, parts: &[Part<'_>]) -> Result<(), Busy> {
        self.try_execute(&Many::new(grain, parts, self.participants()))
    }
}
