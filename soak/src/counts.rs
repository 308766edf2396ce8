//! What a soak has exercised.
#![forbid(unsafe_code)]

use std::fmt;
use std::ops::AddAssign;

/// Counts of what callers did. Each adds up its own; nothing is shared while the pool works.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Calls of the pool's `run…` methods.
    pub(crate) calls: u64,
    /// Jobs published by pools of one's own, by their statistics.
    pub(crate) published: u64,
    /// Calls that ran inline although there was something to share, as far as the job could see.
    pub(crate) inline: u64,
    /// Calls of `try_run…` that were refused.
    pub(crate) refused: u64,
    /// Dispatches made inside jobs.
    pub(crate) nested: u64,
    /// Payloads raised.
    pub(crate) panics: u64,
    /// Hot phases.
    pub(crate) phases: u64,
    pub(crate) sessions: u64,
    pub(crate) pools: u64,
    pub(crate) forks: u64,
    /// Masks of threads set.
    pub(crate) affinities: u64,
    /// Busy threads that came and went.
    pub(crate) loads: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.published += other.published;
        self.inline += other.inline;
        self.refused += other.refused;
        self.nested += other.nested;
        self.panics += other.panics;
        self.phases += other.phases;
        self.sessions += other.sessions;
        self.pools += other.pools;
        self.forks += other.forks;
        self.affinities += other.affinities;
        self.loads += other.loads;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, inline, refused, nested, panics, phases, sessions, pools, .. } = self;
        let Self { forks, affinities, loads, .. } = self;
        write!(
            f,
            "{calls} calls of a pool ({inline} inline beside another's job, {refused} refused, {nested} from inside jobs), \
             {panics} panics, {phases} hot phases, {sessions} sessions, {pools} pools built, {forks} forks, \
             {affinities} affinity changes, {loads} busy threads"
        )
    }
}
