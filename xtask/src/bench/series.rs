//! What the processes reported, sorted by case, and checked against each other.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{bail, ensure};
use benches::Contender;
use benches::protocol::{Better, Report, Suite};
use benches::stats::median;

/// One metric of one case: a value per contender and round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) suite: Suite,
    pub(crate) case: String,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    /// The resolution of each process.
    pub(crate) resolutions: Vec<f64>,
    /// Contenders in the order in which they first reported, each with one value per round.
    pub(crate) values: Vec<(Contender, Vec<f64>)>,
}

/// Everything measured so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeriesSet {
    pub(crate) all: Vec<Series>,
    pub(crate) isa: String,
    pub(crate) notes: Vec<String>,
    checksums: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl SeriesSet {
    /// Takes in what one process reported.
    pub(crate) fn add(&mut self, suite: Suite, contender: Contender, report: Report) {
        for (case, checksum) in report.checksums {
            let seen = self.checksums.entry(case).or_default();
            seen.entry(checksum).or_default().insert(contender.to_string());
        }
        for note in report.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        // Engines of others do not say what their kernels are for.
        if !report.isa.is_empty() {
            self.isa = report.isa;
        }
        for measurement in report.measurements {
            let found = self.all.iter().position(|series| {
                series.suite == suite
                    && series.case == measurement.case
                    && series.metric == measurement.metric
            });
            let index = found.unwrap_or_else(|| {
                self.all.push(Series {
                    suite,
                    case: measurement.case,
                    metric: measurement.metric,
                    unit: measurement.unit,
                    better: measurement.better,
                    resolutions: Vec::new(),
                    values: Vec::new(),
                });
                self.all.len() - 1
            });
            self.all[index].push(contender, measurement.value, measurement.resolution);
        }
    }

    /// Every contender must have computed the same bits, and every value must be a number.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (case, by_checksum) in &self.checksums {
            if by_checksum.len() > 1 {
                let groups: Vec<String> = by_checksum
                    .iter()
                    .map(|(checksum, names)| {
                        let names: Vec<&str> = names.iter().map(String::as_str).collect();
                        format!("{} {checksum}", names.join(", "))
                    })
                    .collect();
                bail!("the backends disagree about the bits of {case}: {}", groups.join("; "));
            }
        }
        for series in &self.all {
            for (contender, values) in &series.values {
                ensure!(
                    values.iter().all(|value| value.is_finite()),
                    "{} of {} on {contender} is not a number",
                    series.metric,
                    series.case
                );
            }
        }
        Ok(())
    }
}

impl Series {
    /// What ratios take for zero (see `Estimate::of_ratios`): the median over the processes, as one of
    /// them in a bad moment must not blur all others.
    pub(crate) fn resolution(&self) -> f64 {
        if self.resolutions.is_empty() { 0.0 } else { median(&self.resolutions) }
    }

    fn push(&mut self, contender: Contender, value: f64, resolution: f64) {
        self.resolutions.push(resolution);
        match self.values.iter_mut().find(|(known, _)| *known == contender) {
            Some((_, values)) => values.push(value),
            None => self.values.push((contender, vec![value])),
        }
    }
}

#[cfg(test)]
mod tests {
    use benches::Backend;
    use benches::protocol::Measurement;

    use super::*;

    fn report(value: f64, checksum: &str) -> Report {
        let measurement = Measurement {
            case: "tiny-grouped".into(),
            metric: "tokens_per_s".into(),
            unit: "tokens/s".into(),
            better: Better::Higher,
            value,
            resolution: value / 100.0,
            samples: vec![value],
        };
        Report {
            participants: 2,
            isa: "scalar".into(),
            measurements: vec![measurement],
            checksums: BTreeMap::from([("tiny".into(), checksum.into())]),
            notes: vec!["a note".into()],
        }
    }

    #[test]
    fn values_are_sorted_by_contender_and_round() {
        let mut set = SeriesSet::default();
        for (backend, value) in [
            (Backend::Epoch, 1.0),
            (Backend::Rayon, 2.0),
            (Backend::Rayon, 3.0),
            (Backend::Epoch, 4.0),
        ] {
            set.add(Suite::Decode, backend.into(), report(value, "ab"));
        }
        assert_eq!(set.all.len(), 1);
        assert_eq!(
            set.all[0].values,
            [(Backend::Epoch.into(), vec![1.0, 4.0]), (Backend::Rayon.into(), vec![2.0, 3.0])]
        );
        assert_eq!(set.all[0].resolution(), 0.025);
        assert_eq!(set.notes, ["a note"]);
        assert!(set.check().is_ok());
    }

    #[test]
    fn other_bits_are_an_error_that_names_the_backends() {
        let mut set = SeriesSet::default();
        set.add(Suite::Decode, Backend::Serial.into(), report(1.0, "ab"));
        set.add(Suite::Decode, Backend::Epoch.into(), report(1.0, "cd"));
        let error = set.check().unwrap_err().to_string();
        assert!(error.contains("serial ab") && error.contains("epoch cd"), "{error}");
    }

    #[test]
    fn a_value_that_is_no_number_is_an_error() {
        let mut set = SeriesSet::default();
        set.add(Suite::Decode, Backend::Serial.into(), report(f64::NAN, "ab"));
        assert!(set.check().is_err());
    }
}
