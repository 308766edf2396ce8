//! One job on a pool that is reached by some door, with what must be true afterwards.
#![forbid(unsafe_code)]

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use epoch_pool::{Busy, Part};

use crate::account::Account;
use crate::choices::{Culprits, MAX_PARTS, MAX_ROWS, Plan};
use crate::counts::Counts;
use crate::doors::{Answer, Door};
use crate::oracle::{Expect, Ledger, Opened};
use crate::planned::{self, Panics};

/// What is wrong, if something is.
pub(crate) type Checked = Result<(), String>;

/// What one thread keeps of the jobs that it dispatches on one pool.
#[derive(Debug)]
pub(crate) struct Checks {
    /// Nobody else dispatches on the pool.
    pub(crate) alone: bool,
    pub(crate) ledger: Ledger,
    pub(crate) counts: Counts,
    pub(crate) account: Account,
}

/// A call of the pool, as far as the job could see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// There was something to do.
    pub(crate) is_job: bool,
    /// There were several chunks, and workers.
    pub(crate) sharable: bool,
    pub(crate) seen: Seen,
    pub(crate) has_panicked: bool,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Shared,
    Inline,
    Refused,
    /// There was too little to tell: a single call may be a job that ran inline, or one that was kept from the workers.
    Something,
}

impl Checks {
    pub(crate) fn new(alone: bool) -> Self {
        let (counts, account) = Default::default();
        Self { alone, ledger: Ledger::new(MAX_ROWS), counts, account }
    }

    pub(crate) fn perform(&mut self, door: &mut impl Door, plan: Plan) -> Checked {
        match plan {
            Plan::Visit { effort } => self.visit(door, effort),
            Plan::Rows { rows, grain, effort } => self.rows(door, rows, grain, effort),
            Plan::Many { parts, grain } => self.many(door, parts, grain),
            Plan::PanicVisit { culprits, is_bomb } => self.panic_visit(door, culprits, is_bomb),
            Plan::PanicRows { rows, culprit, is_bomb } => {
                self.panic_rows(door, rows, culprit, is_bomb)
            }
        }
    }

    /// Counts a call. Who has the pool alone must have shared what can be shared.
    pub(crate) fn conclude(&mut self, call: Call) -> Checked {
        let Call { is_job, sharable, seen, has_panicked } = call;
        let (account, counts) = (&mut self.account, &mut self.counts);
        counts.calls += 1;
        account.jobs += u64::from(is_job);
        if seen == Seen::Refused {
            (account.refused, counts.refused) = (account.refused + 1, counts.refused + 1);
            return match sharable && !self.alone {
                true => Ok(()),
                false => Err("a job was refused that no other one was in the way of".into()),
            };
        }
        let certain = sharable && (seen == Seen::Shared || self.alone);
        let possible = sharable && seen != Seen::Inline;
        account.published.add(1, certain, possible);
        account.published_panicked.add(1, certain && has_panicked, possible && has_panicked);
        let inline = sharable && seen == Seen::Inline;
        counts.inline += u64::from(inline);
        match inline && self.alone {
            true => Err("the only caller ran inline what could be shared".into()),
            false => Ok(()),
        }
    }

    fn visit(&mut self, door: &mut impl Door, effort: u32) -> Checked {
        let (participants, inline) = (door.participants(), AtomicBool::new(false));
        let opened = self.ledger.open();
        let space = opened.space(0, participants, 1, effort);
        let answer = door.visit(|participant, of| {
            space.visit(participant..participant + 1);
            if of < participants {
                inline.store(true, Ordering::Relaxed);
            }
        });
        let inline = inline.into_inner();
        close(opened, answer, if inline { 1 } else { participants }, Expect::All)?;
        let seen = seen(answer, if inline { Seen::Inline } else { Seen::Shared });
        self.conclude(Call { is_job: true, sharable: participants > 1, seen, has_panicked: false })
    }

    fn rows(&mut self, door: &mut impl Door, rows: usize, grain: usize, effort: u32) -> Checked {
        let opened = self.ledger.open();
        let space = opened.space(0, rows, grain, effort);
        let answer = door.rows(grain, rows, |range| space.visit(range));
        let calls = close(opened, answer, rows, Expect::All)?;
        let sharable = rows > grain.max(1) && door.participants() > 1;
        let seen = seen(answer, if calls > 1 { Seen::Shared } else { Seen::Something });
        self.conclude(Call { is_job: rows > 0, sharable, seen, has_panicked: false })
    }

