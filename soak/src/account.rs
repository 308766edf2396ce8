//! What the statistics of a pool must say, kept by those who use it.
#![forbid(unsafe_code)]

use std::ops::AddAssign;

use epoch_pool::Statistics;

/// A number of jobs of which some are uncertain, as only the pool knows what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) certain: u64,
    pub(crate) possible: u64,
}

impl Bounds {
    /// `n` more, if that is `possible`.
    pub(crate) fn add(&mut self, n: u64, certain: bool, possible: bool) {
        self.certain += if certain { n } else { 0 };
        self.possible += if possible { n } else { 0 };
    }

    fn contain(self, n: u64) -> bool {
        (self.certain..=self.possible).contains(&n)
    }
}

impl AddAssign for Bounds {
    fn add_assign(&mut self, other: Self) {
        self.certain += other.certain;
        self.possible += other.possible;
    }
}

/// What was done with one pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Calls of a `run…` or `try_run…` method with something to do.
    pub(crate) jobs: u64,
    /// Those that were refused.
    pub(crate) refused: u64,
    /// Those that were published.
    pub(crate) published: Bounds,
    /// Those that were published and of which a call panicked.
    pub(crate) published_panicked: Bounds,
    /// Hot phases begun.
    pub(crate) phases: u64,
}

impl AddAssign for Account {
    fn add_assign(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.refused += other.refused;
        self.published += other.published;
        self.published_panicked += other.published_panicked;
        self.phases += other.phases;
    }
}

impl Account {
    /// Whether the statistics of a pool with so many workers, which nobody uses now, say what was done with it.
    pub(crate) fn check(
        &self,
        statistics: &Statistics,
        n_workers: usize,
        is_timed: bool,
    ) -> Result<(), String> {
        let wrong = self.findings(statistics, n_workers as u64, is_timed);
        let wrong: Vec<_> =
            wrong.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        Err(format!(
            "the statistics do not say that {}: {statistics:?} of {self:?}",
            wrong.join(", that ")
        ))
    }

    /// What must be true of the statistics, and whether it is.
    fn findings(&self, of: &Statistics, workers: u64, is_timed: bool) -> Vec<(bool, &'static str)> {
        let accounted = of.dispatches + of.inline.total() + of.refused;
        vec![
            (self.published.contain(of.dispatches), "the jobs that were shared were published"),
            (self.published_panicked.contain(of.panics), "those jobs panicked which did"),
            (accounted == self.jobs, "each job went one way"),
            (of.refused == self.refused, "those were refused that were"),
            (of.inline.forked == 0, "this is no fork"),
            (
                (of.inline.no_workers == 0) == (workers > 0 || self.jobs == 0),
                "workers are missed where there are none",
            ),
            (of.invited + of.deserted >= of.dispatches, "a job that is published has guests"),
            (of.invited <= of.dispatches * workers, "each worker is invited to a job once"),
            (of.late <= of.invited, "late are those who were invited"),
            (of.caller_waits <= of.dispatches, "a caller waits once a job"),
            (of.unparks <= of.invited + self.phases * workers, "wake-ups go to guests"),
            (workers > 0 || of.steals == 0, "there is nobody to steal from"),
            (of.timing.is_some() == is_timed, "times are measured if asked for"),
            (
                of.timing.as_ref().is_none_or(|times| {
                    times.wake_latency_ns.count() == of.invited - of.late.min(of.invited)
                        && times.imbalance_percent.count() <= of.dispatches
                }),
                "who came in time was timed",
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use epoch_pool::Pool;

    use super::*;

    /// The account of ten jobs on a pool of one worker, of which one was too small to share.
    const TRUE: Account = Account {
        jobs: 10,
        refused: 0,
        published: Bounds { certain: 9, possible: 9 },
        published_panicked: Bounds { certain: 0, possible: 0 },
        phases: 0,
    };

    #[test]
    fn an_account_that_differs_is_noticed() {
        let pool = Pool::builder().participants(2).timing(true).build().unwrap();
        (0..9).for_each(|_| pool.run_rows(10, |_| {}));
        pool.run_rows(1, |_| {});
        let statistics = pool.statistics();
        assert_eq!(TRUE.check(&statistics, 1, true), Ok(()));
        let all = Bounds { certain: 10, possible: 10 };
        let fewer = Bounds { certain: 0, possible: 8 };
        let one = Bounds { certain: 1, possible: 1 };
        for account in [
            Account { jobs: 9, ..TRUE },
            Account { jobs: 11, ..TRUE },
            Account { refused: 1, ..TRUE },
            Account { published: all, ..TRUE },
            Account { published: fewer, ..TRUE },
            Account { published_panicked: one, ..TRUE },
        ] {
            assert!(account.check(&statistics, 1, true).is_err(), "{account:?}");
        }
        assert!(TRUE.check(&statistics, 1, false).is_err());
        assert!(TRUE.check(&statistics, 0, true).is_err());
    }
}
