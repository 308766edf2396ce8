//! Medians with intervals, and ratios of what was measured side by side.
//!
//! A round gives one value per backend. The interval around a median is read off the ordered values
//! themselves: with `k` the largest rank for which the values of rank `k` from below and from above hold
//! the true median with a probability of at least [`COVERAGE`], it is those two values. With fewer than
//! five rounds no pair of ranks holds that much, and the interval is all there is: lowest to highest.

use benches::stats::median;

/// Probability with which an interval should hold the median.
const COVERAGE: f64 = 0.90;

/// A median and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Estimate {
    /// The median of `samples` and its interval.
    pub(crate) fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = interval_rank(sorted.len());
        let value = |index: Option<usize>| index.map_or(f64::NAN, |index| sorted[index]);
        Self {
            median: median(&sorted),
            low: value((!sorted.is_empty()).then_some(rank - 1)),
            high: value(sorted.len().checked_sub(rank)),
        }
    }

    /// The ratio `numerators[i] / denominators[i]` over the rounds `i`.
    ///
    /// Values below `floor` count as `floor`: an overhead that cannot be told from nothing must not make
    /// a ratio out of noise. A floor of zero changes nothing.
    pub(crate) fn of_ratios(numerators: &[f64], denominators: &[f64], floor: f64) -> Self {
        let ratios: Vec<f64> = numerators
            .iter()
            .zip(denominators)
            .map(|(&numerator, &denominator)| ratio(numerator, denominator, floor))
            .collect();
        Self::of(&ratios)
    }

    /// Whether a ratio is no different from 1 as far as can be told.
    pub(crate) fn is_noise(&self) -> bool {
        !(self.low > 1.0 || self.high < 1.0)
    }
}

/// `numerator / denominator`, both at least `floor`.
pub(crate) fn ratio(numerator: f64, denominator: f64, floor: f64) -> f64 {
    let floor = floor.max(f64::MIN_POSITIVE);
    numerator.max(floor) / denominator.max(floor)
}

/// The largest rank, counted from 1, whose interval still has [`COVERAGE`]; 1 if none has.
fn interval_rank(n_samples: usize) -> usize {
    let half = n_samples.div_ceil(2).max(1);
    (1..=half).rev().find(|&rank| coverage(n_samples, rank) >= COVERAGE).unwrap_or(1)
}

/// Probability that the values of rank `rank` from below and from above have the median between them.
pub(crate) fn coverage(n_samples: usize, rank: usize) -> f64 {
    // 1 - 2 P(fewer than `rank` of the samples lie below the median), a binomial of one half.
    let mut term = 0.5_f64.powi(n_samples as i32);
    let mut tail = 0.0;
    for below in 0..rank {
        tail += term;
        term *= (n_samples - below) as f64 / (below + 1) as f64;
    }
    (1.0 - 2.0 * tail).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_by_hand() {
        let cases = [
            (3, 1, 1.0 - 2.0 / 8.0),
            (5, 1, 1.0 - 2.0 / 32.0),
            (5, 2, 1.0 - 2.0 * 6.0 / 32.0),
            (7, 1, 1.0 - 2.0 / 128.0),
            (8, 2, 1.0 - 2.0 * 9.0 / 256.0),
            (9, 2, 1.0 - 2.0 * 10.0 / 512.0),
            (2, 2, 0.0),
        ];
        for (n_samples, rank, expected) in cases {
            let found = coverage(n_samples, rank);
            assert!((found - expected).abs() < 1e-12, "{n_samples} samples, rank {rank}: {found}");
        }
    }

    #[test]
    fn ranks_of_the_interval() {
        // 7: rank 2 would hold 87.5 %, too little. 8: rank 2 holds 93.0 %. 20: rank 6 holds 95.9 %.
        let cases = [(0, 1), (1, 1), (2, 1), (3, 1), (5, 1), (7, 1), (8, 2), (11, 3), (20, 6)];
        for (n_samples, expected) in cases {
            assert_eq!(interval_rank(n_samples), expected, "{n_samples} samples");
        }
    }

    #[test]
    fn estimates_by_hand() {
        let cases = [
            (&[4.0][..], (4.0, 4.0, 4.0)),
            (&[3.0, 1.0, 2.0], (2.0, 1.0, 3.0)),
            (&[1.0, 2.0, 3.0, 10.0], (2.5, 1.0, 10.0)),
            (&[8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], (4.5, 2.0, 7.0)),
        ];
        for (samples, (median, low, high)) in cases {
            assert_eq!(Estimate::of(samples), Estimate { median, low, high }, "{samples:?}");
        }
        let empty = Estimate::of(&[]);
        assert!(empty.median.is_nan() && empty.low.is_nan() && empty.high.is_nan());
    }

    #[test]
    fn ratios_are_paired_by_round() {
        // The machine is ten times slower in the second round; the ratio does not notice.
        let estimate = Estimate::of_ratios(&[1.0, 10.0, 3.0], &[2.0, 20.0, 4.0], 0.0);
        assert_eq!(estimate, Estimate { median: 0.5, low: 0.5, high: 0.75 });
        assert!(!estimate.is_noise());
    }

    #[test]
    fn what_is_below_the_floor_is_no_difference() {
        let estimate = Estimate::of_ratios(&[-30.0, 5.0, 12.0], &[8.0, -2.0, 0.0], 20.0);
        assert_eq!(estimate, Estimate { median: 1.0, low: 1.0, high: 1.0 });
        assert!(estimate.is_noise());
        assert_eq!(ratio(10.0, 4000.0, 20.0), 0.005);
    }
}
