//! `cargo xtask bench --check DIR`: are the results of a run whole and consistent?
//!
//! This says nothing about speed: on a machine that others use too, a number proves little, but a hole
//! in the results proves a mistake.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::ensure;

use super::results::{Results, Row};

/// Reads `results.json` in `folder`, checks every row, and says what is in it.
pub(crate) fn run(folder: &Path) -> anyhow::Result<()> {
    let results = Results::load(folder)?;
    check(&results)?;
    let suites: BTreeSet<&str> = results.results.iter().map(|row| row.suite.name()).collect();
    let backends = backends(&results.results);
    println!(
        "{}: {} results of {} rounds, whole: {} on {}",
        folder.join("results.json").display(),
        results.results.len(),
        results.rounds,
        suites.into_iter().collect::<Vec<_>>().join(", "),
        backends.into_iter().collect::<Vec<_>>().join(", ")
    );
    Ok(())
}

fn backends(rows: &[Row]) -> BTreeSet<&str> {
    rows.iter().map(|row| row.backend.as_str()).collect()
}

/// Every case has every backend, every row has a ratio to every other, and every interval is one.
fn check(results: &Results) -> anyhow::Result<()> {
    ensure!(!results.results.is_empty(), "there are no results");
    ensure!(results.rounds > 0, "there are results of no rounds");
    let all = backends(&results.results);
    for row in &results.results {
        let name = format!("{} {} {} on {}", row.suite, row.case, row.metric, row.backend);
        check_interval(&name, row.low, row.median, row.high)?;
        for &backend in &all {
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
    use super::super::results::tests::example;
    use super::*;

    #[test]
    fn a_whole_run_passes() {
        check(&example().0).unwrap();
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
