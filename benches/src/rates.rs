//! From the passes over one matrix to the numbers that are reported.

#![forbid(unsafe_code)]

use crate::ceiling::Ceilings;
use crate::protocol::{Better, Measurement};
use crate::stats::median;

/// One way to multiply one matrix: its name, and what tells it from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// What stands behind the shape in the name of the case, such as `q8_0-b2`.
    pub(crate) case: String,
    /// Number of the kernels in their list.
    pub(crate) kernels: usize,
    pub(crate) batch: usize,
    pub(crate) packed: bool,
}

/// Gigabytes of weights per second of each way, one entry per turn, and of reading.
pub(crate) struct Rates<'a> {
    pub(crate) ways: &'a [Way],
    pub(crate) passes: Vec<Vec<f64>>,
    pub(crate) ceilings: Ceilings,
}

impl Rates<'_> {
    /// The numbers of all ways: medians over the passes. Ratios of two ways are those of passes of the same turn.
    pub(crate) fn measurements(&self, matrix: &str) -> Vec<Measurement> {
        let [at_length, in_parts] =
            [&self.ceilings.at_length, &self.ceilings.in_parts].map(|reads| reads.fastest());
        let mut found = Vec::new();
        for (way, rates) in self.ways.iter().zip(&self.passes) {
            let mut add = |metric: &str, unit: &str, better, samples: Vec<f64>| {
                found.push(Measurement {
                    case: format!("{matrix}-{}", way.case),
                    metric: metric.into(),
                    unit: unit.into(),
                    better,
                    value: median(&samples),
                    resolution: 0.0,
                    samples,
                });
            };
            let percents = |ceiling: &[f64]| {
                let ceiling = median(ceiling);
                rates.iter().map(|rate| 100.0 * rate / ceiling).collect()
            };
            add("bandwidth", "GB/s", Better::Higher, rates.clone());
            add("of_ceiling", "%", Better::Higher, percents(at_length));
            add("read_ceiling", "GB/s", Better::Higher, at_length.to_vec());
            add("of_ceiling_in_parts", "%", Better::Higher, percents(in_parts));
            add("read_ceiling_in_parts", "GB/s", Better::Higher, in_parts.to_vec());
            if way.batch > 1 {
                let one = self.rates_of(|other| Way { batch: 1, ..way.clone() }.is_like(other));
                add_ratios(one, rates, |ratios| add("batch_cost", "×", Better::Lower, ratios));
            }
            if way.packed {
                let rows =
                    self.rates_of(|other| Way { packed: false, ..way.clone() }.is_like(other));
                add_ratios(Some(rates), rows.unwrap_or_default(), |ratios| {
                    add("packing_gain", "×", Better::Higher, ratios);
                });
            }
        }
        found
    }

    fn rates_of(&self, is_it: impl Fn(&Way) -> bool) -> Option<&[f64]> {
        let index = self.ways.iter().position(is_it)?;
        Some(&self.passes[index])
    }
}

impl Way {
    fn is_like(&self, other: &Self) -> bool {
        (self.kernels, self.batch, self.packed) == (other.kernels, other.batch, other.packed)
    }
}

/// Adds the ratios of each turn, if there are passes to compare.
fn add_ratios(above: Option<&[f64]>, below: &[f64], add: impl FnOnce(Vec<f64>)) {
    let pairs = above.unwrap_or_default().iter().zip(below);
    let ratios: Vec<f64> = pairs.map(|(above, below)| above / below).collect();
    if !ratios.is_empty() {
        add(ratios);
    }
}
