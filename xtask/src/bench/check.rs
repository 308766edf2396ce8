//! `cargo xtask bench --check DIR`: are the results of a run whole and consistent?
//!
//! This says nothing about speed: on a machine that others use too, a number proves little, but a hole
//! in the results proves a mistake.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, ensure};
use benches::Contender;
use benches::dispatch::{self, DispatchCase, ROUND_TRIP_CASE, ROUND_TRIP_METRIC};
use benches::protocol::Suite;

use super::results::{Results, Row};
use crate::output::print;

/// What is known of an engine of others.
const ENGINE_METRICS: &[&str] = &["tokens_per_s", "cpu_ms_per_token"];

/// Reads `results.json` in `folder`, and checks that it has every case of these suites (all, if none is named) on every one of
/// these contenders, and that each row is sound.
pub(crate) fn run(folder: &Path, suites: &[Suite], wanted: &[Contender]) -> anyhow::Result<()> {
    let results = Results::load(folder)?;
    let suites = if suites.is_empty() { Suite::ALL } else { suites };
    check_presence(&results, suites, wanted)?;
    check(&results)?;
    let backends = backends(&results.results);
    print(&format!(
        "{}: {} results of {} rounds, whole: {} on {}",
        folder.join("results.json").display(),
        results.results.len(),
        results.rounds,
        suites.iter().map(|suite| suite.name()).collect::<Vec<_>>().join(", "),
        backends.into_iter().collect::<Vec<_>>().join(", ")
    ));
    Ok(())
}

fn backends(rows: &[Row]) -> BTreeSet<&str> {
    rows.iter().map(|row| row.backend.as_str()).collect()
}

/// What the names of a suite's cases contain, each with a metric it has.
fn expected(suite: Suite, threads: usize) -> Vec<(String, &'static str)> {
    let each = |cases: &[&str], metrics: &[&'static str]| {
        let pairs =
            cases.iter().flat_map(|&case| metrics.iter().map(move |&m| (case.to_owned(), m)));
        pairs.collect::<Vec<_>>()
    };
    match suite {
        Suite::Dispatch => {
            let cases: Vec<String> =
                DispatchCase::all(threads).iter().map(DispatchCase::name).collect();
            let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
            let mut pairs = each(&cases, dispatch::METRICS);
            pairs.push((ROUND_TRIP_CASE.into(), ROUND_TRIP_METRIC));
            pairs
        }
        Suite::Matvec => each(
            &["-qkv-", "-gate_up-", "-down-", "-head-"],
            &[
                "bandwidth",
                "of_ceiling",
                "read_ceiling",
                "of_ceiling_in_parts",
                "read_ceiling_in_parts",
            ],
        ),
        Suite::Decode => each(
            &["-separate", "-grouped"],
            &[
                "tokens_per_s",
                "bandwidth",
                "of_ceiling",
                "read_ceiling",
                "of_ceiling_in_parts",
                "read_ceiling_in_parts",
            ],
        ),
        // Whatever the file is called. CPU time is not known everywhere.
        Suite::Model => each(
            &[""],
            &[
                "tokens_per_s",
                "bandwidth",
                "of_ceiling",
                "read_ceiling",
                "dispatches",
                "matvec_share",
                "dispatch_share",
                "rest_share",
            ],
        ),
    }
}

/// Whether a contender can tell a metric of a case: an engine of others does not say what goes on in it, and packs as it likes.
fn tells(contender: Contender, case: &str, metric: &str) -> bool {
    !contender.backend().is_engine()
        || ENGINE_METRICS.contains(&metric) && !case.ends_with("-packed")
}

/// Every case and metric that these suites have is there, on each of these contenders.
fn check_presence(results: &Results, suites: &[Suite], wanted: &[Contender]) -> anyhow::Result<()> {
    for &suite in suites {
        for (case, metric) in expected(suite, results.machine.threads) {
            for contender in wanted.iter().filter(|contender| tells(**contender, &case, metric)) {
                let backend = contender.to_string();
                let is_it = |row: &&Row| {
                    row.suite == suite
                        && row.case.contains(&case)
                        && row.metric == metric
                        && row.backend == backend
                };
                let found = results.results.iter().find(is_it);
                found.with_context(|| format!("{suite} {case} {metric} on {backend}: missing"))?;
            }
        }
    }
    Ok(())
}

