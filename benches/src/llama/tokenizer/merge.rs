//! Byte pair encoding of one piece: neighbours are merged, the pair of the lowest rank first, the leftmost of equal ones.

#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// What two neighbours become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merge {
    pub(super) rank: u32,
    pub(super) token: u32,
}

/// The merges of a vocabulary, by the pair.
pub(super) type Merges = HashMap<(u32, u32), Merge>;

/// Stands for a byte that has no token: it merges with nothing, and is left out at the end.
pub(super) const NO_TOKEN: u32 = u32::MAX;

/// Where a list ends.
const END: usize = usize::MAX;

/// A token in a list that shrinks. A place that has been merged into the one before has [`NO_TOKEN`].
#[derive(Clone, Copy, Debug)]
struct Place {
    token: u32,
    previous: usize,
    next: usize,
}

/// A merge that may come: its rank and its left place, by which they are ordered, and the two tokens it was seen with.
type Candidate = Reverse<(u32, usize, u32, u32)>;

/// Merges for a time that grows like n·log n with the length of the piece, as words may be as long as a file.
pub(super) fn merge(piece: &[u32], merges: &Merges, out: &mut Vec<u32>) {
    let mut list = List::new(piece);
    let mut candidates: BinaryHeap<Candidate> = BinaryHeap::new();
    (0..piece.len()).for_each(|left| candidates.extend(list.candidate(left, merges)));
    while let Some(Reverse((_, left, first, second))) = candidates.pop() {
        let right = list.places[left].next;
        // Either may have become part of another token since.
        if list.places[left].token != first || right == END || list.places[right].token != second {
            continue;
        }
        let Some(merge) = merges.get(&(first, second)) else { continue };
        list.join(left, right, merge.token);
        candidates.extend(list.candidate(left, merges));
        let previous = list.places[left].previous;
        if previous != END {
            candidates.extend(list.candidate(previous, merges));
        }
    }
    out.extend(list.tokens());
}

struct List {
    places: Vec<Place>,
}

impl List {
    fn new(piece: &[u32]) -> Self {
        let place = |(at, &token): (usize, &u32)| Place {
            token,
            previous: at.checked_sub(1).unwrap_or(END),
            next: if at + 1 < piece.len() { at + 1 } else { END },
        };
        Self { places: piece.iter().enumerate().map(place).collect() }
    }

    fn candidate(&self, left: usize, merges: &Merges) -> Option<Candidate> {
        let first = self.places[left];
        let second = self.places.get(first.next)?.token;
        let merge = merges.get(&(first.token, second))?;
        Some(Reverse((merge.rank, left, first.token, second)))
    }

    fn join(&mut self, left: usize, right: usize, token: u32) {
        let next = self.places[right].next;
        self.places[left] = Place { token, next, ..self.places[left] };
        self.places[right].token = NO_TOKEN;
        if next != END {
            self.places[next].previous = left;
        }
    }

    fn tokens(&self) -> impl Iterator<Item = u32> {
        self.places.iter().map(|place| place.token).filter(|&token| token != NO_TOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    /// The definition: look for the best pair, merge it, and begin again.
    fn plainly(piece: &[u32], merges: &Merges) -> Vec<u32> {
        let mut tokens = piece.to_vec();
        loop {
            let pairs = tokens.windows(2).enumerate();
            let found = pairs.filter_map(|(at, pair)| Some((merges.get(&(pair[0], pair[1]))?, at)));
            let Some((best, at)) = found.min_by_key(|(merge, at)| (merge.rank, *at)) else {
                tokens.retain(|&token| token != NO_TOKEN);
                return tokens;
            };
            tokens.splice(at..at + 2, [best.token]);
        }
    }

    #[test]
    fn the_result_is_that_of_the_plain_loop() {
        let mut random = SplitMix64::new(5);
        let mut below = |n: u64| (random.next_u64() % n) as u32;
        for _ in 0..300 {
            let mut merges = Merges::new();
            for rank in 0..12 {
                let pair = (below(6 + u64::from(rank)), below(6 + u64::from(rank)));
                merges.entry(pair).or_insert(Merge { rank, token: 6 + rank });
            }
            let len = below(40);
            let piece: Vec<u32> = (0..len)
                .map(|_| match below(20) {
                    0 => NO_TOKEN,
                    n => n % 4,
                })
                .collect();
            let mut found = Vec::new();
            merge(&piece, &merges, &mut found);
            assert_eq!(found, plainly(&piece, &merges), "{piece:?} with {merges:?}");
        }
    }

    #[test]
    fn a_word_as_long_as_a_file() {
        // Powers of two: every pair of equal tokens merges.
        let merges: Merges = (0..20).map(|n| ((n, n), Merge { rank: n, token: n + 1 })).collect();
        let mut found = Vec::new();
        merge(&vec![0; 1 << 16], &merges, &mut found);
        assert_eq!(found, [16]);
    }
}
