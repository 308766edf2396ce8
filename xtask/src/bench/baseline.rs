//! Comparison with an earlier run: a ratio per result, and whether it is more than noise.
//!
//! The two runs share no rounds, so nothing is paired: the interval of a ratio reaches from the lowest
//! new value over the highest old one to the highest over the lowest. That is wide, and honest.

use super::results::{Ratio, Results, Row};
use super::series::SeriesSet;
use super::stats::{Estimate, ratio};

/// One result of this run beside the same one of the earlier run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) row: Row,
    pub(crate) old: f64,
    /// New over old.
    pub(crate) ratio: Ratio,
}

/// What can be said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Better,
    Worse,
    Noise,
}

impl Verdict {
    /// The word in the table.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Noise => "noise",
        }
    }

    /// Judges a ratio of a metric that is better when `lower`.
    pub(crate) fn of(ratio: &Ratio, lower: bool) -> Self {
        match (ratio.is_noise(), (ratio.ratio < 1.0) == lower) {
            (true, _) => Self::Noise,
            (false, true) => Self::Better,
            (false, false) => Self::Worse,
        }
    }
}

/// Every result that both runs have. `series` knows what cannot be told from zero.
pub(crate) fn compare(old: &Results, new: &Results, series: &SeriesSet) -> Vec<Change> {
    let rows = new.results.iter();
    rows.filter_map(|row| {
        let before = old.find(row)?;
        let same = |s: &&super::series::Series| {
            s.suite == row.suite && s.case == row.case && s.metric == row.metric
        };
        let floor = series.all.iter().find(same).map_or(0.0, |series| series.resolution());
        let estimate = Estimate {
            median: ratio(row.median, before.median, floor),
            low: ratio(row.low, before.high, floor),
            high: ratio(row.high, before.low, floor),
        };
        Some(Change { row: row.clone(), old: before.median, ratio: estimate.into() })
    })
    .collect()
}

/// What makes the two runs hard to compare, if anything does.
pub(crate) fn caveats(old: &Results, new: &Results) -> Vec<String> {
    let pairs = [
        ("CPU", old.machine.cpu.clone(), new.machine.cpu.clone()),
        ("thread count", old.machine.threads.to_string(), new.machine.threads.to_string()),
        ("instruction set", old.machine.isa.clone(), new.machine.isa.clone()),
        ("compiler", old.rustc.clone(), new.rustc.clone()),
    ];
    let differing = pairs.into_iter().filter(|(_, old, new)| old != new);
    differing.map(|(what, old, new)| format!("the {what} was {old}, now {new}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::example;
    use super::*;

    #[test]
    fn a_run_beside_itself_is_noise() {
        let (results, series) = example();
        let changes = compare(&results, &results, &series);
        assert_eq!(changes.len(), 2);
        for change in changes {
            assert_eq!(change.ratio.ratio, 1.0);
            assert_eq!(Verdict::of(&change.ratio, true), Verdict::Noise);
        }
        assert!(caveats(&results, &results).is_empty());
    }

    #[test]
    fn a_clear_change_is_named() {
        let (old, series) = example();
        let mut new = old.clone();
        for row in &mut new.results {
            (row.median, row.low, row.high) = (row.median / 4.0, row.low / 4.0, row.high / 4.0);
        }
        new.machine.threads += 1;
        let changes = compare(&old, &new, &series);
        // 42.5 / 170, 42 / 177, 44.25 / 168
        assert_eq!(changes[1].ratio, Ratio { ratio: 0.25, low: 0.23729, high: 0.26339 });
        assert_eq!(Verdict::of(&changes[1].ratio, true), Verdict::Better);
        assert_eq!(Verdict::of(&changes[1].ratio, false), Verdict::Worse);
        assert_eq!(caveats(&old, &new).len(), 1);
    }

    #[test]
    fn what_only_one_run_has_is_left_out() {
        let (old, series) = example();
        let mut new = old.clone();
        new.results[0].case = "another".into();
        assert_eq!(compare(&old, &new, &series).len(), 1);
    }
}
