//! The ways to a pool's dispatches, so that one set of checks serves them all.
#![forbid(unsafe_code)]

use std::ops::Range;

use epoch_pool::{Busy, Part, Pool, Session};

pub(crate) type Answer = Result<(), Busy>;

/// Who dispatches, each job by the methods of the same name.
pub(crate) trait Door {
    fn participants(&self) -> usize;

    fn visit(&mut self, f: impl Fn(usize, usize) + Sync) -> Answer;

    /// The shorter method if `grain` is 1.
    fn rows(&mut self, grain: usize, rows: usize, f: impl Fn(Range<usize>) + Sync) -> Answer;

    /// The shorter method if `grain` is 1.
    fn many(&mut self, grain: usize, parts: &[Part<'_>]) -> Answer;
}

/// Whatever happens, the job is done.
impl Door for &Pool {
    fn participants(&self) -> usize {
        Pool::participants(self)
    }

    fn visit(&mut self, f: impl Fn(usize, usize) + Sync) -> Answer {
        self.run(f);
        Ok(())
    }

    fn rows(&mut self, grain: usize, rows: usize, f: impl Fn(Range<usize>) + Sync) -> Answer {
        match grain {
            1 => self.run_rows(rows, f),
            _ => self.run_rows_by(grain, rows, f),
        }
        Ok(())
    }

    fn many(&mut self, grain: usize, parts: &[Part<'_>]) -> Answer {
        match grain {
            1 => self.run_many(parts),
            _ => self.run_many_by(grain, parts),
        }
        Ok(())
    }
}

/// By the `try_run…` methods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trying<'a>(pub(crate) &'a Pool);

impl Door for Trying<'_> {
    fn participants(&self) -> usize {
        self.0.participants()
    }

    fn visit(&mut self, f: impl Fn(usize, usize) + Sync) -> Answer {
        self.0.try_run(f)
    }

    fn rows(&mut self, grain: usize, rows: usize, f: impl Fn(Range<usize>) + Sync) -> Answer {
        match grain {
            1 => self.0.try_run_rows(rows, f),
            _ => self.0.try_run_rows_by(grain, rows, f),
        }
    }

    fn many(&mut self, grain: usize, parts: &[Part<'_>]) -> Answer {
        match grain {
            1 => self.0.try_run_many(parts),
            _ => self.0.try_run_many_by(grain, parts),
        }
    }
}

impl Door for Session<'_> {
    fn participants(&self) -> usize {
        Session::participants(self)
    }

    fn visit(&mut self, f: impl Fn(usize, usize) + Sync) -> Answer {
        self.run(f);
        Ok(())
    }

    fn rows(&mut self, grain: usize, rows: usize, f: impl Fn(Range<usize>) + Sync) -> Answer {
        match grain {
            1 => self.run_rows(rows, f),
            _ => self.run_rows_by(grain, rows, f),
        }
        Ok(())
    }

    fn many(&mut self, grain: usize, parts: &[Part<'_>]) -> Answer {
        match grain {
            1 => self.run_many(parts),
            _ => self.run_many_by(grain, parts),
        }
        Ok(())
    }
}
