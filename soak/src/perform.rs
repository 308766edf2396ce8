//! Each action on a pool, with what must be true afterwards.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use epoch_pool::{Part, Pool};

use crate::choices::{Action, Blueprint, MAX_PARTS, MAX_ROWS};
use crate::counts::Counts;
use crate::oracle::{Expect, Ledger};
use crate::planned::{self, Panics};
use crate::sys;

/// What a caller works with.
#[derive(Debug)]
pub(crate) struct Hands<'a> {
    pub(crate) pool: &'a Pool,
    /// Another pool, used by the same callers.
    pub(crate) other: &'a Pool,
    /// Nobody else dispatches on these pools.
    pub(crate) alone: bool,
    ledger: Ledger,
    pub(crate) counts: Counts,
}

/// What is wrong, if something is.
type Checked = Result<(), String>;

impl<'a> Hands<'a> {
    pub(crate) fn new(pool: &'a Pool, other: &'a Pool, alone: bool) -> Self {
        let ledger = Ledger::new(MAX_ROWS);
        Self { pool, other, alone, ledger, counts: Counts::default() }
    }

    pub(crate) fn perform(&mut self, action: Action) -> Checked {
        match action {
            Action::Visit { effort } => self.visit(effort),
            Action::Rows { rows, grain, effort } => self.rows(rows, grain, effort),
            Action::Many { parts, grain } => self.many(parts, grain),
            Action::Nested { rows, inner, same_pool } => self.nested(rows, inner, same_pool),
            Action::PanicVisit { culprit, is_bomb } => self.panic_visit(culprit, is_bomb),
            Action::PanicRows { rows, culprit, is_bomb } => self.panic_rows(rows, culprit, is_bomb),
            Action::PanicNested { inner } => self.panic_nested(inner),
            Action::OwnPool { blueprint, dispatches, fork } => {
                self.own(blueprint, dispatches, fork)
            }
            Action::Fork => fork(&mut self.counts, || in_child(self.pool)),
            Action::Rest { micros } => {
                std::thread::sleep(Duration::from_micros(micros));
                Ok(())
            }
        }
    }

    /// Counts a call on our pool that had several chunks to share, or not. `shared`: the jobs have seen that it was published.
    fn count(&mut self, sharable: bool, shared: bool) {
        self.counts.calls += 1;
        let sharable = sharable && self.pool.n_workers() > 0;
        self.counts.possible += u64::from(sharable);
        self.counts.certain += u64::from(sharable && (shared || self.alone));
    }

    fn visit(&mut self, effort: u32) -> Checked {
        let (participants, inline) = (self.pool.participants(), AtomicBool::new(false));
        let opened = self.ledger.open();
        let space = opened.space(0, participants, 1, effort);
        self.pool.run(|participant, of| {
            space.visit(participant..participant + 1);
            if of < participants {
                inline.store(true, Ordering::Relaxed);
            }
        });
        let inline = inline.into_inner();
        opened.close(if inline { 1 } else { participants }, Expect::All)?;
        self.count(true, !inline);
        self.counts.inline += u64::from(inline);
        inline_only_beside_another(inline, self.alone)
    }

    fn rows(&mut self, rows: usize, grain: usize, effort: u32) -> Checked {
        let opened = self.ledger.open();
        let space = opened.space(0, rows, grain, effort);
        let job = |range: Range<usize>| space.visit(range);
        match grain {
            1 => self.pool.run_rows(rows, job),
            _ => self.pool.run_rows_by(grain, rows, job),
        }
        let calls = opened.close(rows, Expect::All)?;
        let sharable = rows > grain.max(1);
        self.count(sharable, calls > 1);
        let inline = sharable && calls == 1 && self.pool.n_workers() > 0;
        self.counts.inline += u64::from(inline);
        inline_only_beside_another(inline, self.alone)
    }

