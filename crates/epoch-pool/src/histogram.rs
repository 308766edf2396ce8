//! Histograms with a bounded relative error, cheap enough to be filled while a job runs.
#![forbid(unsafe_code)]

use std::fmt;

use crate::sync::Counter;

/// Each power of two is cut into so many buckets, so a value is known to an eighth.
const STEPS: u64 = 8;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Larger values count as this one.
const MAX: u64 = (1 << 40) - 1;
const N_BUCKETS: usize = bucket_of(MAX) + 1;

/// How often values of each size were seen. Sizes are kept to an eighth of themselves.
///
/// ```
/// let pool = epoch_pool::Pool::builder().workers(1).timing(true).build()?;
/// for _ in 0..10 {
///     pool.run(|_, _| {}); // waits for the worker, so each of them is seen
/// }
/// let timing = pool.statistics().timing.expect("asked for");
/// assert_eq!(timing.wake_latency_ns.count(), 10);
/// println!("half of the jobs were taken up within {:?} ns", timing.wake_latency_ns.quantile(0.5));
/// # Ok::<(), epoch_pool::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Histogram {
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The value below or at which a `fraction` (0 to 1) of the values lie: the upper end of its bucket, so at most an eighth
    /// too large. `None` if there are no values.
    pub fn quantile(&self, fraction: f64) -> Option<u64> {
        let rank = (self.count() as f64 * fraction.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut below = 0;
        self.buckets().find_map(|(_, end, count)| {
            below += count;
            (below >= rank).then_some(end)
        })
    }

    /// The buckets that have values, ascending: the smallest and the largest value that each of them stands for, and how often
    /// one was seen.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let buckets = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        buckets.map(|(bucket, &count)| (start_of(bucket), start_of(bucket + 1) - 1, count))
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buckets = self.buckets().map(|(start, end, count)| (start..=end, count));
        f.debug_map().entries(buckets).finish()
    }
}

/// A histogram on its way. One thread at a time adds to it.
#[derive(Debug)]
pub(crate) struct Cells(Box<[Counter]>);

impl Cells {
    pub(crate) fn new() -> Self {
        Self((0..N_BUCKETS).map(|_| Counter::default()).collect())
    }

    pub(crate) fn add(&self, value: u64) {
        self.0[bucket_of(value)].bump(1);
    }

    /// The sum of several.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Histogram {
        let mut buckets = vec![0; N_BUCKETS];
        for cells in all {
            buckets.iter_mut().zip(&cells.0).for_each(|(sum, cell)| *sum += cell.get());
        }
        Histogram { buckets }
    }
}

/// Values below `STEPS` have buckets of their own; from there on the leading bits below the first choose one.
const fn bucket_of(value: u64) -> usize {
    let value = if value > MAX { MAX } else { value };
    if value < STEPS {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    let step = (value >> shift) - STEPS;
    (STEPS * (shift as u64 + 1) + step) as usize
}

/// The smallest value of a bucket.
const fn start_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    (STEPS + bucket % STEPS) << (bucket / STEPS - 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_value_lies_in_its_bucket() {
        let around = |bit: u32| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1, 3 << bit >> 1];
        let values = (0..2000).chain((3..40).flat_map(around)).filter(|value| *value <= MAX);
        for value in values {
            let bucket = bucket_of(value);
            assert!(start_of(bucket) <= value && value < start_of(bucket + 1), "{value}: {bucket}");
            let width = start_of(bucket + 1) - start_of(bucket);
            assert!(width == 1 || width * STEPS <= value, "{value}: {width}");
        }
        assert_eq!(bucket_of(u64::MAX), N_BUCKETS - 1);
        assert_eq!(start_of(N_BUCKETS), MAX + 1);
    }

    #[test]
    fn quantiles_by_hand() {
        let (one, other) = (Cells::new(), Cells::new());
        assert_eq!(Cells::sum([&one].into_iter()).quantile(0.5), None);
        [1, 2, 3].into_iter().for_each(|value| one.add(value));
        other.add(1000);
        let both = Cells::sum([&one, &other].into_iter());
        assert_eq!(both.count(), 4);
        // 1000 lies in 960..=1023
        let cases = [(0.0, 1), (0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (1.0, 1023), (9.0, 1023)];
        for (fraction, expected) in cases {
            assert_eq!(both.quantile(fraction), Some(expected), "{fraction}");
        }
        let buckets: Vec<_> = both.buckets().collect();
        assert_eq!(buckets, [(1, 1, 1), (2, 2, 1), (3, 3, 1), (960, 1023, 1)]);
        assert_eq!(format!("{both:?}"), "{1..=1: 1, 2..=2: 1, 3..=3: 1, 960..=1023: 1}");
    }
}
