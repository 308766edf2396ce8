//! The pool trait, and the pools it is implemented for.
//!
//! | Invariant | |
//! |---|---|
//! | **P1** | The ranges of one space are disjoint and cover `0..rows`, each row once (unless a call panics: then rows may be left out, none is handed out twice). |
//! | **P2** | A dispatch neither returns nor unwinds while a call of it is running or still to come. |
//!
//! P1 and P2 are what an implementation of [`RowPool`] promises. All writing through shared references
//! happens in `split.rs`, on the strength of these two, and of C1 in `cut.rs`.

use std::ops::Range;

mod cut;
#[cfg(feature = "epoch-pool")]
mod epoch_pool;
mod forward;
#[cfg(feature = "rayon")]
mod rayon;
mod serial;
mod split;

pub(crate) use self::cut::Cut;
#[cfg(feature = "rayon")]
pub use self::rayon::RayonGlobal;
pub(crate) use self::split::{Outputs, Piece, for_each_chunk_range, for_each_piece};
pub use self::{serial::Serial, split::for_each_range_mut};

/// A row space of [`RowPool::for_each_range_many`]: the number of rows, and what to call over ranges of them.
pub type Part<'a> = (usize, &'a (dyn Fn(Range<usize>) + Sync));

/// A pool that hands out row ranges: the one thing that kernels and pools must agree on.
///
/// Implemented for [`Serial`], `RayonGlobal` and `rayon::ThreadPool` (feature
/// `rayon`, on by default), `epoch_pool::Pool` (feature `epoch-pool`), and for `&P`, `Box<P>`, `Arc<P>`
/// and `Option<P>` (`None` is serial) of any of them. It is object-safe: an engine that picks its pool at
/// run time holds a `Box<dyn RowPool>`.
///
/// # Safety
///
/// [`for_each_range`](Self::for_each_range) must call `f` over disjoint ranges that together cover
/// `0..rows`, each row exactly once, and must not return (or unwind) before every call has returned.
/// The same holds for each part of [`for_each_range_many`](Self::for_each_range_many).
///
/// If a call panics, the dispatch unwinds (or aborts the process) after the calls that have begun have
/// returned; rows that were not begun may then be left out.
///
/// # Examples
///
/// A pool of your own, of two threads spawned for each dispatch:
///
/// ```
/// use std::ops::Range;
///
/// struct TwoThreads;
///
/// // SAFETY: the two ranges meet at `middle`, so they are disjoint and cover `0..rows`; the scope joins
/// // the spawned thread before it returns or unwinds.
/// unsafe impl rowpar::RowPool for TwoThreads {
///     fn participants(&self) -> usize {
///         2
///     }
///
///     fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
///         let grain = grain.max(1);
///         let middle = rows.div_ceil(grain) / 2 * grain;
///         std::thread::scope(|scope| {
///             scope.spawn(move || f(0..middle));
///             f(middle..rows);
///         });
///     }
/// }
///
/// let mut out = [0.0; 2];
/// rowpar::matvec_rows(&TwoThreads, &[1.0, 2.0, 3.0, 4.0], &[1.0, 1.0], &mut out);
/// assert_eq!(out, [3.0, 7.0]);
/// ```
pub unsafe trait RowPool: Sync {
    /// Threads that may run ranges at once, the caller included if it takes part; at least 1.
    ///
    /// Advice for cutting the work up: the result of a dispatch must not depend on it.
    fn participants(&self) -> usize;

    /// Bytes of weights from which a dispatch takes less time than it saves.
    ///
    /// Advice for whoever has to choose between this pool and the calling thread, as [`matvec`](crate::matvec) does.
    /// The default is for pools that may have to wake a thread: 1 MiB, some 70 µs of one core's read bandwidth. It depends on
    /// what a wake-up costs: where that is 45 µs, on a virtual machine with two Sapphire Rapids CPUs, rayon called from outside
    /// pays from 3 MB on, and earlier on most other machines, or called from one of its workers. `cargo run --release -p
    /// benches --example thresholds` measures it.
    fn parallel_bytes(&self) -> usize {
        1024 * 1024
    }

    /// Calls `f` over disjoint ranges that cover `0..rows`; returns when all calls have.
    ///
    /// Rows are handed out in groups of `grain`: range starts are multiples of it, and only the last
    /// group may be short. A `grain` of 0 means 1. With no rows, `f` may be called with an empty range
    /// or not at all.
    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync));

    /// Several row spaces in one dispatch, for loops of your own: [`matvec_many`](crate::matvec_many) makes one space of its
    /// matrices, and does not call this.
    ///
    /// Each part is `(rows, f)`, and `f` sees the row indices of its own part. The default runs one part
    /// after another, which is right for pools where a dispatch costs nothing.
    fn for_each_range_many(&self, grain: usize, parts: &[Part<'_>]) {
        for &(rows, f) in parts {
            self.for_each_range(rows, grain, f);
        }
    }
}
