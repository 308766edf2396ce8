//! Tables of the results: made once, printed on the terminal and set in the report.

use benches::Contender;
use benches::protocol::{Better, Suite};

use super::baseline::{Change, Verdict};
use super::format::{quantity, range, short};
use super::reading;
use super::results::{Results, Row};
use super::section::{Section, is_shown};

/// One table, ready for any medium.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// What to read out of it, on one line.
    pub(crate) reading: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// The columns behind the first one are alike: where they do not fit side by side, some may stand below.
    pub(crate) is_by_backend: bool,
}

/// A value, a line of detail below it, and what to think of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    pub(crate) value: String,
    pub(crate) detail: String,
    pub(crate) verdict: Option<Verdict>,
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self { value: value.into(), ..Self::default() }
    }
}

impl Table {
    /// A row per case, a column per backend.
    pub(crate) fn of_section(section: &Section<'_>, results: &Results, usual: Contender) -> Self {
        let backends = section.backends();
        let reference = section.reference(usual);
        let title = match reference == usual {
            true => section.title.clone(),
            false => format!("{}; ratios to {reference}", section.title),
        };
        let table_row = |case: &str| {
            let cells = backends.iter().map(|backend| {
                let is_it = |row: &&&Row| section.case(row) == case && row.backend == *backend;
                let row = section.rows.iter().find(is_it);
                row.map_or_else(Cell::default, |row| value_cell(results, row, reference))
            });
            std::iter::once(Cell::from(case)).chain(cells).collect()
        };
        Self {
            title,
            reading: reading::of_section(section, reference),
            header: std::iter::once(&"case").chain(&backends).map(|&name| name.into()).collect(),
            rows: section.cases().into_iter().map(table_row).collect(),
            is_by_backend: true,
        }
    }

    /// A row per result that an earlier run has as well.
    pub(crate) fn of_changes(changes: &[Change]) -> Self {
        let header = ["case", "metric", "backend", "before", "now", "ratio", ""];
        let shown: Vec<&Change> = changes.iter().filter(|c| is_shown(&c.row.metric)).collect();
        Self {
            title: "against the baseline".into(),
            reading: reading::of_changes(&shown),
            header: header.map(str::to_owned).to_vec(),
            rows: shown.into_iter().map(change_row).collect(),
            is_by_backend: false,
        }
    }
}

fn value_cell(results: &Results, row: &Row, reference: Contender) -> Cell {
    let mut value = quantity(row.median, &row.unit);
    if row.metric == "overhead_p50" {
        let like = Row { metric: "overhead_round_trips".into(), ..row.clone() };
        let found = results.find(&like).map(|row| format!(" ({})", short(row.median)));
        value += &found.unwrap_or_default();
    }
    if let Some(kind) = row.metric.strip_prefix("of_ceiling") {
        let ceiling = results.find(&Row { metric: format!("read_ceiling{kind}"), ..row.clone() });
        let detail = ceiling.map(|row| format!("of {}", quantity(row.median, &row.unit)));
        return Cell { value, detail: detail.unwrap_or_default(), verdict: None };
    }
    // Parts of a whole are no better or worse.
    if row.suite == Suite::Model && (row.metric == "dispatches" || row.metric.ends_with("_share")) {
        return value.as_str().into();
    }
    let Some(ratio) = row.vs.get(&reference.to_string()) else { return value.as_str().into() };
    let verdict = Verdict::of(ratio, row.better == Better::Lower);
    let mark = if verdict == Verdict::Noise { "~" } else { "" };
    let detail = format!("{mark}×{}", range(ratio.low, ratio.high));
    Cell { value, detail, verdict: Some(verdict) }
}

fn change_row(change: &Change) -> Vec<Cell> {
    let Change { row, old, ratio } = change;
    let verdict = Verdict::of(ratio, row.better == Better::Lower);
    let judged =
        Cell { value: verdict.word().into(), detail: String::new(), verdict: Some(verdict) };
    vec![
        row.case.as_str().into(),
        row.metric.as_str().into(),
        row.backend.as_str().into(),
        quantity(*old, &row.unit).as_str().into(),
        quantity(row.median, &row.unit).as_str().into(),
        format!("×{}", range(ratio.low, ratio.high)).as_str().into(),
        judged,
    ]
}

#[cfg(test)]
mod tests {
    use benches::Backend;

    use super::super::results::tests::example;
    use super::*;

    #[test]
    fn a_table_has_a_row_per_case_and_a_column_per_backend() {
        let (results, _) = example();
        let section = &Section::all(&results)[0];
        let table = Table::of_section(section, &results, Backend::Rayon.into());
        assert_eq!(table.header, ["case", "rayon", "epoch"]);
        assert_eq!(table.rows.len(), 1);
        let epoch = &table.rows[0][2];
        assert_eq!((epoch.value.as_str(), epoch.detail.as_str()), ("170 ns", "×0.008–0.018"));
        assert_eq!(epoch.verdict, Some(Verdict::Better));
        assert_eq!(table.rows[0][1], Cell::from("14.0 µs"));
    }

    #[test]
    fn an_overhead_has_its_round_trips_behind_it() {
        let (mut results, _) = example();
        let epoch = results.results[1].clone();
        let metric = "overhead_round_trips".into();
        results.results.push(Row { metric, median: 1.62, ..epoch.clone() });
        assert_eq!(value_cell(&results, &epoch, Backend::Rayon.into()).value, "170 ns (1.6)");
    }

    #[test]
    fn whole_times_name_what_they_are_compared_with() {
        let (mut results, _) = example();
        for row in &mut results.results {
            row.metric = "time_mean".into();
        }
        let serial = Row { backend: "serial".into(), ..results.results[0].clone() };
        results.results.push(serial);
        let table =
            |usual: Backend| Table::of_section(&Section::all(&results)[0], &results, usual.into());
        assert!(table(Backend::Rayon).title.ends_with("; ratios to serial"));
        assert!(!table(Backend::Serial).title.contains("ratios"));
    }

    #[test]
    fn the_share_of_the_ceiling_names_the_ceiling() {
        let (mut results, _) = example();
        let row = results.results[0].clone();
        let ceiling =
            Row { metric: "read_ceiling".into(), unit: "GB/s".into(), median: 20.0, ..row.clone() };
        results.results.push(ceiling);
        let share = Row { metric: "of_ceiling".into(), unit: "%".into(), median: 91.0, ..row };
        let cell = value_cell(&results, &share, Backend::Rayon.into());
        assert_eq!((cell.value.as_str(), cell.detail.as_str()), ("91.0 %", "of 20.0 GB/s"));
    }
}
