//! The way of a pass through an arena: stretch after stretch, and round again.

#![forbid(unsafe_code)]

use std::ops::Range;

/// Matrices in an arena, a stretch of them at a time.
#[derive(Debug)]
pub(crate) struct Track {
    n_copies: usize,
    copy_bytes: usize,
    next_copy: usize,
}

impl Track {
    pub(crate) fn new(n_copies: usize, copy_bytes: usize) -> Self {
        Self { n_copies, copy_bytes, next_copy: 0 }
    }

    /// The next matrices that have `n_bytes` together, at least one.
    pub(crate) fn next_stretch(&mut self, n_bytes: usize) -> Range<usize> {
        let wanted = n_bytes.div_ceil(self.copy_bytes.max(1)).clamp(1, self.n_copies.max(1));
        if self.next_copy + wanted > self.n_copies {
            self.next_copy = 0;
        }
        let first = self.next_copy;
        self.next_copy += wanted;
        first..self.next_copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_rotate_through_the_arena() {
        let mut track = Track::new(3, 80);
        assert_eq!(track.next_stretch(1000), 0..3);
        assert_eq!(track.next_stretch(1000), 0..3);
        assert_eq!(track.next_stretch(81), 0..2);
        assert_eq!(track.next_stretch(160), 0..2, "two copies no longer fit behind the first two");
        assert_eq!(track.next_stretch(80), 2..3);
        assert_eq!(track.next_stretch(0), 0..1);
        assert_eq!(track.next_stretch(1), 1..2);
    }
}
