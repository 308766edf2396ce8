//! `cargo xtask tsan` and `asan`: the tests of the pool and of the kernels that write from its threads, under a sanitizer.
//!
//! ThreadSanitizer knows no fences. Those of the protocol order flags that say who sleeps, and no data, so it has nothing to
//! misunderstand there: a report is a race.

use crate::debian::{self, Tool, host};
use crate::workspace::step;

/// How a sanitizer is built and run.
#[derive(Debug)]
pub(crate) struct Sanitizer {
    /// As rustc and clang call it.
    name: &'static str,
    /// The folder of its build output.
    folder: &'static str,
    /// It must have seen the standard library's code as well.
    rebuilds_std: bool,
    /// Its own settings, by variable.
    options: (&'static str, &'static str),
    /// Files of rowpar's tests that have something for it to find; all if none is named.
    rowpar_tests: &'static [&'static str],
    /// Tests that it cannot run, and why.
    skipped: &'static [(&'static str, &'static str)],
}

/// Finds data races, also those that x86 would not show.
pub(crate) const THREAD: Sanitizer = Sanitizer {
    name: "thread",
    folder: "tsan",
    rebuilds_std: true,
    options: (
        "TSAN_OPTIONS",
        "halt_on_error=1:external_symbolizer_path=/usr/bin/llvm-symbolizer-19",
    ),
    // Those with pools: one thread's products, of which there are many, take minutes here and cannot race.
    rowpar_tests: &[
        "allocations",
        "fp_environment",
        "golden",
        "init_cpu_pool",
        "matvec",
        "pools",
        "rows",
        "server_life",
        "server_processes",
        "workers",
    ],
    skipped: &[
        (
            "products_do_not_allocate",
            "counts allocations, and the standard library in this build makes one more",
        ),
        (
            "a_forked_child_can_build_a_pool_of_its_own",
            "starts threads after a fork, at which the sanitizer ends the process",
        ),
    ],
};

/// Finds accesses to memory that is not, or no longer, there.
pub(crate) const ADDRESS: Sanitizer = Sanitizer {
    name: "address",
    folder: "asan",
    rebuilds_std: false,
    options: (
        "ASAN_OPTIONS",
        "detect_leaks=0:external_symbolizer_path=/usr/bin/llvm-symbolizer-19",
    ),
    rowpar_tests: &[],
    skipped: &[(
        "a_refused_thread_is_an_error_and_none_is_left_behind",
        "limits the address space, of which the sanitizer takes terabytes",
    )],
};

/// What a sanitizer needs beside Rust.
pub(crate) const TOOLS: &[Tool] = &[
    ("/usr/bin/clang-19", "clang-19"),
    ("/usr/lib/llvm-19/lib/clang/19/lib/linux", "libclang-rt-19-dev"),
    ("/usr/bin/llvm-symbolizer-19", "llvm-19"),
];

/// Fails if something is not installed.
pub(crate) fn require_tools() -> anyhow::Result<()> {
    debian::require(TOOLS)
}

/// Runs the tests; the first report of the sanitizer is a failure.
pub(crate) fn run(sanitizer: &Sanitizer) -> anyhow::Result<()> {
    require_tools()?;
    for (test, reason) in sanitizer.skipped {
        eprintln!("skipped: {test}, as it {reason}");
    }
    test(sanitizer, &["--package", "epoch-pool", "--tests"])?;
    let mut rowpar = vec!["--package", "rowpar", "--features", "rowpar/epoch-pool"];
    match sanitizer.rowpar_tests {
        [] => rowpar.push("--tests"),
        tests => rowpar.extend(tests.iter().flat_map(|test| ["--test", test])),
    }
    test(sanitizer, &rowpar)
}

fn test(sanitizer: &Sanitizer, what: &[&str]) -> anyhow::Result<()> {
    let Sanitizer { name, folder, rebuilds_std, options, skipped, .. } = sanitizer;
    let mut command = debian::cargo(folder)?;
    command.args(["test", "--target", &host(), "--lib"]).args(what);
    if *rebuilds_std {
        command.arg("-Zbuild-std=std,panic_unwind,test");
    }
    command.env(options.0, options.1).env(
        "RUSTFLAGS",
        format!(
            "-Zsanitizer={name} -Zexternal-clangrt -Clinker=clang-19 -Clink-arg=-fsanitize={name}"
        ),
    );
    command.args(["--", "--exact"]);
    command.args(skipped.iter().flat_map(|(test, _)| ["--skip", test]));
    step(&mut command)
}
