//! Hot phases: dispatches follow each other so closely that workers had better stay awake in between.
#![forbid(unsafe_code)]

use crate::pool::Pool;
use crate::sync::{AtomicU64, Ordering};

/// A phase in which the workers of a pool stay awake; [`Pool::hot`] begins it, dropping this ends it.
#[derive(Debug)]
#[must_use = "the phase ends when this is dropped"]
pub struct Hot<'a>(&'a Pool);

impl<'a> Hot<'a> {
    pub(crate) fn begin(pool: &'a Pool) -> Self {
        pool.heat_up();
        Self(pool)
    }
}

impl Drop for Hot<'_> {
    fn drop(&mut self) {
        self.0.cool_down();
    }
}

/// One more phase, in the half of the word that counts those which are on.
const PHASE: u64 = 1;

/// One more end, in the other half.
const END: u64 = 1 << 32;

/// How many hot phases are on, and how often the last one of them has ended.
#[derive(Debug)]
pub(crate) struct Heat(AtomicU64);

/// A reading of [`Heat`]; another one tells whether anything has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading(u64);

impl Heat {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Relaxed, as all of these: heat carries no data. That a worker which is about to park sees it is the business of the
    /// fences C4 and W2 of `dispatch.rs`.
    pub(crate) fn begin(&self) {
        self.0.fetch_add(PHASE, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        let before = self.0.fetch_sub(PHASE, Ordering::Relaxed);
        if Reading(before).phases() == 1 {
            self.0.fetch_add(END, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> Reading {
        Reading(self.0.load(Ordering::Relaxed))
    }
}

impl Reading {
    fn phases(self) -> u32 {
        self.0 as u32 // the low half
    }

    pub(crate) fn is_hot(self) -> bool {
        self.phases() > 0
    }

    /// Whether hot phases have ended between `earlier` and this.
    pub(crate) fn has_ended_since(self, earlier: Self) -> bool {
        self.0 >> 32 != earlier.0 >> 32
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_the_last_phase_counts() {
        let heat = Heat::new();
        let cold = heat.read();
        assert!(!cold.is_hot());
        heat.begin();
        heat.begin();
        heat.end();
        assert!(heat.read().is_hot());
        assert!(!heat.read().has_ended_since(cold));
        heat.end();
        assert!(!heat.read().is_hot());
        assert!(heat.read().has_ended_since(cold));
        assert!(!heat.read().has_ended_since(heat.read()));
    }
}
