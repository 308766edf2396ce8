//! `cargo xtask loom --mutants`: is each ordering and fence of the pool's protocol needed, and would we notice?
//!
//! Every `Acquire` and `Release` in the files of the protocol is weakened, and every fence taken out, one at a time, in a copy
//! of the crate. The models must fail on each copy. The sites are found in the source, so none can be forgotten.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::loom::models;
use crate::workspace::{root, target_dir};

/// The files of the protocol, from the root of the workspace.
const PROTOCOL: [&str; 3] = [
    "crates/epoch-pool/src/dispatch.rs",
    "crates/epoch-pool/src/home.rs",
    "crates/epoch-pool/src/worker.rs",
];

/// What is weakened, and to what.
const WEAKER: [(&str, &str); 5] = [
    ("Ordering::AcqRel", "Ordering::Acquire"),
    ("Ordering::AcqRel", "Ordering::Release"),
    ("Ordering::Acquire", "Ordering::Relaxed"),
    ("Ordering::Release", "Ordering::Relaxed"),
    ("fence(Ordering::SeqCst);", ""),
];

/// Enough preemptions to catch every mutant, and fewer than the models run with, as each one costs a factor of ten.
const MAX_PREEMPTIONS: &str = "2";

/// Models that catch most mutants, and do so quickly. The others run if these have passed.
const QUICK: [&str; 3] = ["rows_run_once", "no_wakeup_is_lost", "two_callers"];

/// One weakened site of a file.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    /// From 1.
    line: usize,
    from: &'static str,
    to: &'static str,
    /// The whole file, weakened.
    text: String,
}

/// All mutants of a file, in the order of the table. Comments and the tests at the end of the file are no sites.
fn mutants(text: &str) -> Vec<Mutant> {
    let code = text.find("#[cfg(all(test").unwrap_or(text.len());
    let mut mutants = Vec::new();
    for (from, to) in WEAKER {
        for (at, _) in text[..code].match_indices(from) {
            let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
            if text[start..at].trim_start().starts_with("//") {
                continue;
            }
            let line = text[..at].matches('\n').count() + 1;
            let text = [&text[..at], to, &text[at + from.len()..]].concat();
            mutants.push(Mutant { line, from, to, text });
        }
    }
    mutants
}

/// Runs the models on every mutant, and fails if one survives.
pub(crate) fn run() -> anyhow::Result<()> {
    let scratch = target_dir()?.join("loom-mutants");
    let (mut caught, mut survivors) = (0, Vec::new());
    for file in PROTOCOL {
        let original = fs::read_to_string(root().join(file)).with_context(|| file.to_owned())?;
        for mutant in mutants(&original) {
            let to = if mutant.to.is_empty() { "nothing" } else { mutant.to };
            let name = format!("{file}:{}: {} -> {to}", mutant.line, mutant.from);
            if survives(&scratch, file, &mutant.text)? {
                eprintln!("SURVIVES {name}");
                survivors.push(name);
            } else {
                eprintln!("caught   {name}");
                caught += 1;
            }
        }
    }
    ensure!(caught + survivors.len() > 0, "no ordering found in the protocol");
    if !survivors.is_empty() {
        bail!("the models pass without: {}", survivors.join("; "));
    }
    eprintln!("all {caught} mutants caught");
    Ok(())
}

/// Whether the models pass with `file` replaced by `text`.
fn survives(scratch: &Path, file: &str, text: &str) -> anyhow::Result<bool> {
    copy_crate(scratch)?;
    fs::write(scratch.join(file), text)?;
    let run = |arguments: &[&str]| -> anyhow::Result<bool> {
        let mut command = models(arguments)?;
        // Never the target folder of the models themselves: cargo tells packages apart by their place in a workspace, which is
        // the same, and would take the last mutant for the crate.
        command.current_dir(scratch).env("CARGO_TARGET_DIR", scratch.join("target"));
        command.env("LOOM_MAX_PREEMPTIONS", MAX_PREEMPTIONS);
        Ok(command.output().context("cannot run cargo")?.status.success())
    };
    ensure!(run(&["--no-run"])?, "the mutant of {file} does not compile: {}", scratch.display());
    for model in QUICK {
        if !run(&[model])? {
            return Ok(false);
        }
    }
    run(&[])
}

/// A workspace of epoch-pool alone, in `scratch`.
fn copy_crate(scratch: &Path) -> anyhow::Result<()> {
    let source = "crates/epoch-pool";
    if scratch.join(source).exists() {
        fs::remove_dir_all(scratch.join(source))?;
    }
    copy_folder(&root().join(source), &scratch.join(source))?;
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    fs::write(scratch.join("Cargo.toml"), manifest.replace(r#", "benches", "soak", "xtask""#, ""))?;
    fs::copy(root().join("Cargo.lock"), scratch.join("Cargo.lock"))?;
    Ok(())
}

fn copy_folder(from: &Path, to: &PathBuf) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
// a comment on Ordering::Acquire
let seen = word.load(Ordering::Acquire);
word.fetch_sub(1, Ordering::AcqRel);
fence(Ordering::SeqCst);
seen.store(true, Ordering::Relaxed);
#[cfg(all(test, not(loom)))]
mod tests { fn f() { x.load(Ordering::Acquire); } }
";

    #[test]
    fn each_site_in_the_code_is_weakened_once() {
        let found: Vec<_> = mutants(SOURCE).into_iter().map(|m| (m.line, m.from, m.to)).collect();
        let expected = [
            (3, "Ordering::AcqRel", "Ordering::Acquire"),
            (3, "Ordering::AcqRel", "Ordering::Release"),
            (2, "Ordering::Acquire", "Ordering::Relaxed"),
            (4, "fence(Ordering::SeqCst);", ""),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_mutant_differs_in_one_place() {
        for mutant in mutants(SOURCE) {
            let line = mutant.line - 1;
            let pairs = SOURCE.lines().zip(mutant.text.lines()).enumerate();
            for (at, (before, after)) in pairs {
                assert_eq!(before != after, at == line, "{mutant:?}");
            }
        }
    }

    #[test]
    fn the_protocol_has_sites_in_every_file() {
        for file in PROTOCOL {
            let text = fs::read_to_string(root().join(file)).unwrap();
            assert!(!mutants(&text).is_empty(), "{file}");
        }
    }
}
