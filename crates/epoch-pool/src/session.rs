//! Dispatching on a pool that nobody else can reach.
#![forbid(unsafe_code)]

use std::ops::Range;

use crate::pool::{Part, Pool};
use crate::statistics::Statistics;
use crate::work::{Many, Rows, Visit};

/// A pool that one thread has to itself; [`Pool::session`] makes one.
///
/// Nothing else can dispatch on the pool meanwhile, nor can its jobs, as they cannot borrow it: the type system sees to it. So
/// its dispatches need not check, and run inline for no other reason than that the pool has no workers, the job is too small,
/// or this is a forked child; and undivided on their caller, as those of the pool, where others have the workers' CPUs. In all else they are the methods of [`Pool`] of the same names.
///
/// ```
/// # use std::sync::atomic::{AtomicUsize, Ordering};
/// let mut pool = epoch_pool::Pool::new(3)?;
/// let mut token = pool.session().hot(); // the workers stay awake until it is dropped
/// let sum = AtomicUsize::new(0);
/// for _layer in 0..4 {
///     token.run_rows(100, |rows| _ = sum.fetch_add(rows.len(), Ordering::Relaxed));
/// }
/// drop(token); // and park
/// assert_eq!(sum.into_inner(), 400);
/// # Ok::<(), epoch_pool::Error>(())
/// ```
#[derive(Debug)]
pub struct Session<'a> {
    pool: &'a mut Pool,
    is_hot: bool,
}

impl<'a> Session<'a> {
    pub(crate) fn new(pool: &'a mut Pool) -> Self {
        Self { pool, is_hot: false }
    }

    /// Keeps the workers awake until the session is dropped, as [`Pool::hot`] does.
    #[must_use]
    pub fn hot(mut self) -> Self {
        if !self.is_hot {
            self.is_hot = true;
            self.pool.heat_up();
        }
        self
    }

    /// As [`Pool::participants`].
    pub fn participants(&self) -> usize {
        self.pool.participants()
    }

    /// As [`Pool::statistics`].
    pub fn statistics(&self) -> Statistics {
        self.pool.statistics()
    }

    /// As [`Pool::run`].
    ///
    /// # Panics
    ///
    /// As [`Pool::run`].
    pub fn run<F: Fn(usize, usize) + Sync>(&mut self, f: F) {
        let job = Visit::new(f, self.participants());
        self.pool.execute_alone(&job);
    }

    /// As [`Pool::run_rows`].
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn run_rows<F: Fn(Range<usize>) + Sync>(&mut self, rows: usize, f: F) {
        self.run_rows_by(1, rows, f);
    }

    /// As [`Pool::run_rows_by`].
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn run_rows_by<F: Fn(Range<usize>) + Sync>(&mut self, grain: usize, rows: usize, f: F) {
        let job = Rows::new(f, grain, rows, self.participants());
        self.pool.execute_alone(&job);
    }

    /// As [`Pool::run_many`].
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn run_many(&mut self, parts: &[Part<'_>]) {
        self.run_many_by(1, parts);
    }

    /// As [`Pool::run_many_by`].
    ///
    /// # Panics
    ///
    /// As [`Pool::run_rows`].
    pub fn run_many_by(&mut self, grain: usize, parts: &[Part<'_>]) {
        let job = Many::new(grain, parts, self.participants());
        self.pool.execute_alone(&job);
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if self.is_hot {
            self.pool.cool_down();
        }
    }
}
