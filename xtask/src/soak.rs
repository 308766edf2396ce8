//! `cargo xtask soak`: builds and runs the package `soak`, optimized and with its assertions.

use crate::workspace::{cargo, step};

/// Runs a soak.
pub(crate) fn run(options: &soak::Options) -> anyhow::Result<()> {
    run_with(&options.to_args())
}

/// Runs one of so many dispatches.
pub(crate) fn run_for(dispatches: u64) -> anyhow::Result<()> {
    run_with(&[format!("--dispatches={dispatches}")])
}

fn run_with(args: &[String]) -> anyhow::Result<()> {
    let mut command = cargo();
    step(
        command.args(["run", "--quiet", "--package", "soak", "--profile", "soak", "--"]).args(args),
    )
}
