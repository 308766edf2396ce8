//! `results.json`: what was measured, where and with what.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use benches::dispatch::ROUND_TRIP_METRIC;
use benches::protocol::{Better, Suite};
use benches::stats::median;
use serde::{Deserialize, Serialize};

use super::machine::Machine;
use super::series::{Series, SeriesSet};
use super::stats::Estimate;
use crate::cli::UsageError;
use crate::workspace;

/// Version of the file; a reader refuses any other.
pub(crate) const SCHEMA: u32 = 1;

/// A read ceiling that moves by a larger share between rounds is no yardstick.
const STEADY: f64 = 0.10;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) schema: u32,
    pub(crate) machine: Machine,
    /// Commit of the working tree, with `-dirty` if it had changes; `unknown` outside a checkout.
    pub(crate) commit: String,
    pub(crate) rustc: String,
    pub(crate) rounds: usize,
    pub(crate) results: Vec<Row>,
}

/// One metric of one case on one backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) suite: Suite,
    pub(crate) case: String,
    /// The contender's name.
    pub(crate) backend: String,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// This backend's value over that of each other backend, paired by round.
    pub(crate) vs: BTreeMap<String, Ratio>,
}

/// A ratio and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ratio {
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Ratio {
    /// Whether the interval leaves open which of the two is better.
    pub(crate) fn is_noise(&self) -> bool {
        Estimate { median: self.ratio, low: self.low, high: self.high }.is_noise()
    }
}

impl From<Estimate> for Ratio {
    fn from(estimate: Estimate) -> Self {
        Self {
            ratio: significant(estimate.median),
            low: significant(estimate.low),
            high: significant(estimate.high),
        }
    }
}

impl Results {
    /// Rows of all series, and the facts around them.
    pub(crate) fn new(machine: Machine, rounds: usize, series: &SeriesSet) -> Self {
        Self {
            schema: SCHEMA,
            machine,
            commit: commit(),
            rustc: first_line(Command::new("rustc").arg("--version")),
            rounds,
            results: series.all.iter().flat_map(rows).collect(),
        }
    }

    /// The text of `results.json`.
    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }

    /// Reads the file of an earlier run in `folder`.
    pub(crate) fn load(folder: &Path) -> Result<Self, UsageError> {
        let path = folder.join("results.json");
        let fail = |what: String| UsageError(format!("{}: {what}", path.display()));
        let text = fs::read_to_string(&path).map_err(|error| fail(error.to_string()))?;
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| fail(format!("not JSON: {error}")))?;
        match json.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => return Err(fail(format!("schema {schema} where {SCHEMA} is needed"))),
            None => return Err(fail("no schema in it: not the results of a bench".into())),
        }
        serde_json::from_value(json).map_err(|error| fail(error.to_string()))
    }

    /// A note if the read ceiling moved so much that percentages of it say little.
    pub(crate) fn ceiling_note(&self) -> Option<String> {
        let ceilings = self.results.iter().filter(|row| row.metric == "read_ceiling");
        let spread = ceilings.map(|row| (row.high - row.low) / row.median).fold(0.0, f64::max);
        (spread > STEADY).then(|| {
            format!(
                "the read ceiling itself moved by up to {:.0} % between rounds: per cents of it are \
                 no better than that",
                100.0 * spread
            )
        })
    }

    /// What a line round trip took, which is the unit of overheads and no property of a backend.
    pub(crate) fn round_trip_note(&self) -> Option<String> {
        let values: Vec<f64> = self
            .results
            .iter()
            .filter(|row| row.metric == ROUND_TRIP_METRIC)
            .map(|row| row.median)
            .collect();
        (!values.is_empty()).then(|| {
            let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
            let highest = values.iter().copied().fold(0.0, f64::max);
            format!(
                "a line round trip between two CPUs took {:.0} ns ({lowest:.0} to {highest:.0} in the processes of the \
                 backends); overheads in round trips stand behind the nanoseconds",
                median(&values)
            )
        })
    }

    /// The row of one metric of one case on one backend.
    pub(crate) fn find(&self, like: &Row) -> Option<&Row> {
        self.results.iter().find(|row| {
            row.suite == like.suite
                && row.case == like.case
                && row.metric == like.metric
                && row.backend == like.backend
        })
    }
}

/// One row per contender of a series.
fn rows(series: &Series) -> impl Iterator<Item = Row> {
    series.values.iter().map(move |(contender, values)| {
        let estimate = Ratio::from(Estimate::of(values));
        let others = series.values.iter().filter(move |(other, _)| other != contender);
        let vs = others.map(|(other, others_values)| {
            let ratio = Estimate::of_ratios(values, others_values, series.resolution());
            (other.to_string(), ratio.into())
        });
        Row {
            suite: series.suite,
            case: series.case.clone(),
            backend: contender.to_string(),
            metric: series.metric.clone(),
            unit: series.unit.clone(),
            better: series.better,
            median: estimate.ratio,
            low: estimate.low,
            high: estimate.high,
            vs: vs.collect(),
        }
    })
}

