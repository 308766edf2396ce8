//! What a dispatch has done, row by row, kept by the jobs themselves: each row once, in calls that were made for this dispatch
//! and had ended when it returned.
#![forbid(unsafe_code)]

use std::fmt::Write;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What a call can find wrong.
const TROUBLES: [&str; 5] = [
    "a row ran twice",
    "a row outside the row space",
    "a call for no rows",
    "a range that starts off the grain",
    "a call of a dispatch that had returned, or before its caller's writes were seen",
];
const TWICE: u8 = 1;
const OUTSIDE: u8 = 2;
const EMPTY: u8 = 4;
const OFF_GRAIN: u8 = 8;
const STRAY: u8 = 16;

/// A call that has ended, in the word that counts them; one that has begun is 1.
const ENDED: u64 = 1 << 32;

/// The rows of one dispatch after the other. One per thread that dispatches.
///
/// All accesses are relaxed: if the pool itself orders what the caller and the jobs do, that is enough.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// One bit a row.
    rows: Box<[AtomicU64]>,
    /// The number of the dispatch, odd while it runs.
    serial: AtomicU64,
    /// Calls that have begun, and, in the upper half, ended.
    calls: AtomicU64,
    /// Bits of [`TROUBLES`].
    trouble: AtomicU8,
}

/// What is demanded of the rows when a dispatch has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Each once.
    All,
    /// Each at most once, as a job has panicked; this one has run.
    AtMostOnce(Option<usize>),
}

impl Ledger {
    pub(crate) fn new(max_rows: usize) -> Self {
        Self {
            rows: (0..max_rows.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            serial: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            trouble: AtomicU8::new(0),
        }
    }

    /// Begins a dispatch.
    pub(crate) fn open(&mut self) -> Opened<'_> {
        *self.serial.get_mut() += 1;
        *self.calls.get_mut() = 0;
        Opened { serial: *self.serial.get_mut(), ledger: self }
    }

    fn bits(&self, rows: Range<usize>) -> impl Iterator<Item = (&AtomicU64, u64)> {
        (rows.start / 64..rows.end.div_ceil(64)).map(move |word| {
            let first = rows.start.saturating_sub(word * 64);
            let end = (rows.end - word * 64).min(64);
            (&self.rows[word], u64::MAX >> (64 - (end - first)) << first)
        })
    }
}

/// A dispatch that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened<'a> {
    ledger: &'a Ledger,
    pub(crate) serial: u64,
}

impl<'a> Opened<'a> {
    /// A row space of this dispatch whose rows are counted from `first` on.
    pub(crate) fn space(self, first: usize, len: usize, grain: usize, effort: u32) -> Space<'a> {
        Space { opened: self, first, len, grain: grain.max(1), effort }
    }

    /// Ends the dispatch, whose row spaces have `n_rows` rows in all: the calls that were made, or what is wrong.
    pub(crate) fn close(self, n_rows: usize, expect: Expect) -> Result<u32, String> {
        let ledger = self.ledger;
        let calls = ledger.calls.load(Ordering::Relaxed);
        ledger.serial.store(self.serial + 1, Ordering::Relaxed);
        let (begun, ended) = (calls as u32, (calls >> 32) as u32); // the two halves
        let mut wrong = String::new();
        if begun != ended {
            _ = write!(wrong, "{begun} calls have begun and {ended} ended; ");
        }
        let trouble = ledger.trouble.swap(0, Ordering::Relaxed);
        for (bit, what) in TROUBLES.iter().enumerate().filter(|(bit, _)| trouble >> bit & 1 == 1) {
            _ = write!(wrong, "{what} (trouble {bit}); ");
        }
        let mut missing = 0;
        let culprit = match expect {
            Expect::AtMostOnce(Some(row)) => row..row + 1,
            _ => 0..0,
        };
        for (word, bits) in ledger.bits(culprit) {
            missing += (bits & !word.load(Ordering::Relaxed)).count_ones();
        }
        for (word, bits) in ledger.bits(0..n_rows) {
            let ran = word.swap(0, Ordering::Relaxed);
            if expect == Expect::All {
                missing += (bits & !ran).count_ones();
            }
        }
        if missing > 0 {
            _ = write!(wrong, "{missing} of {n_rows} rows did not run; ");
        }
        if wrong.is_empty() { Ok(begun) } else { Err(wrong) }
    }
}

/// One row space of a dispatch; its job is [`Space::visit`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'a> {
    opened: Opened<'a>,
    first: usize,
    len: usize,
    grain: usize,
    effort: u32,
}