    fn many(&mut self, parts: [usize; MAX_PARTS], grain: usize) -> Checked {
        let opened = self.ledger.open();
        let mut first = 0;
        let spaces = parts.map(|rows| {
            first += rows;
            opened.space(first - rows, rows, grain, 0)
        });
        let jobs = spaces.map(|space| move |range: Range<usize>| space.visit(range));
        let list: [Part<'_>; MAX_PARTS] =
            std::array::from_fn(|part| (parts[part], &jobs[part] as _));
        match grain {
            1 => self.pool.run_many(&list),
            _ => self.pool.run_many_by(grain, &list),
        }
        let calls = opened.close(first, Expect::All)?;
        let n_parts = parts.iter().filter(|rows| **rows > 0).count();
        let sharable = n_parts > 1 || first > grain.max(1);
        self.count(sharable, calls as usize > n_parts);
        Ok(())
    }

    fn nested(&mut self, rows: usize, inner: usize, same_pool: bool) -> Checked {
        let target = if same_pool { self.pool } else { self.other };
        let (dispatches, published) = (AtomicU32::new(0), AtomicU32::new(0));
        let wrong = Mutex::new(Ok(()));
        let opened = self.ledger.open();
        let space = opened.space(0, rows, 1, 0);
        self.pool.run_rows(rows, |range| {
            space.visit_and(range, || {
                let mut ledger = Ledger::new(inner);
                let opened = ledger.open();
                let space = opened.space(0, inner, 1, 0);
                target.run_rows(inner, |range| space.visit(range));
                dispatches.fetch_add(1, Ordering::Relaxed);
                match opened.close(inner, Expect::All) {
                    Ok(calls) => _ = published.fetch_add(u32::from(calls > 1), Ordering::Relaxed),
                    Err(what) => *wrong.lock().unwrap_or_else(PoisonError::into_inner) = Err(what),
                }
            });
        });
        let calls = opened.close(rows, Expect::All)?;
        self.count(rows > 1, calls > 1);
        let free = !(same_pool && self.alone && calls > 1);
        self.count_nested(free, target, inner, dispatches.into_inner(), published.into_inner())?;
        wrong.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts dispatches from inside a job on `target`. `free`: it may have taken one, as the job around is perhaps not its own.
    fn count_nested(
        &mut self,
        free: bool,
        target: &Pool,
        inner: usize,
        dispatches: u32,
        published: u32,
    ) -> Checked {
        self.counts.calls += u64::from(dispatches);
        self.counts.nested += u64::from(dispatches);
        self.counts.certain += u64::from(published);
        let sharable = inner > 1 && target.n_workers() > 0;
        self.counts.possible += if sharable && free { u64::from(dispatches) } else { 0 };
        match published > 0 && !free {
            true => Err("a dispatch from inside a job of the same pool did not run inline".into()),
            false => Ok(()),
        }
    }

    fn panic_visit(&mut self, culprit: Option<usize>, is_bomb: bool) -> Checked {
        let (participants, inline) = (self.pool.participants(), AtomicBool::new(false));
        let panics = Arc::new(Panics::default());
        let opened = self.ledger.open();
        let space = opened.space(0, participants, 1, 0);
        let raised = planned::expect(opened.serial, &panics, || {
            self.pool.run(|participant, of| {
                if of < participants {
                    inline.store(true, Ordering::Relaxed);
                }
                space.visit_and(participant..participant + 1, || {
                    if culprit.is_none_or(|culprit| culprit == participant) {
                        planned::raise(opened.serial, &panics, is_bomb);
                    }
                });
            });
        })?;
        let n_called = if inline.into_inner() { 1 } else { participants };
        // Every participant is called, whoever panics.
        opened.close(n_called, Expect::All)?;
        self.count(true, n_called > 1);
        self.counts.panics += u64::from(raised);
        let n_culprits = culprit.map_or(n_called, |culprit| usize::from(culprit < n_called));
        expect_raised(raised, n_culprits..=n_culprits)
    }

    fn panic_rows(&mut self, rows: usize, culprit: Option<usize>, is_bomb: bool) -> Checked {
        let panics = Arc::new(Panics::default());
        let opened = self.ledger.open();
        let space = opened.space(0, rows, 1, 0);
        let raised = planned::expect(opened.serial, &panics, || {
            self.pool.run_rows(rows, |range| {
                space.visit_and(range.clone(), || {
                    if culprit.is_none_or(|row| range.contains(&row)) {
                        planned::raise(opened.serial, &panics, is_bomb);
                    }
                });
            });
        })?;
        let calls = opened.close(rows, Expect::AtMostOnce(culprit.filter(|row| *row < rows)))?;
        self.count(rows > 1, calls > 1);
        self.counts.panics += u64::from(raised);
        match culprit {
            Some(row) => expect_raised(raised, usize::from(row < rows)..=1),
            None => expect_raised(raised, calls as usize..=calls as usize),
        }
    }

    fn panic_nested(&mut self, inner: usize) -> Checked {
        let panics = Arc::new(Panics::default());
        let dispatches = AtomicU32::new(0);
        let opened = self.ledger.open();
        let raised = planned::expect(opened.serial, &panics, || {
            self.pool.run(|_, _| {
                dispatches.fetch_add(1, Ordering::Relaxed);
                self.pool.run_rows(inner, |_| planned::raise(opened.serial, &panics, false));
            });
        })?;
        opened.close(0, Expect::All)?;
        self.count(true, dispatches.load(Ordering::Relaxed) > 1);
        let free = !self.alone || dispatches.load(Ordering::Relaxed) == 1;
        self.count_nested(free, self.pool, inner, dispatches.load(Ordering::Relaxed), 0)?;
        self.counts.panics += u64::from(raised);
        // Each nested dispatch raises one of its payloads; the other ones are dropped where it ran.
        expect_raised(raised, dispatches.into_inner() as usize..=usize::MAX)
    }

    fn own(&mut self, blueprint: Blueprint, dispatches: usize, with_fork: bool) -> Checked {
        let pool = build(blueprint)?;
        self.counts.pools += 1;
        let other = Pool::new(0).map_err(|error| error.to_string())?;
        let mut own = Hands::new(&pool, &other, true);
        for dispatch in 0..dispatches {
            own.visit(0)?;
            own.rows(dispatch * 7, 1, 0)?;
        }
        self.counts += own.counts;
        if with_fork {
            let in_child = move || {
                let code = in_child(&pool);
                drop(pool);
                code
            };
            // In the parent the pool is dropped with the closure.
            return fork(&mut self.counts, in_child);
        }
        Ok(())
    }
}

/// Builds a pool; its start hook, if it has one, runs once on each worker before that.
pub(crate) fn build(blueprint: Blueprint) -> Result<Pool, String> {
    let Blueprint { workers, spin, hook } = blueprint;
    let started = Arc::new(AtomicUsize::new(0));
    let mut builder = Pool::builder().workers(workers).spin_budget(spin);
    if hook {
        let started = started.clone();
        builder = builder.on_worker_start(move |_| _ = started.fetch_add(1, Ordering::Relaxed));
    }
    let pool = builder.build().map_err(|error| error.to_string())?;
    let (started, expected) = (started.load(Ordering::Relaxed), if hook { workers } else { 0 });
    if (started, pool.n_workers()) != (expected, workers) {
        let n_workers = pool.n_workers();
        return Err(format!("{n_workers} workers, {started} of them started, of {workers}"));
    }
    Ok(pool)
}

fn inline_only_beside_another(inline: bool, alone: bool) -> Checked {
    match inline && alone {
        true => Err("the only caller ran inline what could be shared".into()),
        false => Ok(()),
    }
}

fn expect_raised(raised: u32, expected: std::ops::RangeInclusive<usize>) -> Checked {
    match expected.contains(&(raised as usize)) {
        true => Ok(()),
        false => Err(format!("{raised} panics where there must be {expected:?}")),
    }
}

fn fork(counts: &mut Counts, child: impl FnOnce() -> i32) -> Checked {
    let Some(outcome) = sys::forked(child) else { return Ok(()) };
    counts.forks += 1;
    outcome
}

/// In a child: everything runs on the caller. Takes no lock and allocates nothing.
fn in_child(pool: &Pool) -> i32 {
    let (rows, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for _ in 0..3 {
        pool.run_rows(100, |range| _ = rows.fetch_add(range.sum(), Ordering::Relaxed));
        pool.run(|participant, of| {
            calls.fetch_add(if (participant, of) == (0, 1) { 1 } else { 100 }, Ordering::Relaxed);
        });
    }
    match (rows.into_inner(), calls.into_inner()) {
        (14_850, 3) => 0,
        (14_850, _) => 2,
        _ => 1,
    }
}
