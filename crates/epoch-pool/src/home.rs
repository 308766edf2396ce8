//! A participant's home: the chunks it starts a job with, in one atomic word, and how they are claimed.
//!
//! The owner claims from the front, everybody else from the back, each with a compare-exchange on the whole word. Who has
//! claimed a chunk is the only one that will ever run it. The word says everything that a claim must know, so a claim made on
//! a stale reading either fails or is a claim on the job that is current: there is no ABA problem.
#![forbid(unsafe_code)]

use std::ops::Range;

use crate::sync::{AtomicBool, AtomicU64, Hint, Ordering};
use crate::sys::prefetch;

/// Chunks of one job at most: 31 bits of the word, less one value for `STOP`.
pub(crate) const MAX_CHUNKS: u32 = PINNED - 2;

/// The flag, in the half of the word that holds the end, of chunks which only the owner may claim.
const PINNED: u32 = 1 << 31;

/// The word that tells a worker to end. It is pinned and empty, so nobody claims anything from it.
const STOP: u64 = u64::MAX;

/// Chunks that the claimer must run and count, and nobody else can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) chunks: Range<u32>,
    pub(crate) pinned: bool,
}

/// What the owner of a home finds in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Chunks,
    Stop,
}

/// One per participant, each on a cache line of its own.
#[derive(Debug)]
pub(crate) struct Home {
    /// `next` in the low half, `end` and `PINNED` in the high half. Empty if `next >= end`.
    word: AtomicU64,
    /// The owner is parked, or about to park. Written by the owner alone.
    asleep: AtomicBool,
    /// Where the job lies whose chunks these are. Arrives with the word, so the owner can ask for the job's lines while its
    /// claim is under way.
    job: Hint,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(0), asleep: AtomicBool::new(false), job: Hint::new() }
    }

    /// H1: opens a range to claims. Only while it is empty, and only by the dispatching thread. `job` is for the cache alone.
    pub(crate) fn open(&self, chunks: Range<u32>, pinned: bool, job: *mut ()) {
        self.job.set(job);
        self.word.store(encode(&Claim { chunks, pinned }), Ordering::Release);
    }

    /// Tells the owner to end. It carries no data: `join` does.
    pub(crate) fn stop(&self) {
        self.word.store(STOP, Ordering::Relaxed);
    }

    /// Asks the cache for the job that was opened last, if that is still there.
    pub(crate) fn prefetch_job(&self) {
        prefetch(self.job.get());
    }

    pub(crate) fn look(&self) -> Found {
        let word = self.word.load(Ordering::Relaxed);
        match decode(word) {
            _ if word == STOP => Found::Stop,
            Claim { chunks, .. } if chunks.is_empty() => Found::Nothing,
            _ => Found::Chunks,
        }
    }

    /// The owner's claim, in bites of a quarter of what is left: few claims while there is much to do, single chunks at the
    /// end, and no more than a quarter of a home held by an owner that has lost its CPU.
    pub(crate) fn claim_front(&self) -> Option<Claim> {
        self.claim(|Claim { chunks: Range { start, end }, pinned }| {
            let split = start + (end - start).div_ceil(4);
            Some((Claim { chunks: start..split, pinned }, Claim { chunks: split..end, pinned }))
        })
    }

    /// A single chunk from the front.
    pub(crate) fn claim_one(&self) -> Option<Claim> {
        self.claim(|Claim { chunks: Range { start, end }, pinned }| {
            let one = Claim { chunks: start..start + 1, pinned };
            (!pinned).then_some((one, Claim { chunks: start + 1..end, pinned }))
        })
    }

    /// Chunks that nobody has claimed.
    pub(crate) fn left(&self) -> usize {
        decode(self.word.load(Ordering::Relaxed)).chunks.len()
    }

    /// A thief's claim from the far end, so that the owner goes on undisturbed at the front: a fair share of what is left, as
    /// all the others may come for the rest.
    pub(crate) fn claim_back(&self, participants: usize) -> Option<Claim> {
        let sharers = u32::try_from(participants).unwrap_or(u32::MAX).max(2);
        self.claim(|Claim { chunks: Range { start, end }, pinned }| {
            let split = end - (end - start).div_ceil(sharers);
            (!pinned).then_some((
                Claim { chunks: split..end, pinned },
                Claim { chunks: start..split, pinned },
            ))
        })
    }

    /// Everything that is left, to be counted without being run.
    pub(crate) fn claim_all(&self) -> Option<Claim> {
        self.claim(|left| {
            let empty = Claim { chunks: left.chunks.end..left.chunks.end, pinned: left.pinned };
            (!left.pinned).then_some((left, empty))
        })
    }

    /// H2: claims what `cut` takes of the word (its first result), leaving the second.
    fn claim(&self, cut: impl Fn(Claim) -> Option<(Claim, Claim)>) -> Option<Claim> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let left = decode(word);
            if left.chunks.is_empty() {
                return None;
            }
            let (taken, rest) = cut(left)?;
            match self.word.compare_exchange_weak(
                word,
                encode(&rest),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(taken),
                Err(current) => word = current,
            }
        }
    }

    pub(crate) fn set_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::Relaxed);
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }
}

