//! The way of a pass through an arena: stretch after stretch, and round again.

#![forbid(unsafe_code)]

use std::ops::Range;

/// Weight bytes of one pass: long beside a dispatch, short beside a change of the machine's mood.
const PASS_BYTES: usize = 16 << 20;

/// Matrices in an arena, a stretch of them at a time.
#[derive(Debug)]
pub(crate) struct Track {
    n_copies: usize,
    copies_per_pass: usize,
    next_copy: usize,
}

impl Track {
    pub(crate) fn new(n_copies: usize, copy_bytes: usize) -> Self {
        let wanted = PASS_BYTES.div_ceil(copy_bytes.max(1));
        Self { n_copies, copies_per_pass: wanted.clamp(1, n_copies.max(1)), next_copy: 0 }
    }

    /// The matrices of the next stretch.
    pub(crate) fn next_stretch(&mut self) -> Range<usize> {
        if self.next_copy + self.copies_per_pass > self.n_copies {
            self.next_copy = 0;
        }
        let first = self.next_copy;
        self.next_copy += self.copies_per_pass;
        first..self.next_copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_rotate_through_the_arena() {
        let mut track = Track::new(3, 80);
        assert_eq!(track.copies_per_pass, 3);
        assert_eq!(track.next_stretch(), 0..3);
        assert_eq!(track.next_stretch(), 0..3);
        let mut track = Track { copies_per_pass: 2, ..track };
        assert_eq!(track.next_stretch(), 0..2);
        assert_eq!(track.next_stretch(), 0..2, "two copies no longer fit behind the first two");
        track.copies_per_pass = 1;
        assert_eq!(track.next_stretch(), 2..3);
        assert_eq!(track.next_stretch(), 0..1);
        assert_eq!(Track::new(100, PASS_BYTES / 2 - 1).next_stretch(), 0..3);
        assert_eq!(Track::new(1, 2 * PASS_BYTES).next_stretch(), 0..1);
    }
}
