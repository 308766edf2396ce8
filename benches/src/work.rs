//! Work of a known length: a chain of dependent operations that no compiler shortens.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use crate::stats::median;

/// Links that one calibration run times.
const CALIBRATION_LINKS: u64 = 20_000;

/// Runs a chain of `n_links` dependent links on the calling thread, without touching memory.
///
/// A link shifts, xors and multiplies: unlike a chain of multiply-adds it cannot be folded into fewer.
#[inline(never)]
pub fn spin_work(n_links: u64) {
    let mut state = black_box(0x2545_f491_4f6c_dd1d_u64);
    for _ in 0..n_links {
        state = (state ^ (state >> 29)).wrapping_mul(0x5851_f42d_4c95_7f2d);
    }
    black_box(state);
}

/// How long one link of [`spin_work`] takes here and now.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    ns_per_link: f64,
}

impl Calibration {
    /// Times `n_runs` chains and keeps the fastest: interruptions only ever add time.
    pub fn measure(n_runs: usize) -> Self {
        let fastest = (0..n_runs.max(1))
            .map(|_| time_ns(|| spin_work(CALIBRATION_LINKS)))
            .fold(f64::INFINITY, f64::min);
        Self { ns_per_link: fastest / CALIBRATION_LINKS as f64 }
    }

    /// Links whose chain takes `ns` nanoseconds.
    pub fn links_for(self, ns: f64) -> u64 {
        (ns / self.ns_per_link).round().max(0.0) as u64
    }

    /// How far a later calibration is from this one, as a fraction.
    pub fn drift(self, later: Self) -> f64 {
        (later.ns_per_link / self.ns_per_link - 1.0).abs()
    }
}

/// Nanoseconds `f` takes.
#[inline]
pub fn time_ns(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_nanos() as f64
}

/// Cost of reading the clock twice, in nanoseconds: nothing shorter can be seen.
pub fn clock_ns() -> f64 {
    let reads: Vec<f64> = (0..101).map(|_| time_ns(|| ())).collect();
    median(&reads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_follow_from_the_calibration() {
        let calibration = Calibration { ns_per_link: 0.5 };
        assert_eq!(calibration.links_for(2000.0), 4000);
        assert_eq!(calibration.links_for(0.0), 0);
        let slower = Calibration { ns_per_link: 0.55 };
        assert!((calibration.drift(slower) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn calibration_is_a_positive_finite_number() {
        let calibration = Calibration::measure(2);
        assert!(calibration.ns_per_link.is_finite() && calibration.ns_per_link > 0.0);
        assert!(clock_ns() >= 0.0);
    }
}
