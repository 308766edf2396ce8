//! Order statistics of samples inside one process.

#![forbid(unsafe_code)]

/// The `fraction` quantile with linear interpolation between order statistics, or NaN without samples.
///
/// ```
/// assert_eq!(benches::stats::quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), 2.5);
/// ```
pub fn quantile(samples: &[f64], fraction: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = fraction.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// The median, or NaN without samples.
pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// The arithmetic mean, or NaN without samples.
pub fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        let samples = [9.0, 1.0, 5.0, 3.0, 7.0];
        for (fraction, expected) in [(0.0, 1.0), (0.25, 3.0), (0.5, 5.0), (0.9, 8.2), (1.0, 9.0)] {
            let found = quantile(&samples, fraction);
            assert!((found - expected).abs() < 1e-12, "{fraction}: {found}");
        }
    }

    #[test]
    fn small_sample_counts() {
        assert!(median(&[]).is_nan());
        assert!(mean(&[]).is_nan());
        assert_eq!(median(&[2.0]), 2.0);
        assert_eq!(median(&[2.0, 3.0]), 2.5);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
    }
}
