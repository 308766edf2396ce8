//! The tasks of this workspace: `cargo xtask bench`, `ci`, `loom`, `soak`, `fuzz`, `tsan`, `asan`, `targets`,
//! `aarch64`, `macho`, `wasm`, `tidy`, `topology`, `model`.

// One place maps a file, and says so.
#![deny(unsafe_code)]

mod aarch64;
mod bench;
mod ci;
mod cli;
mod debian;
mod fuzz;
mod loom;
mod macho;
mod model;
mod mutants;
mod output;
mod sanitize;
mod soak;
mod targets;
mod tidy;
mod topology;
mod wasm;
mod workspace;

use std::process::ExitCode;

use crate::cli::Task;

fn main() -> ExitCode {
    cli::exit_code(match cli::parse() {
        Ok(Task::Bench(options)) => bench::run(*options),
        Ok(Task::Ci(options)) => ci::run(&options.steps),
        Ok(Task::Loom(options)) => loom::run(&options),
        Ok(Task::Soak(options)) => soak::run(&options),
        Ok(Task::Fuzz(options)) => fuzz::run(&options),
        Ok(Task::Tsan) => sanitize::run(&sanitize::THREAD),
        Ok(Task::Asan) => sanitize::run(&sanitize::ADDRESS),
        Ok(Task::Targets) => targets::run(),
        Ok(Task::Aarch64) => aarch64::run(),
        Ok(Task::Macho) => macho::run(),
        Ok(Task::Wasm) => wasm::run(),
        Ok(Task::Tidy) => tidy::run(),
        Ok(Task::Topology) => topology::run(),
        Ok(Task::Model { name }) => model::run(name),
        Err(error) => Err(error),
    })
}
