//! `cargo xtask aarch64`: the tests of the libraries that know of CPUs, on aarch64 in an emulator.
//!
//! Those are the ones with code for this architecture, or with system calls that the C library does not wrap. What cpu-topology
//! reads is the same text everywhere, and its tests start programs, which would be the host's; here the others link and use it.
//!
//! The emulator keeps the memory order of the machine that it runs on, so on x86-64 this finds no missing fence. It finds wrong
//! bits, and instructions that a CPU lacks. All sets of kernels are tested on the CPU that has them all; others see that nothing is run
//! there that they lack.

use crate::debian::{self, Tool};
use crate::workspace::step;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// What this needs beside Rust.
pub(crate) const TOOLS: &[Tool] = &[
    ("/usr/bin/qemu-aarch64", "qemu-user"),
    ("/usr/bin/aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    ("/usr/aarch64-linux-gnu/lib/libc.so", "libc6-dev-arm64-cross"),
];

/// What is tested.
const PACKAGES: &[&str] = &["cpu-qos", "epoch-pool", "rowpar"];

/// What the emulator calls the CPU that runs every test: one with all that it knows.
const EVERYTHING: &str = "max";

/// CPUs with less: plain NEON, and that with dot products.
const OTHERS: &[&str] = &["cortex-a53", "neoverse-n1"];

/// Tests of rowpar that take every kernel, and not long.
const KERNELS: &[&str] = &["golden", "gguf_blocks", "half_precision", "matvec"];

/// Why tests cannot run there, and which.
const SKIPPED: &[(&str, &[&str])] = &[
    (
        "start a program, which has to be one of the host",
        &[
            "the_variable_forces_a_set_and_junk_is_reported_once",
            "a_quota_that_changes_is_in_the_next_plan_and_not_in_the_pool_that_stands",
        ],
    ),
    (
        "start threads after a fork, at which the emulator ends",
        &["a_forked_child_can_build_a_pool_of_its_own"],
    ),
    (
        "take so long there that the pool counts its CPUs again, which reads files and allocates",
        &["products_do_not_allocate"],
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
    let all: Vec<&str> = PACKAGES.iter().flat_map(|package| ["--package", package]).collect();
    test(EVERYTHING, &[&all[..], &["--tests"]].concat())?;
    let kernels: Vec<&str> = KERNELS.iter().flat_map(|test| ["--test", test]).collect();
    let kernels = [&["--package", "rowpar"], &kernels[..]].concat();
    OTHERS.iter().try_for_each(|cpu| test(cpu, &kernels))
}

fn test(cpu: &str, what: &[&str]) -> anyhow::Result<()> {
    let mut command = debian::cargo("aarch64")?;
    command.args(["test", "-Zbuild-std=std,panic_unwind,test", "--target", TARGET]);
    command.args(["--lib", "--features", "rowpar/epoch-pool"]).args(what);
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
