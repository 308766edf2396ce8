//! Each action of a caller, with what must be true afterwards.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use epoch_pool::{Busy, Pool};

use crate::account::Account;
use crate::checks::{Call, Checked, Checks, Seen, expect_raised};
use crate::choices::{Action, Plan};
use crate::counts::Counts;
use crate::doors::{Door, Trying};
use crate::oracle::{Expect, Ledger};
use crate::own::own;
use crate::planned::{self, Panics};
use crate::sys;

/// What a caller works with.
#[derive(Debug)]
pub(crate) struct Hands<'a> {
    pool: &'a Pool,
    /// Another pool, used by the same callers.
    other: &'a Pool,
    pub(crate) checks: Checks,
    /// What was done with the other pool.
    pub(crate) others_account: Account,
}

/// Dispatches from inside the calls of a job.
#[derive(Debug, Default)]
struct Inner {
    dispatches: AtomicU32,
    published: AtomicU32,
    refused_as_nested: AtomicU32,
    refused_elsewhere: AtomicU32,
    wrong: Mutex<Option<String>>,
}

impl<'a> Hands<'a> {
    /// `alone`: nobody else dispatches on these pools.
    pub(crate) fn new(pool: &'a Pool, other: &'a Pool, alone: bool) -> Self {
        Self { pool, other, checks: Checks::new(alone), others_account: Account::default() }
    }

    pub(crate) fn perform(&mut self, action: Action) -> Checked {
        match action {
            Action::Job { plan, is_try: false } => self.checks.perform(&mut { self.pool }, plan),
            Action::Job { plan, is_try: true } => self.checks.perform(&mut Trying(self.pool), plan),
            Action::Hot { rows, dispatches, forget } => self.hot(rows, dispatches, forget),
            Action::Nested { rows, inner, same_pool, is_try } => {
                self.nested(rows, inner, same_pool, is_try)
            }
            Action::PanicNested { inner } => self.panic_nested(inner),
            Action::OwnPool { blueprint, seed } => own(&mut self.checks.counts, blueprint, seed),
            Action::Fork => fork(&mut self.checks.counts, || in_child(self.pool)),
            Action::Rest { micros } => {
                std::thread::sleep(Duration::from_micros(micros));
                Ok(())
            }
        }
    }

    fn hot(&mut self, rows: usize, dispatches: usize, forget: bool) -> Checked {
        let hot = self.pool.hot();
        self.checks.account.phases += 1;
        self.checks.counts.phases += 1;
        for _ in 0..dispatches {
            self.checks.perform(&mut { self.pool }, Plan::Rows { rows, grain: 1, effort: 0 })?;
        }
        if forget {
            std::mem::forget(hot);
        }
        Ok(())
    }

    fn nested(&mut self, rows: usize, inner: usize, same_pool: bool, is_try: bool) -> Checked {
        let target = if same_pool { self.pool } else { self.other };
        let seen = Inner::default();
        let opened = self.checks.ledger.open();
        let space = opened.space(0, rows, 1, 0);
        self.pool.run_rows(rows, |range| {
            space.visit_and(range, || match is_try {
                false => seen.dispatch(&mut { target }, inner),
                true => seen.dispatch(&mut Trying(target), inner),
            });
        });
        let shared = opened.close(rows, Expect::All)? > 1;
        let may_be_held = rows > 1 && self.pool.n_workers() > 0;
        self.checks.conclude(Call {
            is_job: rows > 0,
            sharable: may_be_held,
            seen: if shared { Seen::Shared } else { Seen::Something },
            has_panicked: false,
        })?;

        // The job around holds its own pool, if it was shared.
        let is_held = same_pool && shared;
        let sharable = inner > 1 && target.n_workers() > 0;
        // Nobody holds the target: no other caller, nor another call of this job.
        let is_free = self.checks.alone && !shared;
        let account = if same_pool { &mut self.checks.account } else { &mut self.others_account };
        let n = seen.counted()?;
        account.jobs += if inner > 0 { n.dispatches } else { 0 };
        account.refused += n.refused();
        account.published.add(n.published, true, false);
        account.published.add(n.dispatches - n.refused(), false, sharable && !is_held);
        self.checks.counts.calls += n.dispatches;
        self.checks.counts.nested += n.dispatches;
        self.checks.counts.refused += n.refused();
        // A job of one call may have held its pool, or not.
        match same_pool && may_be_held && !shared {
            true => Ok(()),
            false => n.check(is_held, sharable, is_try, is_free),
        }
    }