/// Rounds to five significant digits: what stands behind them is not measured.
fn significant(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("--no-optional-locks").args(arguments).current_dir(workspace::root());
        first_line(&mut command)
    };
    let commit = git(&["rev-parse", "HEAD"]);
    let is_clean = git(&["status", "--porcelain"]).is_empty();
    match commit.as_str() {
        "" => "unknown".into(),
        commit if is_clean => commit.into(),
        commit => format!("{commit}-dirty"),
    }
}

/// The first line a command prints, or nothing if it cannot be run or fails.
fn first_line(command: &mut Command) -> String {
    let output = command.output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default().lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use benches::Backend;

    use super::*;

    /// Two backends, three rounds, one dispatch case.
    pub(crate) fn example() -> (Results, SeriesSet) {
        let series = Series {
            suite: Suite::Dispatch,
            case: "2us-x2-gap20us".into(),
            metric: "overhead_p50".into(),
            unit: "ns".into(),
            better: Better::Lower,
            resolutions: vec![20.0],
            values: vec![
                (Backend::Rayon.into(), vec![14_000.0, 20_000.0, 10_000.0]),
                (Backend::Epoch.into(), vec![170.0, 168.0, 177.0]),
            ],
        };
        let mut set = SeriesSet::default();
        set.all.push(series);
        (Results::new(Machine::default(), 3, &set), set)
    }

    #[test]
    fn rows_have_medians_and_paired_ratios() {
        let (results, _) = example();
        let epoch = &results.results[1];
        assert_eq!((epoch.median, epoch.low, epoch.high), (170.0, 168.0, 177.0));
        // 170/14000, 168/20000, 177/10000, to five digits
        let expected = Ratio { ratio: 0.012_143, low: 0.0084, high: 0.0177 };
        assert_eq!(epoch.vs["rayon"], expected);
        assert!(!epoch.vs.contains_key("epoch"));
    }

    #[test]
    fn the_file_survives_the_trip_and_has_the_agreed_keys() {
        let (results, _) = example();
        let text = results.to_json().unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results);

        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let keys = |value: &serde_json::Value| {
            value.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(keys(&json), ["commit", "machine", "results", "rounds", "rustc", "schema"]);
        let row = &json["results"][1];
        let expected =
            ["backend", "better", "case", "high", "low", "median", "metric", "suite", "unit", "vs"];
        assert_eq!(keys(row), expected);
        assert_eq!((&row["suite"], &row["better"]), (&"dispatch".into(), &"lower".into()));
        assert_eq!(keys(&row["vs"]["rayon"]), ["high", "low", "ratio"]);
    }

    #[test]
    fn a_baseline_that_cannot_be_used_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        assert!(Results::load(folder.path()).is_err(), "no file");
        for text in ["", "{", "{}", r#"{"schema": 2}"#, r#"{"schema": 1}"#, "[1]"] {
            fs::write(&path, text).unwrap();
            assert!(Results::load(folder.path()).is_err(), "{text}");
        }
        let (results, _) = example();
        fs::write(&path, results.to_json().unwrap()).unwrap();
        assert_eq!(Results::load(folder.path()).unwrap(), results);
    }

    #[test]
    fn a_ceiling_that_moves_is_noted() {
        let (mut results, _) = example();
        assert_eq!(results.ceiling_note(), None);
        let row = Row { metric: "read_ceiling".into(), ..results.results[1].clone() };
        results.results.push(Row { median: 20.0, low: 19.5, high: 20.5, ..row.clone() });
        assert_eq!(results.ceiling_note(), None);
        results.results.push(Row { median: 20.0, low: 15.0, high: 20.0, ..row });
        assert!(results.ceiling_note().is_some_and(|note| note.contains("25 %")));
    }

    #[test]
    fn the_round_trip_is_noted_once_for_all_backends() {
        let (mut results, _) = example();
        assert_eq!(results.round_trip_note(), None);
        let row = Row { metric: ROUND_TRIP_METRIC.into(), ..results.results[1].clone() };
        for median in [100.0, 130.0, 105.0] {
            results.results.push(Row { median, ..row.clone() });
        }
        let note = results.round_trip_note().unwrap();
        assert!(["105 ns", "100 to 130"].iter().all(|part| note.contains(part)), "{note}");
    }

    #[test]
    fn five_digits_are_kept() {
        assert_eq!(significant(123_456.789), 123_460.0);
        assert_eq!(significant(-0.000_123_456), -0.000_123_46);
        assert_eq!(significant(0.0), 0.0);
    }
}
