//! `report.html`: plots, tables, the machine and how to repeat it, in one file without outside references.

use std::fmt::Write;

use benches::protocol::Suite;

use super::baseline::{Verdict, caveats};
use super::model::Model;
use super::plot;
use super::results::Results;
use super::section::Section;
use super::settings::{Settings, Task, unique};
use super::stats::coverage;
use super::table::{Cell, Table};

const STYLE: &str = include_str!("report.css");

/// The whole page. `changes` is the comparison with the baseline, if there is one.
pub(crate) fn html(
    results: &Results,
    sections: &[(Section<'_>, Table)],
    changes: Option<&Table>,
    settings: &Settings,
) -> anyhow::Result<String> {
    let mut page = String::new();
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>xtask bench: {cpu}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>What the pool is worth here</h1>\n<p class=\"soft\">{cpu}, {threads} threads per pool, \
         {rounds} rounds</p>\n",
        cpu = escape(&results.machine.cpu),
        threads = results.machine.threads,
        rounds = results.rounds,
    )?;
    page.push_str(&legend(settings));
    for (section, table) in sections {
        page.push_str(&html_section(table, &plot::svg(&section.on_one_axis())?));
    }
    if let Some(table) = changes {
        page.push_str(&html_section(table, ""));
    }
    page.push_str(&method(results, settings));
    page.push_str(&machine(results, settings));
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

/// The colours of the contenders.
fn legend(settings: &Settings) -> String {
    let entries = settings.contenders.iter().map(|contender| {
        let plotters::style::RGBColor(red, green, blue) = plot::color(&contender.to_string());
        format!("<span><i style=\"background:rgb({red},{green},{blue})\"></i>{contender}</span>")
    });
    format!("<div class=\"legend\">{}</div>\n", entries.collect::<String>())
}

/// Heading, reading, plot and table.
fn html_section(table: &Table, plot: &str) -> String {
    format!(
        "<h2>{}</h2>\n<p class=\"reading\">{}</p>\n<div class=\"plot\">{plot}</div>\n{}",
        escape(&table.title),
        escape(&table.reading),
        html_table(table),
    )
}

fn html_table(table: &Table) -> String {
    let header: String =
        table.header.iter().map(|title| format!("<th>{}</th>", escape(title))).collect();
    let rows = table.rows.iter().map(|row| {
        let cells: String = row.iter().map(html_cell).collect();
        format!("<tr>{cells}</tr>\n")
    });
    let body: String = rows.collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
}

fn html_cell(cell: &Cell) -> String {
    let class = match cell.verdict {
        Some(Verdict::Better) => "better",
        Some(Verdict::Worse) => "worse",
        Some(Verdict::Noise) | None => "",
    };
    let value = escape(&cell.value);
    match cell.detail.as_str() {
        "" => format!("<td class=\"{class} plain\">{value}</td>"),
        detail => format!("<td class=\"{class}\">{value}<small>{}</small></td>", escape(detail)),
    }
}

/// What the numbers are, in the words a reader needs.
fn method(results: &Results, settings: &Settings) -> String {
    let sure = 100.0 * coverage(results.rounds, 1);
    format!(
        "<h2>How to read this</h2>\n\
         <p>Each backend ran in a process of its own. A round gives one value per backend; whiskers and \
         ranges are intervals around the median of {rounds} rounds, read off the ordered values (lowest \
         to highest would hold the true median with {sure:.1} %). Ratios are taken within a round and \
         then ordered, against <b>{reference}</b>: green is better, red is worse, and a ratio whose interval \
         includes 1 is inside the noise (~).</p>\n\
         <p><code>2us-x2-gap20us</code> is a job of 2 chunks of 2 µs each, handed to the pool 20 µs after the \
         last one ended. <code>qkv-960x576</code> is a matrix of 960 rows and 576 columns, the fused q, k and \
         v. <code>separate</code> makes a dispatch for each matrix of a token, <code>grouped</code> one for q, \
         k and v, and one for gate and up.</p>\n\
         <p>The ideal of a job is the time in which the calling thread alone does one thread's share of \
         it, measured beside the job. An overhead that is smaller than the clock or the spread of the \
         ideal can show counts as that much in a ratio. In brackets it stands in round trips of a cache line between \
         two CPUs, measured in each process before there was a pool. Whole times are compared with serial where that \
         ran. <code>epoch-x2</code> and <code>epoch-x4</code> have that many times the participants, \
         and in <code>@set</code> and <code>@one-per-core</code> the threads that take part are bound: each to all CPUs of \
         the plan, or to one of its own. <code>rayon</code> is called from a thread \
         outside its pool, as an engine's decode loop calls it; <code>rayon-inside</code> runs the loop on \
         one of its workers. Per cent of the ceiling is the median pass of matvecs against that of the fastest of \
         several read loops on the same threads, taking turns: loops over much at once, and loops in the dispatches and the \
         parts of the matvecs. In the decode replay every step needs the output of the \
         one before, and all backends gave the same bits.</p>\n\
         {of_model}",
        rounds = results.rounds,
        reference = settings.reference(),
        of_model = if settings.model.is_some() { OF_MODEL } else { "" },
    )
}

/// What the rows of a model's file are.
const OF_MODEL: &str = "<p>Of a model's file, every backend makes the same tokens, one after the other. The CPU time of a token is \
    that of the whole process, waiting threads that spin included. What can be read is the fastest of several read loops over the \
    same mapped weights on the same threads, taking turns with the tokens. Where the time goes is measured on some of the tokens, made \
    once more through a pool with a meter: dispatches are what they took longer than their work, evenly shared by the threads, \
    would have; matvecs and attention are without that. <code>@spin=4000</code> is a pool whose waiters park after so many loop \
    turns. <code>llama.cpp</code> is the engine, with kernels, threads and activations of its own, and its own count of \
    tokens per second.</p>\n";

/// Facts, notes and the command that repeats the run.
fn machine(results: &Results, settings: &Settings) -> String {
    let mut facts = results.machine.facts();
    facts.push(("commit", results.commit.clone()));
    facts.push(("compiler", results.rustc.clone()));
    let rows: String = facts
        .iter()
        .map(|(name, value)| {
            format!("<tr><td>{}</td><td>{}</td></tr>\n", escape(name), escape(value))
        })
        .collect();
    let caveats = settings.baseline.as_ref().map(|old| caveats(old, results)).unwrap_or_default();
    let notes = results.machine.notes.iter().chain(&caveats);
    let notes: String = notes.map(|note| format!("<p>Note: {}.</p>\n", escape(note))).collect();
    format!(
        "<h2>Machine</h2>\n<div class=\"scroll\"><table class=\"facts\"><tbody>\n{rows}</tbody></table></div>\n\
         {notes}<h2>Repeat it</h2>\n<pre>{}</pre>\n\
         <p class=\"soft\">Every number is in <code>results.json</code> beside this file; give its folder \
         to <code>--baseline</code> to compare a later run with this one.</p>\n",
        escape(&command(settings)),
    )
}

/// The command line of this run.
fn command(settings: &Settings) -> String {
    let mut suites: Vec<&str> = settings.tasks.iter().map(|task| task.suite.name()).collect();
    suites.dedup();
    // A file is the decode of `--model`.
    suites.iter_mut().filter(|suite| **suite == Suite::Model.name()).for_each(|suite| {
        *suite = Suite::Decode.name();
    });
    let is_shaped = |task: &&Task| matches!(task.suite, Suite::Matvec | Suite::Decode);
    let weighted = settings.tasks.iter().filter(is_shaped);
    let mut shapes: Vec<&str> = weighted.map(|task| task.shape.name).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let backends: Vec<&str> =
        settings.contenders.iter().map(|contender| contender.backend().name()).collect();
    let backends = unique(&backends).join(",");
    let mut words = vec!["cargo xtask bench".to_owned(), suites.join(" ")];
    if settings.quick {
        words.push("--quick".into());
    }
    words.push(format!(
        "--backends {backends}{} --threads {}",
        placement(settings),
        settings.threads
    ));
    if let [shape] = shapes[..] {
        words.push(format!("--shape {shape}"));
    }
    words.extend(spin(settings));
    words.extend(settings.model.iter().map(Model::words));
    words.extend(settings.variants.words());
    if settings.disturb > 0 {
        words.push(format!("--disturb {}", settings.disturb));
    }
    words.join(" ")
}

/// The option with the placements, unless no thread was bound.
fn placement(settings: &Settings) -> String {
    let placed = settings.contenders.iter().filter(|contender| contender.backend().can_be_bound());
    let placements: Vec<&str> = placed.map(|contender| contender.placement().name()).collect();
    match unique(&placements)[..] {
        [] | ["none"] => String::new(),
        ref names => format!(" --placement {}", names.join(",")),
    }
}

/// The option with the spin budgets, unless every pool had its own.
fn spin(settings: &Settings) -> Option<String> {
    let spins = settings.contenders.iter().filter_map(|contender| contender.spin());
    let spins = unique(&spins.collect::<Vec<_>>());
    let names = spins.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    (!spins.is_empty()).then(|| format!("--spin {names}"))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use benches::{Backend, Placement};

    use super::super::results::tests::example;
    use super::super::variants::VariantOptions;
    use super::*;
    use crate::cli::BenchOptions;

    #[test]
    fn the_page_is_whole_and_refers_to_nothing_outside() {
        let (mut results, _) = example();
        results.machine.cpu = "A <fast> & \"quiet\" one".into();
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::new(BenchOptions {
            suites: Vec::new(),
            quick: true,
            backends: Backend::DEFAULT.to_vec(),
            placement: vec![Placement::None, Placement::Set],
            threads: Some(2),
            disturb: 0,
            shape: None,
            spin: vec![0, 4000],
            model: None,
            tokens: None,
            variants: VariantOptions::default(),
            out: Some(folder.path().to_owned()),
            baseline: None,
            check: None,
        })
        .unwrap();
        let sections = Section::all(&results).into_iter().map(|section| {
            let table = Table::of_section(&section, &results, Backend::Rayon.into());
            (section, table)
        });
        let sections: Vec<_> = sections.collect();
        let page = html(&results, &sections, Some(&sections[0].1), &settings).unwrap();
        for part in [
            "<svg",
            "A &lt;fast&gt; &amp; &quot;quiet&quot; one",
            "170 ns",
            "cargo xtask bench dispatch matvec decode --quick --backends serial,spawn,rayon,epoch,epoch-spin0 --placement none,set --threads 2 --shape SmolLM2-135M --spin 0,4000",
        ] {
            assert!(page.contains(part), "{part}");
        }
        let outside = ["src=", "href=", "@import", "url("];
        for word in outside {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.trim_end().ends_with("</html>"));
    }
}
