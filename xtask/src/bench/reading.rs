//! One line per table that says what to read out of it.

use benches::protocol::{Better, Suite};
use benches::{Backend, Contender};

use super::baseline::{Change, Verdict};
use super::format::range;
use super::results::{Ratio, Row};
use super::section::Section;

/// How the pool of this workspace did against the backend of reference, and against no pool at all.
pub(crate) fn of_section(section: &Section<'_>, usual: Contender) -> String {
    let reference = section.reference(usual);
    let is_subject = |name: &&str| {
        name.parse().is_ok_and(|contender: Contender| contender.backend() == Backend::Epoch)
    };
    let Some(subject) = section.backends().into_iter().find(is_subject) else {
        return "nothing to compare with".into();
    };
    let is_read = |row: &&Row| {
        row.backend == subject && (row.suite != Suite::Model || row.metric == "tokens_per_s")
    };
    let rows: Vec<&Row> = section.rows.iter().copied().filter(is_read).collect();
    if rows.iter().any(|row| row.metric.starts_with("of_ceiling")) {
        let (low, high) = extent(rows.iter().map(|row| row.median));
        return format!("{subject}: {} % of the read ceiling", range(low, high));
    }
    let mut others = vec![reference, Backend::Serial.into(), Backend::LlamaCpp.into()];
    others.dedup();
    let parts: Vec<String> =
        others.iter().filter_map(|other| against(&rows, &other.to_string())).collect();
    match parts.as_slice() {
        [] => "nothing to compare with".into(),
        parts => format!("{subject}: {}", parts.join("; ")),
    }
}

/// Such as `×0.26–0.75 of rayon (better in 3 of 5, …)`.
fn against(rows: &[&Row], other: &str) -> Option<String> {
    let ratios: Vec<(&Row, &Ratio)> =
        rows.iter().filter_map(|row| Some((*row, row.vs.get(other)?))).collect();
    let lower = ratios.first()?.0.better == Better::Lower;
    let (low, high) = extent(ratios.iter().map(|(_, ratio)| ratio.ratio));
    let verdicts = count(ratios.iter().map(|(_, ratio)| Verdict::of(ratio, lower)));
    Some(format!("×{} of {other} ({verdicts})", range(low, high)))
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// How many results changed, and which way.
pub(crate) fn of_changes(changes: &[&Change]) -> String {
    if changes.is_empty() {
        return "the earlier run has none of these results".into();
    }
    let lower = |change: &Change| change.row.better == Better::Lower;
    count(changes.iter().map(|change| Verdict::of(&change.ratio, lower(change))))
}

/// Such as `4 of 5 better, 1 worse`; what is neither is inside the noise.
fn count(verdicts: impl Iterator<Item = Verdict>) -> String {
    let verdicts: Vec<Verdict> = verdicts.collect();
    let number = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    format!(
        "{} of {} better, {} worse",
        number(Verdict::Better),
        verdicts.len(),
        number(Verdict::Worse)
    )
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::example;
    use super::*;

    #[test]
    fn the_reading_counts_cases() {
        let (results, _) = example();
        let section = &Section::all(&results)[0];
        let line = of_section(section, Backend::Rayon.into());
        assert_eq!(line, "epoch: ×0.012 of rayon (1 of 1 better, 0 worse)");
        assert_eq!(of_section(section, Backend::Serial.into()), "nothing to compare with");
    }
}
