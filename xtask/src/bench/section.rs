//! Which results stand together: one metric of one suite, and of one model shape where there is one.

use benches::protocol::Suite;
use benches::{Backend, Contender, ModelShape};

use super::results::{Results, Row};

/// A metric that has a table and a plot of its own. The rest is in `results.json`.
#[derive(Debug)]
struct Shown {
    suite: Suite,
    metric: &'static str,
    title: &'static str,
}

/// The metrics shown, in order.
const SHOWN: &[Shown] = &[
    Shown {
        suite: Suite::Dispatch,
        metric: "overhead_p50",
        title: "dispatch: time of a job over its ideal, median (lower is better)",
    },
    Shown {
        suite: Suite::Dispatch,
        metric: "overhead_mean",
        title: "dispatch: time of a job over its ideal, mean (lower is better)",
    },
    Shown {
        suite: Suite::Dispatch,
        metric: "time_mean",
        title: "dispatch: whole time of a job, mean (lower is better)",
    },
    Shown {
        suite: Suite::Matvec,
        metric: "bandwidth",
        title: "matvec: weights streamed per second (higher is better)",
    },
    Shown {
        suite: Suite::Matvec,
        metric: "of_ceiling",
        title: "matvec: per cent of what the same threads can read",
    },
    Shown {
        suite: Suite::Matvec,
        metric: "of_ceiling_in_parts",
        title: "matvec: per cent of what they can read in the same dispatches and parts",
    },
    Shown {
        suite: Suite::Matvec,
        metric: "batch_cost",
        title: "matvec: time of so many inputs over the time of one (lower is better)",
    },
    Shown {
        suite: Suite::Matvec,
        metric: "packing_gain",
        title: "matvec: speed of packed tiles over that of rows (higher is better)",
    },
    Shown {
        suite: Suite::Decode,
        metric: "tokens_per_s",
        title: "decode: tokens per second (higher is better)",
    },
    Shown {
        suite: Suite::Decode,
        metric: "of_ceiling",
        title: "decode: per cent of what the same threads can read",
    },
    Shown {
        suite: Suite::Decode,
        metric: "of_ceiling_in_parts",
        title: "decode: per cent of what they can read in the same dispatches and parts",
    },
    Shown {
        suite: Suite::Decode,
        metric: "packing_gain",
        title: "decode: speed with packed matrices over that with rows (higher is better)",
    },
];

/// The metrics of a model's file, which stand in one table, and what they are called there. The first one is what the others
/// explain.
const OF_MODEL: &[(&str, &str)] = &[
    ("tokens_per_s", "tokens/s"),
    ("cpu_ms_per_token", "CPU time of a token"),
    ("bandwidth", "weights read"),
    ("of_ceiling", "of what can be read"),
    ("dispatches", "dispatches of a token"),
    ("matvec_share", "time in matvecs"),
    ("dispatch_share", "in dispatches"),
    ("attention_share", "in attention"),
    ("rest_share", "in the rest"),
    ("packing_gain", "speed over that with rows"),
];

/// Whether a metric is one of those shown.
pub(crate) fn is_shown(metric: &str) -> bool {
    let of_model = OF_MODEL.iter().map(|(metric, _)| *metric);
    SHOWN.iter().map(|shown| shown.metric).chain(of_model).any(|shown| shown == metric)
}

/// The results of one table and one plot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section<'a> {
    pub(crate) title: String,
    pub(crate) rows: Vec<&'a Row>,
    /// What the names of its cases have in common.
    prefix: String,
}

impl<'a> Section<'a> {
    /// Every section that has results.
    pub(crate) fn all(results: &'a Results) -> Vec<Self> {
        let shown = SHOWN.iter().flat_map(|shown| sections_of(results, shown));
        shown.chain(sections_of_models(results)).collect()
    }

    /// The name of a row's case without what all of them share; of a model's file, what its metric is called.
    pub(crate) fn case(&self, row: &'a Row) -> &'a str {
        match OF_MODEL.iter().find(|(metric, _)| row.suite == Suite::Model && *metric == row.metric)
        {
            Some((_, name)) => name,
            None => row.case.strip_prefix(&self.prefix).unwrap_or(&row.case),
        }
    }

    /// What can stand on one axis: all of it, or of a model's file the first metric.
    pub(crate) fn on_one_axis(&self) -> Self {
        let is_on_it = |row: &&Row| row.suite != Suite::Model || row.metric == OF_MODEL[0].0;
        Self { rows: self.rows.iter().copied().filter(is_on_it).collect(), ..self.clone() }
    }

    /// The backend that values are compared with: `usual`, but serial for whole times, which say whether a pool pays at all.
    pub(crate) fn reference(&self, usual: Contender) -> Contender {
        let is_time = self.rows.iter().any(|row| row.metric == "time_mean");
        let has_serial = self.rows.iter().any(|row| row.backend == Backend::Serial.name());
        if is_time && has_serial { Backend::Serial.into() } else { usual }
    }

    /// The cases, short, in order.
    pub(crate) fn cases(&self) -> Vec<&'a str> {
        distinct(self.rows.iter().map(|row| self.case(row)))
    }