impl Space<'_> {
    /// Notes the rows and works for a while, then does `more`, which may unwind.
    pub(crate) fn visit_and(&self, rows: Range<usize>, more: impl FnOnce()) {
        let ledger = self.opened.ledger;
        let _call = Call::begin(&ledger.calls);
        self.note(&rows);
        (0..self.effort).for_each(|_| spin_loop());
        more();
    }

    pub(crate) fn visit(&self, rows: Range<usize>) {
        self.visit_and(rows, || {});
    }

    fn note(&self, rows: &Range<usize>) {
        let ledger = self.opened.ledger;
        let report = |trouble| _ = ledger.trouble.fetch_or(trouble, Ordering::Relaxed);
        if ledger.serial.load(Ordering::Relaxed) != self.opened.serial {
            return report(STRAY); // the bits belong to another dispatch
        }
        if rows.is_empty() {
            return report(EMPTY);
        }
        if rows.end > self.len {
            return report(OUTSIDE);
        }
        if !rows.start.is_multiple_of(self.grain) {
            report(OFF_GRAIN);
        }
        for (word, bits) in ledger.bits(self.first + rows.start..self.first + rows.end) {
            if word.fetch_or(bits, Ordering::Relaxed) & bits != 0 {
                report(TWICE);
            }
        }
    }
}

/// Counts a call, also one that unwinds.
struct Call<'a>(&'a AtomicU64);

impl<'a> Call<'a> {
    fn begin(calls: &'a AtomicU64) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Self(calls)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(ENDED, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, grain, the ranges of the calls; whether that is a dispatch as it should be.
    type Case = (usize, usize, &'static [(usize, usize)], bool);

    const CASES: &[Case] = &[
        (0, 1, &[], true),
        (1, 1, &[(0, 1)], true),
        (1, 1, &[], false),
        (3, 1, &[(1, 3), (0, 1)], true),
        (3, 1, &[(0, 2), (1, 3)], false),
        (3, 1, &[(0, 2)], false),
        (3, 1, &[(0, 4)], false),
        (3, 1, &[(0, 3), (3, 3)], false),
        (64, 1, &[(0, 64)], true),
        (200, 1, &[(0, 63), (63, 65), (65, 128), (128, 200)], true),
        (200, 1, &[(0, 63), (63, 65), (64, 128), (128, 200)], false),
        (200, 1, &[(0, 63), (63, 65), (65, 128), (128, 199)], false),
        (200, 64, &[(0, 64), (64, 192), (192, 200)], true),
        (200, 64, &[(0, 64), (64, 190), (190, 200)], false),
    ];

    #[test]
    fn rows_are_noticed() {
        let mut ledger = Ledger::new(256);
        for (rows, grain, calls, sound) in CASES {
            let opened = ledger.open();
            let space = opened.space(0, *rows, *grain, 0);
            calls.iter().for_each(|&(start, end)| space.visit(start..end));
            let closed = opened.close(*rows, Expect::All);
            assert_eq!(closed.is_ok(), *sound, "{rows} {calls:?}: {closed:?}");
            if *sound {
                assert_eq!(closed.unwrap(), calls.len() as u32);
            }
        }
    }

    #[test]
    fn a_second_row_space_has_rows_of_its_own() {
        let mut ledger = Ledger::new(256);
        let opened = ledger.open();
        opened.space(0, 100, 1, 0).visit(0..100);
        opened.space(100, 50, 1, 0).visit(0..50);
        assert_eq!(opened.close(150, Expect::All), Ok(2));
    }

    #[test]
    fn after_a_panic_rows_may_be_missing_but_the_culprit() {
        let mut ledger = Ledger::new(256);
        for (expect, sound) in [
            (Expect::AtMostOnce(Some(70)), true),
            (Expect::AtMostOnce(Some(80)), false),
            (Expect::AtMostOnce(None), true),
            (Expect::All, false),
        ] {
            let opened = ledger.open();
            opened.space(0, 100, 1, 0).visit(60..75);
            assert_eq!(opened.close(100, expect).is_ok(), sound, "{expect:?}");
        }
    }

    #[test]
    fn a_call_that_comes_late_or_never_ends_is_noticed() {
        let ledger = Ledger::new(64);
        // As `open` would, but with a borrow that lets the first dispatch outlive its end.
        let late = Opened { ledger: &ledger, serial: 0 };
        late.space(0, 8, 1, 0).visit(0..8);
        assert!(late.close(8, Expect::All).is_ok());
        late.space(0, 8, 1, 0).visit(0..8);
        let next = Opened { ledger: &ledger, serial: 1 };
        assert!(next.close(0, Expect::All).is_err());

        ledger.calls.fetch_add(1, Ordering::Relaxed);
        assert!(next.close(0, Expect::All).is_err());
    }
}
