//! Prints this machine, or with `--root DIR` the one whose `sys/` and `proc/` lie in that folder: classes and cores first,
//! then the plan for a pool with the reason of each number.

use std::path::PathBuf;
use std::process::ExitCode;

use cpu_topology::{
    AllowedFrom, CpuTopology, PlanReport, explain_cpu_pool, explain_cpu_pool_in,
    perf_core_count_in, resolve_cpu_threads_with,
};

const USAGE: &str = "usage: show [--root DIR [--online]]";

/// What the arguments ask for.
struct Arguments {
    root: Option<PathBuf>,
    allowed: AllowedFrom,
}

fn main() -> ExitCode {
    let arguments = match arguments(std::env::args_os().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("show: {error}");
            return ExitCode::from(2);
        }
    };
    print(&report(&arguments));
    ExitCode::SUCCESS
}

/// The arguments, or `None` if help is asked for.
fn arguments(
    given: impl IntoIterator<Item = std::ffi::OsString>,
) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { root: None, allowed: AllowedFrom::Process };
    let mut given = given.into_iter();
    while let Some(argument) = given.next() {
        match argument.to_str() {
            Some("--root") => {
                arguments.root = Some(given.next().ok_or("--root needs a folder")?.into())
            }
            Some("--online") => arguments.allowed = AllowedFrom::Online,
            Some("--help" | "-h") => return Ok(None),
            _ => return Err(format!("unknown argument {argument:?}; {USAGE}")),
        }
    }
    match &arguments.root {
        Some(root) if !root.is_dir() => Err(format!("{}: not a folder", root.display())),
        None if arguments.allowed == AllowedFrom::Online => Err("--online needs --root".to_owned()),
        _ => Ok(Some(arguments)),
    }
}

/// The plan for the machine. One in a folder has no environment variables.
fn report(arguments: &Arguments) -> PlanReport {
    let Some(root) = &arguments.root else { return explain_cpu_pool(0, true) };
    let topology = CpuTopology::from_root(root, &arguments.allowed);
    let threads = resolve_cpu_threads_with(|_| None, || perf_core_count_in(&topology));
    explain_cpu_pool_in(0, true, &topology, threads)
}

fn print(report: &PlanReport) {
    let topology = &report.topology;
    for (index, class) in topology.classes().iter().enumerate() {
        let label = class.label().map(|label| format!(" ({label})")).unwrap_or_default();
        let kind = if class.is_efficiency() { "efficiency" } else { "performance" };
        println!("class {index}{label}: {} {kind} cores", class.n_cores());
        for (number, core) in
            topology.cores().iter().enumerate().filter(|(_, core)| core.class() == index)
        {
            let hidden = core.siblings_total() - core.cpus().len();
            let hidden =
                if hidden > 0 { format!(", {hidden} more not allowed") } else { String::new() };
            println!("  core {number}: CPUs {}{hidden}", core.cpus());
        }
    }
    println!("\n{report}");
    for note in topology.notes() {
        println!("note: {note}");
    }
}
