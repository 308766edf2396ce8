//! `cargo xtask loom`: the pool's protocol in every order that the memory model allows, up to a number of preemptions.
//!
//! The models live beside the code, behind `cfg(all(test, loom))`, and need a build of their own: in
//! the folder `loom` of the target folder, so that it does not push out the ordinary one.

use std::process::Command;

use crate::cli::LoomOptions;
use crate::mutants;
use crate::workspace::{cargo, step, target_dir};

/// Preemptions a model may have unless `LOOM_MAX_PREEMPTIONS` says otherwise.
const MAX_PREEMPTIONS: &str = "3";

/// Runs the models, or checks with mutants of the protocol that they would notice a mistake.
pub(crate) fn run(options: &LoomOptions) -> anyhow::Result<()> {
    if options.mutants {
        return mutants::run();
    }
    let args: Vec<&str> = options.args.iter().map(String::as_str).collect();
    step(&mut models(&args)?)
}

/// The command that builds and runs the models; `args` go to `cargo test`.
pub(crate) fn models(args: &[&str]) -> anyhow::Result<Command> {
    let mut command = cargo();
    command
        .args(["test", "--package", "epoch-pool", "--lib", "--release"])
        .args(args)
        .env("RUSTFLAGS", "--cfg loom -C debug_assertions")
        .env("CARGO_TARGET_DIR", target_dir()?.join("loom"));
    if std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        command.env("LOOM_MAX_PREEMPTIONS", MAX_PREEMPTIONS);
    }
    Ok(command)
}
