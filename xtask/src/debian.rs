//! Debian's Rust, for checks that need what the toolchain of this workspace lacks: the source of the standard library, unstable
//! flags, the run time of the sanitizers. It is asked for, never installed from here.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use crate::workspace::{root, target_dir};

/// A file, and the package of Debian 12 that brings it.
pub(crate) type Tool = (&'static str, &'static str);

/// What every check with this toolchain needs.
const RUST: &[Tool] = &[
    ("/usr/bin/rustc", "rustc-web"),
    ("/usr/bin/cargo", "cargo-web"),
    ("/usr/lib/rustlib/src/rust/library/std/Cargo.toml", "rust-web-src"),
];

/// What [`clippy`] needs beside them.
pub(crate) const CLIPPY: Tool = ("/usr/bin/cargo-clippy", "rust-web-clippy");

/// Fails with the command that installs them if packages are missing, those of Rust included.
pub(crate) fn require(tools: &[Tool]) -> anyhow::Result<()> {
    let missing = missing(tools, |file| Path::new(file).exists());
    ensure!(
        missing.is_empty(),
        "packages of Debian 12 are missing: apt-get install -y --no-install-recommends {}",
        missing.join(" ")
    );
    Ok(())
}

fn missing(tools: &[Tool], exists: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let tools = RUST.iter().chain(tools);
    tools.filter(|(file, _)| !exists(file)).map(|(_, package)| *package).collect()
}

/// This cargo in the workspace, with unstable flags allowed and build output in a folder of its own in the target folder.
pub(crate) fn cargo(folder: &str) -> anyhow::Result<Command> {
    program("/usr/bin/cargo", folder)
}

/// A program that stands before this cargo and calls it, with the same settings.
pub(crate) fn cargo_like(name: &str, folder: &str) -> anyhow::Result<Command> {
    let mut command = program(name, folder)?;
    command.env("CARGO", "/usr/bin/cargo");
    Ok(command)
}

/// This `cargo clippy`, with the same settings. It is called by its path, as cargo would look for it where rustup keeps its own.
pub(crate) fn clippy(folder: &str) -> anyhow::Result<Command> {
    let mut command = program(CLIPPY.0, folder)?;
    command.env("CARGO", "/usr/bin/cargo").arg("clippy");
    Ok(command)
}

fn program(path: &str, folder: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(path);
    command
        .current_dir(root())
        .env("RUSTC", "/usr/bin/rustc")
        .env("RUSTDOC", "/usr/bin/rustdoc")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", target_dir()?.join(folder))
        // Enough for the places in a report, and the build is shorter.
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        .env("CARGO_INCREMENTAL", "0")
        // Of the toolchain that runs this task.
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO");
    Ok(command)
}

/// The target of this machine.
pub(crate) fn host() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{aarch64, macho, sanitize, wasm};

    #[test]
    fn whoever_installs_packages_installs_all_that_are_asked_for() {
        let tools = [RUST, &[CLIPPY], sanitize::TOOLS, aarch64::TOOLS].concat();
        let debian: Vec<&str> = tools.iter().map(|(_, package)| *package).collect();
        let others = macho::INSTALL.split_whitespace().filter(|word| word.contains("zig"));
        let others = others.chain(wasm::TOOLS.iter().map(|(_, package)| *package));
        let all: Vec<&str> = debian.iter().copied().chain(others).collect();
        let files =
            [("CONTRIBUTING.md", &all), (".github/workflows/ci.yml", &all), (".ci/run", &debian)];
        for (file, packages) in files {
            let text = fs::read_to_string(root().join(file)).unwrap();
            let named: Vec<&str> = text.split([' ', '\n', '(', ')']).collect();
            for package in packages {
                assert!(named.contains(package), "{package} in {file}");
            }
        }
    }

    #[test]
    fn packages_of_missing_files_are_named() {
        let tools = &[("/usr/bin/clang-19", "clang-19")];
        assert!(missing(tools, |_| true).is_empty());
        assert_eq!(missing(tools, |file| file != "/usr/bin/cargo"), ["cargo-web"]);
        let all = ["rustc-web", "cargo-web", "rust-web-src", "clang-19"];
        assert_eq!(missing(tools, |_| false), all);
    }
}
