//! The pool of one: everything on the calling thread.

use std::ops::Range;

use crate::RowPool;

/// Runs every range on the calling thread, in ascending order.
///
/// # Examples
///
/// ```
/// let mut out = [0.0; 2];
/// rowpar::matvec_rows(&rowpar::Serial, &[1.0, 2.0, 3.0, 4.0], &[1.0, 1.0], &mut out);
/// assert_eq!(out, [3.0, 7.0]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serial;

// SAFETY: P1, P2. One call over the whole of `0..rows`, on this thread.
unsafe impl RowPool for Serial {
    fn participants(&self) -> usize {
        1
    }

    fn parallel_bytes(&self) -> usize {
        usize::MAX
    }

    fn for_each_range(&self, rows: usize, _grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        if rows > 0 {
            f(0..rows);
        }
    }
}
