//! `cargo xtask soak`: builds and runs the package `soak`, optimized and with its assertions.

use crate::workspace::{cargo, step};

/// Runs a soak.
pub(crate) fn run(options: &soak::Options) -> anyhow::Result<()> {
    run_with(&options.to_args())
}

/// Runs a short one: half a minute on two idle CPUs, and a minute at most on busy ones.
pub(crate) fn run_short() -> anyhow::Result<()> {
    run_with(&["--dispatches=8000000", "--minutes=1"].map(String::from))
}

fn run_with(args: &[String]) -> anyhow::Result<()> {
    let mut command = cargo();
    step(
        command.args(["run", "--quiet", "--package", "soak", "--profile", "soak", "--"]).args(args),
    )
}
