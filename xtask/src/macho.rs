//! `cargo xtask macho`: the libraries' test programs, linked for macOS on Apple silicon.
//!
//! A type-check finds no symbol that the system's library lacks; a linker does. It is Zig's, which brings the list of those
//! symbols, and `cargo-zigbuild`, which calls it. The programs do not run here. All tests are linked, as what no program calls is
//! not looked for.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::debian;
use crate::targets::LIBRARIES;
use crate::workspace::{self, display};

const TARGET: &str = "aarch64-apple-darwin";

/// The folder of its build output.
const FOLDER: &str = "macho";

/// How the two are installed. Debian 12 keeps its own Python from `pip` unless it is told twice.
pub(crate) const INSTALL: &str = "pip install --break-system-packages ziglang cargo-zigbuild";

/// Fails if something is not installed.
pub(crate) fn require_tools() -> anyhow::Result<()> {
    debian::require(&[])?;
    let runs = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let has_zig = runs("python3", &["-m", "ziglang", "version"]) || runs("zig", &["version"]);
    ensure!(
        has_zig && runs("cargo-zigbuild", &["--version"]),
        "Python packages are missing: {INSTALL}"
    );
    Ok(())
}

/// Links the libraries' tests, and looks whether they are programs for that system.
pub(crate) fn run() -> anyhow::Result<()> {
    require_tools()?;
    let programs = link()?;
    for library in LIBRARIES {
        let stem = format!("{}-", library.replace('-', "_"));
        let is_its = |program: &&PathBuf| {
            program.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&stem))
        };
        ensure!(programs.iter().any(|program| is_its(&program)), "no program of {library}");
    }
    for program in &programs {
        ensure!(
            is_executable_for_arm64(header(program)?),
            "{} is no Mach-O executable for arm64",
            program.display()
        );
    }
    eprintln!("{} Mach-O executables for arm64", programs.len());
    Ok(())
}

/// The paths of the programs.
fn link() -> anyhow::Result<Vec<PathBuf>> {
    let mut command = debian::cargo_like("cargo-zigbuild", FOLDER)?;
    // Where it keeps its scripts, and Zig what it has built.
    let cache = workspace::target_dir()?.join(FOLDER).join("zig");
    command.env("CARGO_ZIGBUILD_CACHE_DIR", &cache).env("ZIG_GLOBAL_CACHE_DIR", &cache);
    command.args(["test", "--no-run", "--lib", "--tests", "--target", TARGET]);
    command.args(["-Zbuild-std=std,panic_unwind,test", "--features", "rowpar/epoch-pool"]);
    command.args(LIBRARIES.iter().flat_map(|library| ["--package", library]));
    command.arg("--message-format=json-render-diagnostics");
    eprintln!("\n$ {}", display(&command));
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo-zigbuild")?;
    if !output.status.success() {
        bail!("failed ({}): {}", output.status, display(&command));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(executable).collect())
}

/// The path of the program that one line of cargo's messages tells of, if it tells of one.
fn executable(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    message["executable"].as_str().map(PathBuf::from)
}

/// The first numbers of a file.
fn header(program: &Path) -> anyhow::Result<[u32; 4]> {
    let mut bytes = [0; 16];
    let mut file = File::open(program).with_context(|| program.display().to_string())?;
    file.read_exact(&mut bytes).with_context(|| program.display().to_string())?;
    let (numbers, _) = bytes.as_chunks::<4>();
    Ok([0, 1, 2, 3].map(|index| u32::from_le_bytes(numbers[index])))
}

/// `struct mach_header_64` of `<mach-o/loader.h>`: magic, type and subtype of the CPU, type of the file.
fn is_executable_for_arm64([magic, cpu, _, kind]: [u32; 4]) -> bool {
    const MH_MAGIC_64: u32 = 0xfeed_facf;
    const CPU_TYPE_ARM64: u32 = 0x0100_000c;
    const MH_EXECUTE: u32 = 2;
    (magic, cpu, kind) == (MH_MAGIC_64, CPU_TYPE_ARM64, MH_EXECUTE)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn programs_for_others_are_told_apart() {
        let cases: [(&[u8; 16], bool); 5] = [
            (b"\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0\0\0\x02\0\0\0", true),
            (b"\xcf\xfa\xed\xfe\x07\0\0\x01\0\0\0\0\x02\0\0\0", false), // x86-64
            (b"\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0\0\0\x01\0\0\0", false), // an object file
            (b"\xfe\xed\xfa\xcf\x01\0\0\x0c\0\0\0\0\0\0\0\x02", false), // the other byte order
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", false),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        for (bytes, expected) in cases {
            fs::write(&path, bytes).unwrap();
            assert_eq!(is_executable_for_arm64(header(&path).unwrap()), expected, "{bytes:x?}");
        }
        fs::write(&path, "short").unwrap();
        assert!(header(&path).is_err());
    }

    #[test]
    fn programs_are_found_in_cargos_messages() {
        let program = r#"{"reason":"compiler-artifact","executable":"t/deps/rowpar-1"}"#;
        assert_eq!(executable(program), Some(PathBuf::from("t/deps/rowpar-1")));
        for other in [r#"{"reason":"compiler-artifact","executable":null}"#, "{}", "note: x"] {
            assert_eq!(executable(other), None);
        }
    }
}
