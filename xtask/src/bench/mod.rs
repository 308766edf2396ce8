//! `cargo xtask bench`: every backend in a process of its own, rounds interleaved, ratios paired.
//!
//! | Step | File |
//! |---|---|
//! | settings from the options; out folder and baseline checked before anything is measured | `settings.rs` |
//! | the model's file of a decode, if there is one | `model.rs` |
//! | formats, batches, kernels and the like | `variants.rs` |
//! | what this machine is, and what others did on it meanwhile | `machine.rs`, `neighbours.rs` |
//! | the measuring programs, built or found, and run | `binaries.rs`, `llama_cpp.rs`, `runner.rs` |
//! | busy processes beside them, where that is asked for | `disturb.rs` |
//! | rounds, their order, the clock | `rounds.rs` |
//! | values by case and backend, checksums compared | `series.rs` |
//! | medians, intervals, paired ratios | `stats.rs` |
//! | `results.json` | `results.rs` |
//! | comparison with an earlier run; whether a run is whole | `baseline.rs`, `check.rs` |
//! | what stands together; its table, and one line about it | `section.rs`, `table.rs`, `reading.rs` |
//! | tables on the terminal | `terminal.rs`, `format.rs` |
//! | `report.html` | `report.rs`, `plot.rs` |

mod baseline;
mod binaries;
mod check;
mod disturb;
mod format;
mod llama_cpp;
mod machine;
mod model;
mod neighbours;
mod plot;
mod reading;
mod report;
mod results;
mod rounds;
mod runner;
mod section;
mod series;
mod settings;
mod stats;
mod table;
mod terminal;
pub(crate) mod variants;

use std::fs;

use anyhow::Context;
use benches::Contender;

use self::results::Results;
use self::section::Section;
use self::settings::Settings;
use self::table::Table;
use crate::cli::BenchOptions;
use crate::output::print;

/// Measures, writes `results.json` and `report.html`, and prints the tables.
pub(crate) fn run(options: BenchOptions) -> anyhow::Result<()> {
    if let Some(folder) = &options.check {
        let contenders = Contender::all(&options.backends, &options.placement, &options.spin);
        return check::run(folder, &model::suites(&options)?, &contenders);
    }
    let settings = Settings::new(options)?;
    let binaries = binaries::Binaries::build(&settings.contenders)?;
    let mut machine = machine::Machine::detect(settings.threads);
    let neighbours = neighbours::Neighbours::watch();
    let disturbance = disturb::Disturbance::start(settings.disturb, || binaries.busy())?;
    let measured = rounds::measure(&settings, &binaries)?;
    disturbance.end()?;
    machine.set_busy_elsewhere(neighbours.busy_cpus());
    measured.series.check()?;
    machine.isa.clone_from(&measured.series.isa);
    machine.notes.extend(settings.notes.iter().chain(&measured.series.notes).cloned());
    machine.notes.extend(settings.cache_notes(machine.last_level_cache_mib));
    let mut results = Results::new(machine, measured.rounds, &measured.series);
    results.machine.notes.extend(results.ceiling_note());
    results.machine.notes.extend(results.round_trip_note());
    let changes = settings
        .baseline
        .as_ref()
        .map(|old| Table::of_changes(&baseline::compare(old, &results, &measured.series)));
    publish(&settings, &results, changes.as_ref())
}

/// Writes the two files, then prints the tables.
fn publish(settings: &Settings, results: &Results, changes: Option<&Table>) -> anyhow::Result<()> {
    let reference = settings.reference();
    let sections: Vec<(Section<'_>, Table)> = Section::all(results)
        .into_iter()
        .map(|section| {
            let table = Table::of_section(&section, results, reference);
            (section, table)
        })
        .collect();
    let tables = sections.iter().map(|(_, table)| table).chain(changes).cloned();
    let tables = terminal::text(&tables.collect::<Vec<_>>(), &reference.to_string());
    let caveats = settings.baseline.as_ref().map(|old| baseline::caveats(old, results));
    let caveats = caveats.unwrap_or_default();
    let json = results.to_json()?;
    let html = report::html(results, &sections, changes, settings)?;
    for (name, content) in [("results.json", json), ("report.html", html)] {
        let path = settings.out.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    print(&tables);
    for note in results.machine.notes.iter().chain(&caveats) {
        print(&format!("note: {note}"));
    }
    print(&format!("wrote results.json and report.html in {}", settings.out.display()));
    Ok(())
}
