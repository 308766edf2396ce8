//! `cargo xtask aarch64`: the libraries' tests on aarch64, in an emulator.
//!
//! The emulator keeps the memory order of the machine that it runs on, so on x86-64 this finds no missing fence. It finds wrong
//! bits, and instructions that a CPU lacks: the kernels' tests run on a CPU of each kind.

use crate::debian::{self, Tool};
use crate::targets::LIBRARIES;
use crate::workspace::step;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// What this needs beside Rust.
const TOOLS: &[Tool] = &[
    ("/usr/bin/qemu-aarch64", "qemu-user"),
    ("/usr/bin/aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    ("/usr/aarch64-linux-gnu/lib/libc.so", "libc6-dev-arm64-cross"),
];

/// What the emulator calls the CPU that runs every test: one with all that it knows.
const EVERYTHING: &str = "max";

/// CPUs that run the kernels' tests: plain NEON, and that with dot products.
const KERNELS: &[&str] = &["cortex-a53", "neoverse-n1"];

/// Why tests cannot run there, and which.
const SKIPPED: &[(&str, &[&str])] = &[
    (
        "start a program, which has to be one of the host",
        &[
            "json_has_every_fact",
            "a_snapshot_of_a_folder_is_read_back_as_the_same_machine",
            "bad_input_is_one_line_and_exit_code_2",
            "this_machine_is_shown_and_help_is_given",
            "a_picture_is_well_formed_and_has_every_cpu",
            "the_corpus_as_json",
            "variables_decide_and_junk_in_them_is_reported_once",
            "the_variable_forces_a_set_and_junk_is_reported_once",
            "a_quota_that_changes_is_in_the_next_plan_and_not_in_the_pool_that_stands",
        ],
    ),
    (
        "limit the address space, which the emulator does not hand on",
        &["a_refused_thread_is_an_error_and_none_is_left_behind"],
    ),
];

/// Fails if something is not installed.
pub(crate) fn require_tools() -> anyhow::Result<()> {
    debian::require(TOOLS)
}

/// Runs all tests on one CPU, and those of the kernels on the others.
pub(crate) fn run() -> anyhow::Result<()> {
    require_tools()?;
    for (reason, tests) in SKIPPED {
        eprintln!("skipped, as they {reason}: {}", tests.join(", "));
    }
    test(EVERYTHING, LIBRARIES)?;
    KERNELS.iter().try_for_each(|cpu| test(cpu, &["rowpar"]))
}

fn test(cpu: &str, packages: &[&str]) -> anyhow::Result<()> {
    let mut command = debian::cargo("aarch64")?;
    command.args(["test", "-Zbuild-std=std,panic_unwind,test", "--target", TARGET]);
    command.args(["--lib", "--tests", "--features", "rowpar/epoch-pool"]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    command
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", TOOLS[1].0)
        .env(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
            format!("{} -L /usr/aarch64-linux-gnu -cpu {cpu}", TOOLS[0].0),
        )
        // An emulated instruction costs thirty of this machine's.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    command.args(["--", "--exact"]);
    command.args(SKIPPED.iter().flat_map(|(_, tests)| *tests).flat_map(|test| ["--skip", test]));
    step(&mut command)
}
