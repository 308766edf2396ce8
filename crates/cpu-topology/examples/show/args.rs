//! The command line.

use std::path::PathBuf;

use clap::Parser;
use cpu_topology::{CpuSet, parse_cpu_list};

/// Print a machine as a tree, and the plan for a pool on it with the reason of each number.
#[derive(Debug, Parser)]
#[command(name = "show")]
pub(crate) struct Arguments {
    /// Read the machine whose sys/ and proc/ lie in this folder, in place of this one.
    #[arg(long, value_name = "DIR", conflicts_with = "corpus")]
    pub(crate) root: Option<PathBuf>,
    /// Read a machine from this file, which --snapshot has written.
    #[arg(long, value_name = "FILE")]
    pub(crate) corpus: Option<PathBuf>,
    /// The CPUs that may be used: a list such as 0-3,8; status (those of the process); all that are online.
    #[arg(long, value_name = "LIST|status|all", default_value = "status", value_parser = allowed)]
    pub(crate) allowed: Allowed,
    /// Workers of the pool; 0 sizes it automatically.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count)]
    pub(crate) threads: usize,
    /// Workers per core of a pool that is sized automatically.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    pub(crate) threads_per_core: usize,
    /// Let efficiency cores have workers as well.
    #[arg(long)]
    pub(crate) all_classes: bool,
    /// Keep a CPU for the thread that hands out work.
    #[arg(long)]
    pub(crate) coordinator: bool,
    /// Print one JSON object in place of the tree.
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw the machine into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the files that describe the machine into this one. No serial numbers are in it; the names of
    /// cgroups are: look before you publish.
    #[arg(long, value_name = "FILE", conflicts_with = "corpus")]
    pub(crate) snapshot: Option<PathBuf>,
}

/// Which CPUs may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Status,
    All,
    List(CpuSet),
}

fn allowed(text: &str) -> Result<Allowed, String> {
    match text {
        "status" => Ok(Allowed::Status),
        "all" => Ok(Allowed::All),
        list => match parse_cpu_list(list) {
            Ok(cpus) if cpus.is_empty() => Err("names no CPU".to_owned()),
            Ok(cpus) => Ok(Allowed::List(cpus)),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn count(text: &str) -> Result<usize, String> {
    const MOST: usize = 1 << 20;
    let count = text.parse().ok().filter(|count| *count <= MOST);
    count.ok_or_else(|| format!("a whole number up to {MOST} is needed"))
}

/// The part of a message of the parser that says what is wrong, on one line.
pub(crate) fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let said =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words = said.filter(|line| !line.is_empty()).collect::<Vec<_>>();
    words.join("; ").trim_start_matches("error: ").to_owned()
}
