//! The tasks of this workspace: `cargo xtask bench`, `ci`, `loom`, `soak`, `tsan`, `asan`, `targets`,
//! `aarch64`, `tidy`, `topology`.

#![forbid(unsafe_code)]

mod aarch64;
mod bench;
mod ci;
mod cli;
mod debian;
mod loom;
mod mutants;
mod output;
mod sanitize;
mod soak;
mod targets;
mod tidy;
mod topology;
mod workspace;

use std::process::ExitCode;

use crate::cli::Task;

fn main() -> ExitCode {
    cli::exit_code(match cli::parse() {
        Ok(Task::Bench(options)) => bench::run(*options),
        Ok(Task::Ci(options)) => ci::run(&options.steps),
        Ok(Task::Loom(options)) => loom::run(&options),
        Ok(Task::Soak(options)) => soak::run(&options),
        Ok(Task::Tsan) => sanitize::run(&sanitize::THREAD),
        Ok(Task::Asan) => sanitize::run(&sanitize::ADDRESS),
        Ok(Task::Targets) => targets::run(),
        Ok(Task::Aarch64) => aarch64::run(),
        Ok(Task::Tidy) => tidy::run(),
        Ok(Task::Topology) => topology::run(),
        Err(error) => Err(error),
    })
}
