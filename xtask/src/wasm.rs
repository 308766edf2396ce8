//! `cargo xtask wasm`: the kernels' tests as WebAssembly with `simd128`, in Node.js.
//!
//! A test that fails ends the program, as nothing unwinds there; its message comes first. There are no threads.

use crate::debian::{self, Tool};
use crate::workspace::{root, step};

const TARGET: &str = "wasm32-wasip1";

const NODE: &str = "/usr/bin/node";
const LINKER: &str = "/usr/bin/wasm-ld-22";

/// What this needs beside Rust.
pub(crate) const TOOLS: &[Tool] =
    &[(NODE, "nodejs"), (LINKER, "lld-22"), ("/usr/lib/wasm32-wasi/crt1-command.o", "wasi-libc")];

/// The instructions; the C library from where Debian has it; functions for threads, which it lacks and nothing calls, as traps.
const RUSTFLAGS: &str = "-C target-feature=+simd128 -C link-self-contained=no -L /usr/lib/wasm32-wasi \
                         -C link-arg=/usr/lib/wasm32-wasi/crt1-command.o \
                         -C link-arg=--unresolved-symbols=ignore-all";

/// The tests of results, and of the bits that all instruction sets share. `fp_environment` is not among them, as WebAssembly has no
/// rounding modes and flushes nothing.
const TESTS: &[&str] = &[
    "adversarial",
    "formats",
    "gguf_blocks",
    "golden",
    "half_precision",
    "matvec",
    "oracle",
    "quantizers",
];

/// Tests that need threads, or a panic that can be caught.
const SKIPPED: &[&str] = &[
    "on_every_pool",
    "every_pool_and_packing",
    "every_pool_has_the_golden_bits",
    "matrices_above_the_threshold_take_the_pool",
    "products_of_all_formats_share_a_dispatch",
    "wrong_lengths_panic_with_both_numbers",
];

/// Fails if something is not installed.
pub(crate) fn require_tools() -> anyhow::Result<()> {
    debian::require(TOOLS)
}

/// Runs the tests of every kernel there is: plain Rust, and `simd128`.
pub(crate) fn run() -> anyhow::Result<()> {
    require_tools()?;
    eprintln!("skipped, as they need threads or panics: {}", SKIPPED.join(", "));
    let mut command = debian::cargo("wasm")?;
    command.args(["test", "-Zbuild-std=std,panic_abort,test", "--target", TARGET]);
    command.args(["--package", "rowpar", "--no-default-features"]);
    command.args(TESTS.iter().flat_map(|test| ["--test", test]));
    let runner = root().join("xtask/src/wasi.mjs");
    let runner =
        [NODE, "--no-warnings"].map(String::from).into_iter().chain([runner.display().to_string()]);
    command
        .env("CARGO_TARGET_WASM32_WASIP1_LINKER", LINKER)
        .env("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner.collect::<Vec<_>>().join(" "))
        .env("CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS", RUSTFLAGS)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    command.arg("--");
    command.args(SKIPPED.iter().flat_map(|test| ["--skip", test]));
    step(&mut command)
}