/// Every case has every backend, every row has a ratio to every other, and every interval is one.
fn check(results: &Results) -> anyhow::Result<()> {
    ensure!(!results.results.is_empty(), "there are no results");
    ensure!(results.rounds > 0, "there are results of no rounds");
    let all = backends(&results.results);
    for row in &results.results {
        let name = format!("{} {} {} on {}", row.suite, row.case, row.metric, row.backend);
        check_interval(&name, row.low, row.median, row.high)?;
        for &backend in all
            .iter()
            .filter(|name| name.parse().map_or(true, |c| tells(c, &row.case, &row.metric)))
        {
            let like = Row { backend: backend.into(), ..row.clone() };
            ensure!(results.find(&like).is_some(), "{name}: there is none on {backend}");
            match row.vs.get(backend) {
                Some(ratio) => {
                    let name = format!("{name}, ratio to {backend}");
                    check_interval(&name, ratio.low, ratio.ratio, ratio.high)?;
                }
                None => ensure!(backend == row.backend, "{name}: no ratio to {backend}"),
            }
        }
    }
    Ok(())
}

fn check_interval(name: &str, low: f64, median: f64, high: f64) -> anyhow::Result<()> {
    let ordered = low <= median && median <= high;
    ensure!(ordered && low.is_finite() && high.is_finite(), "{name}: {low}, {median}, {high}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use benches::Backend;

    use super::super::results::tests::example;
    use super::*;

    #[test]
    fn a_whole_run_passes() {
        check(&example().0).unwrap();
    }

    #[test]
    fn what_was_asked_for_must_be_there() {
        let (results, _) = example();
        let threads = results.machine.threads;
        for suite in Suite::ALL.iter().copied().chain([Suite::Model]) {
            let pairs = expected(suite, threads);
            assert!(
                check_presence(&results, &[suite], &[Backend::Epoch.into()]).is_err(),
                "{suite}"
            );
            let mut whole = results.clone();
            whole.results = pairs
                .into_iter()
                .map(|(case, metric)| Row {
                    suite,
                    case: format!("model{case}"),
                    metric: metric.into(),
                    backend: "epoch".into(),
                    ..results.results[0].clone()
                })
                .collect();
            assert!(check_presence(&whole, &[suite], &[Backend::Epoch.into()]).is_ok(), "{suite}");
            assert!(check_presence(&whole, &[suite], &[Backend::Rayon.into()]).is_err(), "{suite}");
            whole.results.pop();
            assert!(check_presence(&whole, &[suite], &[Backend::Epoch.into()]).is_err(), "{suite}");
        }
    }

    #[test]
    fn engines_of_others_need_not_tell_everything() {
        let engine = Backend::LlamaCpp.into();
        assert!(tells(engine, "file", "tokens_per_s"));
        assert!(!tells(engine, "file", "matvec_share"));
        assert!(!tells(engine, "file-packed", "tokens_per_s"));
        assert!(tells(Backend::Epoch.into(), "file-packed", "matvec_share"));
    }

    #[test]
    fn holes_and_nonsense_are_found() {
        let spoilers: [fn(&mut Results); 6] = [
            |results| results.results.clear(),
            |results| results.rounds = 0,
            |results| results.results[1].case = "another".into(),
            |results| results.results[1].vs.clear(),
            |results| results.results[0].low = results.results[0].high + 1.0,
            |results| results.results[0].median = f64::NAN,
        ];
        for (index, spoil) in spoilers.into_iter().enumerate() {
            let (mut results, _) = example();
            spoil(&mut results);
            assert!(check(&results).is_err(), "spoiler {index}");
        }
    }
}
