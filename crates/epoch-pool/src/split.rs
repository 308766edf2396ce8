//! How a job is cut: rows into chunks, chunks into the home ranges of the participants. Pure arithmetic.
//!
//! A chunk is the smallest piece that changes hands. Both cuts are functions of the sizes alone, so the same rows come home to
//! the same participant in every job of the same shape.
#![forbid(unsafe_code)]

use std::ops::Range;

/// Chunks in a participant's home range, where there are rows enough. More make the tail of a job shorter, and the table of
/// claims longer: at 16, with bites of a quarter, a participant that is left alone claims 8 times.
const CHUNKS_PER_PARTICIPANT: usize = 16;

/// A row space cut into chunks of `chunk_rows` rows (the last one may be shorter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowChunks {
    rows: usize,
    chunk_rows: usize,
}

impl RowChunks {
    /// Chunk size for `rows` rows in all on `participants` participants: a multiple of `grain` (0 counts as 1).
    pub(crate) fn chunk_rows(rows: usize, grain: usize, participants: usize) -> usize {
        let grain = grain.max(1);
        let chunks = participants * CHUNKS_PER_PARTICIPANT;
        rows.div_ceil(grain).div_ceil(chunks).saturating_mul(grain).max(1)
    }

    pub(crate) fn new(rows: usize, chunk_rows: usize) -> Self {
        Self { rows, chunk_rows }
    }

    pub(crate) fn rows(self) -> usize {
        self.rows
    }

    pub(crate) fn count(self) -> usize {
        self.rows.div_ceil(self.chunk_rows)
    }

    /// The rows of a range of chunks.
    pub(crate) fn rows_of(self, chunks: Range<usize>) -> Range<usize> {
        let row = |chunk: usize| chunk.saturating_mul(self.chunk_rows).min(self.rows);
        row(chunks.start)..row(chunks.end)
    }
}

/// Who starts with which chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    chunks: u32,
    invited: u32,
    /// Each chunk belongs to one participant and nobody may steal it.
    pub(crate) pinned: bool,
}

impl Split {
    /// `None` if there are more chunks than a home word can count.
    pub(crate) fn shared(chunks: usize, participants: usize) -> Option<Self> {
        let chunks = u32::try_from(chunks).ok().filter(|&n| n <= crate::home::MAX_CHUNKS)?;
        let invited = u32::try_from(participants).map_or(chunks, |n| n.min(chunks));
        Some(Self { chunks, invited, pinned: false })
    }

    /// One chunk for each participant, which nobody else may run.
    pub(crate) fn one_each(participants: usize) -> Self {
        let chunks = u32::try_from(participants).expect("a pool has less than 2^31 participants");
        Self { chunks, invited: chunks, pinned: true }
    }

    pub(crate) fn chunks(self) -> u32 {
        self.chunks
    }

    /// Participants that have a home range: `0..invited`. The others are neither woken nor waited for.
    pub(crate) fn invited(self) -> usize {
        self.invited as usize
    }

    /// The home range of an invited participant. Together they are `0..chunks`; their lengths differ by one at most.
    pub(crate) fn home(self, participant: usize) -> Range<u32> {
        let bound = |p: usize| {
            let chunk = u64::from(self.chunks) * p as u64 / u64::from(self.invited);
            chunk as u32 // at most `chunks`
        };
        bound(participant)..bound(participant + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, grain, participants; chunk rows and number of chunks.
    const CUTS: &[(usize, usize, usize, usize, usize)] = &[
        (0, 1, 2, 1, 0),
        (1, 0, 2, 1, 1),
        (2, 1, 2, 1, 2),
        (32, 1, 2, 1, 32),
        (33, 1, 2, 2, 17),
        (64, 16, 2, 16, 4),
        (49_152, 16, 2, 1536, 32),
        (usize::MAX, 1, 1, usize::MAX / 16 + 1, 16),
        (usize::MAX, usize::MAX, 3, usize::MAX, 1),
        (10, 7, 1, 7, 2),
    ];

    #[test]
    fn chunks_are_as_listed() {
        for &(rows, grain, participants, chunk_rows, count) in CUTS {
            let size = RowChunks::chunk_rows(rows, grain, participants);
            let chunks = RowChunks::new(rows, size);
            assert_eq!((size, chunks.count()), (chunk_rows, count), "{rows} rows by {grain}");
        }
    }

    #[test]
    fn chunks_cover_the_rows_once_at_multiples_of_the_grain() {
        for rows in 0..200 {
            for grain in [1, 2, 7, 16] {
                for participants in 1..5 {
                    let chunks =
                        RowChunks::new(rows, RowChunks::chunk_rows(rows, grain, participants));
                    let mut next = 0;
                    for chunk in 0..chunks.count() {
                        let range = chunks.rows_of(chunk..chunk + 1);
                        assert_eq!(range.start, next);
                        assert_eq!(range.start % grain, 0);
                        assert!(range.end > range.start);
                        next = range.end;
                    }
                    assert_eq!(next, rows);
                    assert!(chunks.count() <= participants * CHUNKS_PER_PARTICIPANT);
                }
            }
        }
    }

    #[test]
    fn homes_cover_the_chunks_once_and_evenly() {
        for chunks in 1..70 {
            for participants in 1..20 {
                let split = Split::shared(chunks, participants).unwrap();
                assert_eq!(split.invited(), chunks.min(participants));
                let mut next = 0;
                for participant in 0..split.invited() {
                    let home = split.home(participant);
                    assert_eq!(home.start, next);
                    let even = chunks / split.invited();
                    assert!((even..=even + 1).contains(&home.len()));
                    next = home.end;
                }
                assert_eq!(next as usize, chunks);
            }
        }
    }

    #[test]
    fn too_many_chunks_are_refused() {
        assert!(Split::shared(crate::home::MAX_CHUNKS as usize, 2).is_some());
        assert!(Split::shared(crate::home::MAX_CHUNKS as usize + 1, 2).is_none());
    }
}