    fn many(&mut self, door: &mut impl Door, parts: [usize; MAX_PARTS], grain: usize) -> Checked {
        let opened = self.ledger.open();
        let mut first = 0;
        let spaces = parts.map(|rows| {
            first += rows;
            opened.space(first - rows, rows, grain, 0)
        });
        let jobs = spaces.map(|space| move |range: Range<usize>| space.visit(range));
        let list: [Part<'_>; MAX_PARTS] =
            std::array::from_fn(|part| (parts[part], &jobs[part] as _));
        let answer = door.many(grain, &list);
        let calls = close(opened, answer, first, Expect::All)?;
        let n_parts = parts.iter().filter(|rows| **rows > 0).count();
        let sharable = (n_parts > 1 || first > grain.max(1)) && door.participants() > 1;
        let is_shared = calls as usize > n_parts;
        let seen = seen(answer, if is_shared { Seen::Shared } else { Seen::Something });
        self.conclude(Call { is_job: first > 0, sharable, seen, has_panicked: false })
    }

    fn panic_visit(&mut self, door: &mut impl Door, culprits: Culprits, is_bomb: bool) -> Checked {
        let (participants, inline) = (door.participants(), AtomicBool::new(false));
        let panics = Arc::new(Panics::default());
        let opened = self.ledger.open();
        let space = opened.space(0, participants, 1, 0);
        let mut answer = Ok(());
        let raised = planned::expect(opened.serial, &panics, || {
            answer = door.visit(|participant, of| {
                if of < participants {
                    inline.store(true, Ordering::Relaxed);
                }
                space.visit_and(participant..participant + 1, || match culprits {
                    Culprits::One(culprit) if culprit != participant => {}
                    // Of the payloads of two others one is dropped, and the first has been kept by then.
                    Culprits::AllThisLast(last) if last == participant && of > 2 => {
                        planned::raise_last(opened.serial, &panics, is_bomb)
                    }
                    _ => planned::raise(opened.serial, &panics, is_bomb),
                });
            });
        })?;
        let n_called = if inline.into_inner() { 1 } else { participants };
        // Every participant is called, whoever panics.
        let calls = close(opened, answer, n_called, Expect::All)? as usize;
        let outcome = if calls < participants { Seen::Inline } else { Seen::Shared };
        self.counts.panics += u64::from(raised);
        self.conclude(Call {
            is_job: true,
            sharable: participants > 1,
            seen: seen(answer, outcome),
            has_panicked: raised > 0,
        })?;
        let n_culprits = match culprits {
            Culprits::One(culprit) => usize::from(culprit < calls),
            Culprits::All | Culprits::AllThisLast(_) => calls,
        };
        expect_raised(raised, n_culprits..=n_culprits)
    }

    fn panic_rows(
        &mut self,
        door: &mut impl Door,
        rows: usize,
        culprit: Option<usize>,
        is_bomb: bool,
    ) -> Checked {
        let panics = Arc::new(Panics::default());
        let opened = self.ledger.open();
        let space = opened.space(0, rows, 1, 0);
        let mut answer = Ok(());
        let raised = planned::expect(opened.serial, &panics, || {
            answer = door.rows(1, rows, |range| {
                space.visit_and(range.clone(), || {
                    if culprit.is_none_or(|row| range.contains(&row)) {
                        planned::raise(opened.serial, &panics, is_bomb);
                    }
                });
            });
        })?;
        let culprit = culprit.map(|row| (row, row < rows && answer.is_ok()));
        let must_run = culprit.filter(|(_, runs)| *runs).map(|(row, _)| row);
        let calls = close(opened, answer, rows, Expect::AtMostOnce(must_run))? as usize;
        self.counts.panics += u64::from(raised);
        self.conclude(Call {
            is_job: rows > 0,
            sharable: rows > 1 && door.participants() > 1,
            seen: seen(answer, if calls > 1 { Seen::Shared } else { Seen::Something }),
            has_panicked: raised > 0,
        })?;
        match culprit {
            Some((_, runs)) => expect_raised(raised, usize::from(runs)..=1),
            None => expect_raised(raised, calls..=calls),
        }
    }
}

fn seen(answer: Answer, outcome: Seen) -> Seen {
    if answer.is_ok() { outcome } else { Seen::Refused }
}

/// Ends a dispatch from outside any job, as [`Opened::close`] does; one that was refused has called nothing.
fn close(opened: Opened<'_>, answer: Answer, n_rows: usize, expect: Expect) -> Result<u32, String> {
    let Err(busy) = answer else { return opened.close(n_rows, expect) };
    match (busy, opened.close(0, Expect::All)?) {
        (Busy::Elsewhere, 0) => Ok(0),
        (_, calls) => Err(format!("{calls} calls of a job that was refused as {busy:?}")),
    }
}

pub(crate) fn expect_raised(raised: u32, expected: RangeInclusive<usize>) -> Checked {
    match expected.contains(&(raised as usize)) {
        true => Ok(()),
        false => Err(format!("{raised} panics where there must be {expected:?}")),
    }
}
