//! `cargo xtask targets`: the libraries, their tests and examples, type-checked and linted for systems that nobody runs here.
//!
//! Debian's Rust brings the source of the standard library, which is checked first, once for each target. Nothing is linked.

use crate::debian::{self, CLIPPY};
use crate::workspace::step;

/// One of each kind of platform code, and a target without threads.
const TARGETS: &[&str] = &[
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "aarch64-linux-android",
    "x86_64-unknown-freebsd",
    "wasm32-unknown-unknown",
    "riscv64gc-unknown-linux-gnu",
];

/// The packages that others build for their targets.
pub(crate) const LIBRARIES: &[&str] = &["cpu-topology", "cpu-qos", "epoch-pool", "rowpar"];

/// Fails if something is not installed.
pub(crate) fn require_tools() -> anyhow::Result<()> {
    debian::require(&[CLIPPY])
}

/// Runs clippy, which type-checks as well; a warning is a failure.
pub(crate) fn run() -> anyhow::Result<()> {
    require_tools()?;
    let mut command = debian::clippy("targets")?;
    command.args(["-Zbuild-std=std,panic_abort", "--lib", "--tests", "--examples"]);
    command.arg("--all-features");
    command.args(LIBRARIES.iter().flat_map(|library| ["--package", library]));
    command.args(TARGETS.iter().flat_map(|target| ["--target", target]));
    // On targets without thread-local storage of their own, clippy takes what `thread_local!` expands to for a slip.
    let mistaken = ["-A", "clippy::missing_const_for_thread_local"];
    step(command.args(["--", "-D", "warnings"]).args(mistaken))
}