    fn panic_nested(&mut self, inner: usize) -> Checked {
        let panics = Arc::new(Panics::default());
        let dispatches = AtomicU32::new(0);
        let opened = self.checks.ledger.open();
        let raised = planned::expect(opened.serial, &panics, || {
            self.pool.run(|_, _| {
                dispatches.fetch_add(1, Ordering::Relaxed);
                self.pool.run_rows(inner, |_| planned::raise(opened.serial, &panics, false));
            });
        })?;
        opened.close(0, Expect::All)?;
        let dispatches = dispatches.into_inner();
        let shared = dispatches > 1;
        let has_workers = self.pool.n_workers() > 0;
        self.checks.conclude(Call {
            is_job: true,
            sharable: has_workers,
            seen: if shared { Seen::Shared } else { Seen::Inline },
            has_panicked: raised > 0,
        })?;
        let (account, n) = (&mut self.checks.account, u64::from(dispatches));
        account.jobs += n;
        let possible = inner > 1 && has_workers && !shared;
        account.published.add(n, false, possible);
        account.published_panicked.add(n, false, possible);
        self.checks.counts.calls += n;
        self.checks.counts.nested += n;
        self.checks.counts.panics += u64::from(raised);
        // Each nested dispatch raises one of its payloads; the other ones are dropped where it ran.
        expect_raised(raised, dispatches as usize..=usize::MAX)
    }
}

/// What [`Inner`] has seen.
#[derive(Clone, Copy, Debug)]
struct InnerCounts {
    dispatches: u64,
    published: u64,
    as_nested: u64,
    elsewhere: u64,
}

impl Inner {
    fn dispatch(&self, door: &mut impl Door, rows: usize) {
        let mut ledger = Ledger::new(rows);
        let opened = ledger.open();
        let space = opened.space(0, rows, 1, 0);
        let answer = door.rows(1, rows, |range| space.visit(range));
        self.dispatches.fetch_add(1, Ordering::Relaxed);
        let counter = match answer {
            Ok(()) => &self.published,
            Err(Busy::Nested) => &self.refused_as_nested,
            Err(_) => &self.refused_elsewhere,
        };
        let outcome =
            match (answer, opened.close(if answer.is_ok() { rows } else { 0 }, Expect::All)) {
                (Ok(()), Ok(calls)) => Ok(calls > 1),
                (Err(_), Ok(0)) => Ok(true),
                (Err(_), Ok(calls)) => Err(format!("{calls} calls of a job that was refused")),
                (_, Err(what)) => Err(what),
            };
        match outcome {
            Ok(counts) => _ = counter.fetch_add(u32::from(counts), Ordering::Relaxed),
            Err(what) => {
                *self.wrong.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
            }
        }
    }

    fn counted(self) -> Result<InnerCounts, String> {
        if let Some(what) = self.wrong.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(format!("inside a job: {what}"));
        }
        Ok(InnerCounts {
            dispatches: self.dispatches.into_inner().into(),
            published: self.published.into_inner().into(),
            as_nested: self.refused_as_nested.into_inner().into(),
            elsewhere: self.refused_elsewhere.into_inner().into(),
        })
    }
}

impl InnerCounts {
    fn refused(self) -> u64 {
        self.as_nested + self.elsewhere
    }

    /// `is_held`: the target runs the job around. `is_free`: it runs no job at all.
    fn check(self, is_held: bool, sharable: bool, is_try: bool, is_free: bool) -> Checked {
        let all_if = |condition: bool| if condition { self.dispatches } else { 0 };
        let wrong = if self.published > all_if(sharable && !is_held) {
            "was shared"
        } else if self.as_nested != all_if(is_try && sharable && is_held) {
            "was refused, or not, as nested"
        } else if self.elsewhere > all_if(is_try && sharable && !is_held && !is_free) {
            "was refused as if there were another job"
        } else {
            return Ok(());
        };
        Err(format!("a dispatch from inside a job {wrong}: {self:?}"))
    }
}

pub(crate) fn fork(counts: &mut Counts, child: impl FnOnce() -> i32) -> Checked {
    let Some(outcome) = sys::forked(child) else { return Ok(()) };
    counts.forks += 1;
    outcome
}

/// In a child: everything runs on the caller, who is never refused. Takes no lock and allocates nothing.
pub(crate) fn in_child(pool: &Pool) -> i32 {
    let (rows, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let hot = pool.hot();
    for _ in 0..3 {
        pool.run_rows(100, |range| _ = rows.fetch_add(range.sum(), Ordering::Relaxed));
        let visit = |participant: usize, of: usize| {
            calls.fetch_add(if (participant, of) == (0, 1) { 1 } else { 100 }, Ordering::Relaxed);
        };
        pool.run(visit);
        if pool.try_run(visit).is_err() {
            return 3;
        }
    }
    drop(hot);
    match (rows.into_inner(), calls.into_inner()) {
        (14_850, 6) => 0,
        (14_850, _) => 2,
        _ => 1,
    }
}
