//! Counting while jobs run. Who counts owns the cache line.
#![forbid(unsafe_code)]

use crossbeam_utils::CachePadded;

use crate::dispatch::CALLER;
use crate::statistics::{InlineRuns, Statistics};
use crate::sync::Counter;
use crate::timing::Clock;
use crate::wait::Spin;

/// Why a job runs inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inline {
    NoWorkers,
    Small,
    Nested,
    Busy,
    Forked,
}

/// All counters of a pool.
#[derive(Debug)]
pub(crate) struct Counters {
    participants: Box<[CachePadded<ParticipantCounters>]>,
    caller: CachePadded<CallerCounters>,
    anybody: CachePadded<SharedCounters>,
    pub(crate) clock: Option<Clock>,
}

/// Written by one participant: the worker, or whoever is the caller.
#[derive(Debug, Default)]
struct ParticipantCounters {
    /// Jobs of which it has claimed something at home.
    joined: Counter,
    steals: Counter,
    parks: Counter,
    moves: Counter,
}

/// Written by the thread that dispatches.
#[derive(Debug, Default)]
struct CallerCounters {
    dispatches: Counter,
    invited: Counter,
    panics: Counter,
    waits: Counter,
    alone: Counter,
    deserted: Counter,
}

/// Written by any thread.
#[derive(Debug, Default)]
struct SharedCounters {
    inline: [Counter; 5],
    refused: Counter,
    unparks: Counter,
}

impl Counters {
    pub(crate) fn new(participants: usize, with_times: bool) -> Self {
        Self {
            participants: (0..participants).map(|_| CachePadded::default()).collect(),
            caller: CachePadded::default(),
            anybody: CachePadded::default(),
            clock: with_times.then(|| Clock::new(participants)),
        }
    }

    pub(crate) fn dispatches(&self) -> u64 {
        self.caller.dispatches.get()
    }

    /// The caller has done all that was left of a job itself, rather than wake anybody.
    pub(crate) fn done_alone(&self) {
        self.caller.alone.bump(1);
    }

    /// The caller has done a job itself, as no worker had a CPU.
    pub(crate) fn deserted(&self, panicked: bool) {
        self.caller.dispatches.bump(1);
        self.caller.deserted.bump(1);
        self.caller.panics.bump(u64::from(panicked));
    }

    pub(crate) fn dispatched(&self, invited: usize) {
        self.caller.dispatches.bump(1);
        self.caller.invited.bump(invited as u64 - 1); // the caller is no guest
        if let Some(clock) = &self.clock {
            clock.publish(invited);
        }
    }

    /// A participant has made its first claim of a job, at home.
    pub(crate) fn joined(&self, participant: usize) {
        self.participants[participant].joined.bump(1);
        if let Some(clock) = self.clock.as_ref().filter(|_| participant != CALLER) {
            clock.woke(participant);
        }
    }

    pub(crate) fn stole(&self, participant: usize) {
        self.participants[participant].steals.bump(1);
    }

    /// The job is over.
    pub(crate) fn finished(&self, invited: usize, panicked: bool) {
        if panicked {
            self.caller.panics.bump(1);
        }
        if let Some(clock) = &self.clock {
            clock.finish(invited);
        }
    }

    pub(crate) fn caller_waited(&self) {
        self.caller.waits.bump(1);
    }

    pub(crate) fn parked(&self, participant: usize) {
        self.participants[participant].parks.bump(1);
    }

    pub(crate) fn moved(&self, worker: usize) {
        self.participants[worker].moves.bump(1);
    }

    pub(crate) fn unparked(&self) {
        self.anybody.unparks.add(1);
    }

    pub(crate) fn ran_inline(&self, cause: Inline) {
        self.anybody.inline[cause as usize].add(1);
    }

    pub(crate) fn refused(&self) {
        self.anybody.refused.add(1);
    }

    pub(crate) fn statistics(&self, spin: &Spin) -> Statistics {
        let sum = |counter: fn(&ParticipantCounters) -> &Counter| -> u64 {
            self.participants.iter().map(|participant| counter(participant).get()).sum()
        };
        let inline = |cause: Inline| self.anybody.inline[cause as usize].get();
        let workers = self.participants.iter().skip(CALLER + 1);
        let joined: u64 = workers.map(|worker| worker.joined.get()).sum();
        let invited = self.caller.invited.get();
        Statistics {
            dispatches: self.dispatches(),
            inline: InlineRuns {
                no_workers: inline(Inline::NoWorkers),
                small: inline(Inline::Small),
                nested: inline(Inline::Nested),
                busy: inline(Inline::Busy),
                forked: inline(Inline::Forked),
            },
            refused: self.anybody.refused.get(),
            panics: self.caller.panics.get(),
            alone: self.caller.alone.get(),
            deserted: self.caller.deserted.get(),
            invited,
            late: invited.saturating_sub(joined),
            steals: sum(|participant| &participant.steals),
            parks: sum(|participant| &participant.parks),
            moves: sum(|participant| &participant.moves),
            unparks: self.anybody.unparks.get(),
            caller_waits: self.caller.waits.get(),
            oversubscribed: spin.is_oversubscribed(),
            cpu_counts: spin.cpu_counts(),
            timing: self.clock.as_ref().map(Clock::timing),
        }
    }
}
