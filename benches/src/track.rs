//! The way of a pass through an arena: stretch after stretch, and round again.

#![forbid(unsafe_code)]

use std::ops::Range;

/// Where the next pass through an arena of matrices begins, whether it takes whole matrices or any bytes.
#[derive(Debug)]
pub(crate) struct Track {
    n_copies: usize,
    copy_bytes: usize,
    next_byte: usize,
}

impl Track {
    pub(crate) fn new(n_copies: usize, copy_bytes: usize) -> Self {
        Self { n_copies, copy_bytes, next_byte: 0 }
    }

    /// The next matrices that have `n_bytes` together, at least one.
    pub(crate) fn next_copies(&mut self, n_bytes: usize) -> Range<usize> {
        let wanted = n_bytes.div_ceil(self.copy_bytes).clamp(1, self.n_copies);
        let first = match self.next_byte.div_ceil(self.copy_bytes) {
            first if first + wanted <= self.n_copies => first,
            _ => 0,
        };
        self.next_byte = (first + wanted) * self.copy_bytes;
        first..first + wanted
    }

    /// The next `n_bytes`, or all there are.
    pub(crate) fn next_bytes(&mut self, n_bytes: usize) -> Range<usize> {
        let n_all = self.n_copies * self.copy_bytes;
        let wanted = n_bytes.min(n_all);
        let first = if self.next_byte + wanted <= n_all { self.next_byte } else { 0 };
        self.next_byte = first + wanted;
        first..self.next_byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_rotate_through_the_arena() {
        let mut track = Track::new(3, 80);
        assert_eq!(track.next_copies(1000), 0..3);
        assert_eq!(track.next_copies(1000), 0..3);
        assert_eq!(track.next_copies(81), 0..2);
        assert_eq!(track.next_copies(160), 0..2, "two copies no longer fit behind the first two");
        assert_eq!(track.next_copies(80), 2..3);
        assert_eq!(track.next_copies(0), 0..1);
        assert_eq!(track.next_copies(1), 1..2);
        assert_eq!(track.next_bytes(10), 160..170);
        assert_eq!(track.next_bytes(70), 170..240);
        assert_eq!(track.next_bytes(1), 0..1);
        assert_eq!(
            track.next_copies(1),
            1..2,
            "the rest of a matrix that was read from is left out"
        );
        assert_eq!(track.next_bytes(1000), 0..240);
    }
}