    /// The backends, in order.
    pub(crate) fn backends(&self) -> Vec<&'a str> {
        distinct(self.rows.iter().map(|row| row.backend.as_str()))
    }
}

fn sections_of<'a>(results: &'a Results, shown: &Shown) -> Vec<Section<'a>> {
    let rows = results.results.iter();
    let rows: Vec<&Row> =
        rows.filter(|row| row.suite == shown.suite && row.metric == shown.metric).collect();
    let prefixes = match shown.suite {
        Suite::Dispatch => vec![(String::new(), shown.title.to_owned())],
        Suite::Matvec | Suite::Decode | Suite::Model => ModelShape::ALL
            .iter()
            .map(|shape| (format!("{}-", shape.slug()), format!("{}, {shape}", shown.title)))
            .collect(),
    };
    let sections = prefixes.into_iter().map(|(prefix, title)| {
        let rows = rows.iter().filter(|row| row.case.starts_with(&prefix)).copied().collect();
        Section { title, rows, prefix }
    });
    sections.filter(|section| !section.rows.is_empty()).collect()
}

/// A section for each model's file: all its metrics that are shown.
fn sections_of_models(results: &Results) -> Vec<Section<'_>> {
    let of_models = || results.results.iter().filter(|row| row.suite == Suite::Model);
    let section = |case: &str| {
        let rows = OF_MODEL.iter().flat_map(|(metric, _)| {
            of_models().filter(move |row| row.case == case && row.metric == *metric)
        });
        let title = format!("decode of {case}: what a token costs, and where its time goes");
        Section { title, rows: rows.collect(), prefix: String::new() }
    };
    distinct(of_models().map(|row| row.case.as_str())).into_iter().map(section).collect()
}

/// Each item once, in order of first appearance.
fn distinct<'a>(items: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::example;
    use super::*;

    #[test]
    fn each_shape_has_a_section_with_short_case_names() {
        let (mut results, _) = example();
        let row = results.results[0].clone();
        for case in ["smollm2-135m-separate", "smollm2-135m-grouped", "llama-3.2-1b-separate"] {
            let metric = "tokens_per_s".into();
            let (suite, case) = (Suite::Decode, case.into());
            results.results.push(Row { suite, case, metric, ..row.clone() });
        }
        let sections = Section::all(&results);
        let titles: Vec<&str> = sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "dispatch: time of a job over its ideal, median (lower is better)",
                "decode: tokens per second (higher is better), SmolLM2-135M",
                "decode: tokens per second (higher is better), Llama-3.2-1B",
            ]
        );
        assert_eq!(sections[0].cases(), ["2us-x2-gap20us"]);
        assert_eq!(sections[0].backends(), ["rayon", "epoch"]);
        assert_eq!(sections[1].cases(), ["separate", "grouped"]);
    }

    #[test]
    fn the_metrics_of_a_models_file_stand_together() {
        let (mut results, _) = example();
        let row = results.results[0].clone();
        for (metric, backend) in [
            ("dispatch_share", "epoch"),
            ("read_ceiling", "epoch"),
            ("tokens_per_s", "epoch"),
            ("tokens_per_s", "llama.cpp"),
        ] {
            let (suite, case) = (Suite::Model, "some-file".into());
            let (metric, backend) = (metric.into(), backend.into());
            results.results.push(Row { suite, case, metric, backend, ..row.clone() });
        }
        let sections = Section::all(&results);
        assert_eq!(sections.len(), 2);
        assert!(sections[1].title.contains("some-file"));
        assert_eq!(sections[1].cases(), ["tokens/s", "in dispatches"]);
        assert_eq!(sections[1].backends(), ["epoch", "llama.cpp"]);
        assert_eq!(sections[1].on_one_axis().cases(), ["tokens/s"]);
        assert_eq!(sections[0].on_one_axis(), sections[0]);
    }

    #[test]
    fn whole_times_are_compared_with_serial() {
        let (mut results, _) = example();
        let overhead = results.results[0].clone();
        results.results.push(Row { metric: "time_mean".into(), ..overhead.clone() });
        let references = |results: &Results| {
            let sections = Section::all(results);
            sections
                .iter()
                .map(|s| s.reference(Backend::Rayon.into()).backend())
                .collect::<Vec<_>>()
        };
        assert_eq!(references(&results), [Backend::Rayon, Backend::Rayon], "no serial");
        results.results.push(Row {
            metric: "time_mean".into(),
            backend: "serial".into(),
            ..overhead
        });
        assert_eq!(references(&results), [Backend::Rayon, Backend::Serial]);
    }
}