fn encode(claim: &Claim) -> u64 {
    let pinned = if claim.pinned { PINNED } else { 0 };
    u64::from(claim.chunks.start) | u64::from(claim.chunks.end | pinned) << 32
}

fn decode(word: u64) -> Claim {
    let (next, end) = (word as u32, (word >> 32) as u32); // the two halves
    Claim { chunks: next..end & !PINNED, pinned: end & PINNED != 0 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    fn lengths(mut claim: impl FnMut() -> Option<Claim>) -> Vec<usize> {
        std::iter::from_fn(|| claim().map(|claim| claim.chunks.len())).collect()
    }

    #[test]
    fn the_owner_takes_quarters_from_the_front() {
        let home = Home::new();
        home.open(16..32, false, null_mut());
        assert_eq!(home.claim_front().unwrap().chunks, 16..20);
        assert_eq!(lengths(|| home.claim_front()), [3, 3, 2, 1, 1, 1, 1]);
        assert_eq!(home.look(), Found::Nothing);
    }

    #[test]
    fn a_thief_takes_its_share_from_the_back() {
        let home = Home::new();
        home.open(0..16, false, null_mut());
        assert_eq!(home.claim_back(2).unwrap().chunks, 8..16);
        assert_eq!(home.claim_front().unwrap().chunks, 0..2);
        assert_eq!(lengths(|| home.claim_back(2)), [3, 2, 1]);
        assert_eq!(home.claim_front(), None);
        home.open(0..16, false, null_mut());
        assert_eq!(lengths(|| home.claim_back(4)), [4, 3, 3, 2, 1, 1, 1, 1]);
        home.open(0..2, false, null_mut());
        assert_eq!(lengths(|| home.claim_back(usize::MAX)), [1, 1]);
    }

    #[test]
    fn pinned_chunks_are_for_the_owner() {
        let home = Home::new();
        home.open(3..4, true, null_mut());
        assert_eq!(home.claim_back(2), None);
        assert_eq!(home.claim_one(), None);
        assert_eq!(home.claim_all(), None);
        assert_eq!(home.claim_front(), Some(Claim { chunks: 3..4, pinned: true }));
        assert_eq!(home.claim_front(), None);
    }

    #[test]
    fn the_largest_job_fits_and_is_not_a_stop() {
        let home = Home::new();
        home.open(0..MAX_CHUNKS, true, null_mut());
        assert_eq!(home.look(), Found::Chunks);
        home.open(MAX_CHUNKS..MAX_CHUNKS, true, null_mut());
        assert_eq!(home.look(), Found::Nothing);
    }

    #[test]
    fn nothing_is_claimed_from_a_stopped_home() {
        let home = Home::new();
        home.stop();
        assert_eq!(home.look(), Found::Stop);
        assert_eq!(home.claim_front(), None);
        assert_eq!(home.claim_back(2), None);
        assert_eq!(home.claim_all(), None);
    }

    #[test]
    fn single_chunks_are_claimed_and_counted() {
        let home = Home::new();
        assert_eq!((home.left(), home.claim_one()), (0, None));
        home.open(5..8, false, null_mut());
        for (chunk, left) in [(5, 2), (6, 1), (7, 0)] {
            assert_eq!(home.claim_one().unwrap().chunks, chunk..chunk + 1);
            assert_eq!(home.left(), left);
        }
        assert_eq!(home.claim_one(), None);
    }

    #[test]
    fn all_that_is_left_can_be_claimed_at_once() {
        let home = Home::new();
        home.open(0..9, false, null_mut());
        assert_eq!(home.claim_front().unwrap().chunks, 0..3);
        assert_eq!(home.claim_all().unwrap().chunks, 3..9);
        assert_eq!(home.claim_all(), None);
    }
}
