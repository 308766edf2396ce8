//! What can be dispatched: the rows of one space, those of several, a visit to every participant. Each knows how it is cut, and
//! how it runs without being cut.
//!
//! A job holds its closure by value, so that a worker finds both in one place: each pointer on the way to the rows is a cache
//! line of the caller's to wait for.
#![forbid(unsafe_code)]

use std::ops::Range;

use crate::dispatch::CALLER;
use crate::job::Job;
use crate::pool::Part;
use crate::split::{RowChunks, Split};

/// A job of a pool's.
pub(crate) trait Work: Job {
    /// Who starts with what; `None` if it cannot be cut.
    fn split(&self) -> Option<Split>;

    /// There is nothing to do.
    fn is_empty(&self) -> bool;

    /// Does all of it on this thread.
    fn run_inline(&self);
}

/// `f(participant, participants)` once on each participant.
pub(crate) struct Visit<F> {
    f: F,
    participants: usize,
}

impl<F: Fn(usize, usize) + Sync> Visit<F> {
    pub(crate) fn new(f: F, participants: usize) -> Self {
        Self { f, participants }
    }
}

impl<F: Fn(usize, usize) + Sync> Job for Visit<F> {
    fn call(&self, participant: usize, _chunks: Range<u32>) {
        (self.f)(participant, self.participants);
    }
}

impl<F: Fn(usize, usize) + Sync> Work for Visit<F> {
    fn split(&self) -> Option<Split> {
        Some(Split::one_each(self.participants))
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn run_inline(&self) {
        (self.f)(CALLER, 1);
    }
}

/// `f` over ranges of one row space.
pub(crate) struct Rows<F> {
    f: F,
    chunks: RowChunks,
    participants: usize,
}

impl<F: Fn(Range<usize>) + Sync> Rows<F> {
    pub(crate) fn new(f: F, grain: usize, rows: usize, participants: usize) -> Self {
        let chunk_rows = RowChunks::chunk_rows(rows, grain, participants);
        Self { f, chunks: RowChunks::new(rows, chunk_rows), participants }
    }
}

impl<F: Fn(Range<usize>) + Sync> Job for Rows<F> {
    fn call(&self, _participant: usize, chunks: Range<u32>) {
        (self.f)(self.chunks.rows_of(chunks.start as usize..chunks.end as usize));
    }
}

impl<F: Fn(Range<usize>) + Sync> Work for Rows<F> {
    fn split(&self) -> Option<Split> {
        Split::shared(self.chunks.count(), self.participants)
    }

    fn is_empty(&self) -> bool {
        self.chunks.rows() == 0
    }

    fn run_inline(&self) {
        (self.f)(0..self.chunks.rows());
    }
}

/// Each part's closure over ranges of its own row space. The chunks of the parts are numbered through.
pub(crate) struct Many<'a> {
    parts: &'a [Part<'a>],
    chunk_rows: usize,
    participants: usize,
}

impl<'a> Many<'a> {
    pub(crate) fn new(grain: usize, parts: &'a [Part<'a>], participants: usize) -> Self {
        let rows = parts.iter().fold(0_usize, |sum, (rows, _)| sum.saturating_add(*rows));
        let chunk_rows = RowChunks::chunk_rows(rows, grain, participants);
        Self { parts, chunk_rows, participants }
    }

    fn chunks(&self) -> impl Iterator<Item = (RowChunks, &'a (dyn Fn(Range<usize>) + Sync))> {
        let chunk_rows = self.chunk_rows;
        self.parts.iter().map(move |&(rows, f)| (RowChunks::new(rows, chunk_rows), f))
    }
}

impl Job for Many<'_> {
    fn call(&self, _participant: usize, claimed: Range<u32>) {
        let mut first = 0; // of the part, in the chunks of all parts
        for (part, f) in self.chunks() {
            if first >= claimed.end as usize {
                break;
            }
            let within = |chunk: u32| (chunk as usize).clamp(first, first + part.count()) - first;
            let own = within(claimed.start)..within(claimed.end);
            if !own.is_empty() {
                f(part.rows_of(own));
            }
            first += part.count();
        }
    }
}

impl Work for Many<'_> {
    fn split(&self) -> Option<Split> {
        let count = |sum: usize, (part, _): (RowChunks, _)| sum.saturating_add(part.count());
        Split::shared(self.chunks().fold(0, count), self.participants)
    }

    fn is_empty(&self) -> bool {
        self.parts.iter().all(|(rows, _)| *rows == 0)
    }

    fn run_inline(&self) {
        self.parts.iter().filter(|(rows, _)| *rows > 0).for_each(|&(rows, f)| f(0..rows));
    }
}
