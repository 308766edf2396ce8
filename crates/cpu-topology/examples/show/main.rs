//! Prints a machine as a tree, the plan for a pool on it, and the reason of each number.
//!
//! The machine is this one; or with `--root DIR` the one whose `sys/` and `proc/` lie there; or with `--corpus FILE` the one
//! that `--snapshot FILE` has written. Bad input is one line on the standard error, and exit code 2.

mod args;
mod json;
mod svg;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use args::{Allowed, Arguments};
use clap::Parser;
use clap::error::ErrorKind;
use cpu_topology::{AllowedFrom, CpuTopology, PlanReport, PlanRequest, Snapshot, draw_tree};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => error.exit(),
        Err(error) => return failed(&args::one_line(&error.to_string())),
    };
    match run(&arguments) {
        Ok(text) => {
            // Whoever closed the pipe has read enough.
            _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

fn failed(message: &str) -> ExitCode {
    eprintln!("show: {message}");
    ExitCode::from(2)
}

/// Does what the arguments ask for; what is to be printed, or what is wrong.
fn run(arguments: &Arguments) -> Result<String, String> {
    let topology = topology(arguments)?;
    if let Some(file) = &arguments.snapshot {
        let root = arguments.root.as_deref().unwrap_or(Path::new("/"));
        let snapshot = Snapshot::take(root);
        if snapshot.is_empty() {
            return Err(
                "nothing to take a snapshot of: that needs the files of a Linux system".to_owned()
            );
        }
        write(file, &format!("# files that describe the CPUs of a machine\n{snapshot}"))?;
    }
    let report = request(arguments).explain(&topology);
    if let Some(file) = &arguments.svg {
        write(file, &svg::draw(&topology, &report.plan))?;
    }
    if arguments.json { json::text(&topology, &report.plan) } else { Ok(text(&topology, &report)) }
}

/// The machine that the arguments name.
fn topology(arguments: &Arguments) -> Result<CpuTopology, String> {
    let read = |allowed: &AllowedFrom| -> Result<CpuTopology, String> {
        match (&arguments.corpus, &arguments.root) {
            (Some(file), _) => {
                let text = fs::read_to_string(file).map_err(|error| at(file, &error))?;
                let snapshot = Snapshot::parse(&text).map_err(|error| at(file, &error))?;
                Ok(CpuTopology::from_snapshot(&snapshot, allowed))
            }
            (None, Some(root)) if !root.join("sys").is_dir() && !root.join("proc").is_dir() => {
                Err(at(root, &"no folder with sys/ or proc/ in it"))
            }
            (None, Some(root)) => Ok(CpuTopology::from_root(root, allowed)),
            (None, None) if *allowed == AllowedFrom::Process => Ok(CpuTopology::detect()),
            (None, None) if cfg!(any(target_os = "linux", target_os = "android")) => {
                Ok(CpuTopology::from_root(Path::new("/"), allowed))
            }
            (None, None) => Err("--allowed needs Linux, --root or --corpus".to_owned()),
        }
    };
    match &arguments.allowed {
        Allowed::Status => read(&AllowedFrom::Process),
        Allowed::All => read(&AllowedFrom::Online),
        Allowed::List(cpus) => {
            let topology = read(&AllowedFrom::Set(cpus.clone()))?;
            let absent = topology.online().map(|online| cpus.difference(online));
            match absent.filter(|absent| !absent.is_empty()) {
                Some(absent) => Err(format!("--allowed: not online: {absent}")),
                None => Ok(topology),
            }
        }
    }
}

/// Environment variables are those of a process on this machine, and say nothing about another.
fn request(arguments: &Arguments) -> PlanRequest {
    let request = PlanRequest::new()
        .threads(arguments.threads)
        .threads_per_core(arguments.threads_per_core)
        .all_classes(arguments.all_classes)
        .reserve_coordinator(arguments.coordinator);
    let is_here = arguments.root.is_none() && arguments.corpus.is_none();
    if is_here { request.variables(|name| env::var_os(name)) } else { request }
}

fn text(topology: &CpuTopology, report: &PlanReport) -> String {
    let notes = topology.notes().iter().map(|note| format!("note: {note}\n")).collect::<String>();
    format!("{}\n{report}\n{notes}", draw_tree(topology, &report.plan))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| at(file, &error))
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
