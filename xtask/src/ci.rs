//! `cargo xtask ci`: exactly what continuous integration runs, step by step.

use std::fmt;
use std::str::FromStr;

use crate::cli::{FuzzOptions, LoomOptions};
use crate::workspace::{cargo, step};
use crate::{aarch64, fuzz, loom, macho, sanitize, soak, targets, tidy, wasm};

/// One thing that must pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Fmt,
    Clippy,
    Test,
    Doc,
    Tidy,
    Loom,
    Soak,
    Fuzz,
    Tsan,
    Asan,
    Targets,
    Aarch64,
    Macho,
    Wasm,
}

impl Step {
    /// Every step, quick ones first.
    const ALL: &[Self] = &[
        Self::Fmt,
        Self::Clippy,
        Self::Test,
        Self::Doc,
        Self::Tidy,
        Self::Loom,
        Self::Soak,
        Self::Fuzz,
        Self::Tsan,
        Self::Asan,
        Self::Targets,
        Self::Aarch64,
        Self::Macho,
        Self::Wasm,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Test => "test",
            Self::Doc => "doc",
            Self::Tidy => "tidy",
            Self::Loom => "loom",
            Self::Soak => "soak",
            Self::Fuzz => "fuzz",
            Self::Tsan => "tsan",
            Self::Asan => "asan",
            Self::Targets => "targets",
            Self::Aarch64 => "aarch64",
            Self::Macho => "macho",
            Self::Wasm => "wasm",
        }
    }

    fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Fmt => step(cargo().args(["fmt", "--all", "--", "--check"])),
            Self::Clippy => {
                let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
                step(cargo().args(clippy).args(["--", "-D", "warnings"]))
            }
            Self::Test => step(cargo().args(["test", "--workspace"])),
            Self::Doc => {
                let doc = ["doc", "--workspace", "--all-features", "--no-deps"];
                step(cargo().args(doc).env("RUSTDOCFLAGS", "-D warnings"))
            }
            Self::Tidy => {
                eprintln!("\n$ cargo xtask tidy");
                tidy::run()
            }
            Self::Loom => loom::run(&LoomOptions::default()),
            Self::Soak => soak::run_short(),
            Self::Fuzz => fuzz::run(&FuzzOptions::default()),
            Self::Tsan => sanitize::run(&sanitize::THREAD),
            Self::Asan => sanitize::run(&sanitize::ADDRESS),
            Self::Targets => targets::run(),
            Self::Aarch64 => aarch64::run(),
            Self::Macho => macho::run(),
            Self::Wasm => wasm::run(),
        }
    }

    /// Why this step is left out where it was not asked for by name.
    fn lacks(self) -> Option<anyhow::Error> {
        match self {
            Self::Fuzz => fuzz::require_tools().err(),
            Self::Tsan | Self::Asan => sanitize::require_tools().err(),
            Self::Targets => targets::require_tools().err(),
            Self::Aarch64 => aarch64::require_tools().err(),
            Self::Macho => macho::require_tools().err(),
            Self::Wasm => wasm::require_tools().err(),
            _ => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|step| step.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|step| step.name()).collect();
            format!("unknown step `{name}`; the steps are {}", names.join(", "))
        })
    }
}

/// Runs the steps in the order given, or all that can be run here; stops at the first that fails.
pub(crate) fn run(steps: &[Step]) -> anyhow::Result<()> {
    if !steps.is_empty() {
        return steps.iter().try_for_each(|step| step.run());
    }
    Step::ALL.iter().try_for_each(|step| match step.lacks() {
        Some(reason) => {
            eprintln!("\n{step} is left out: {reason}");
            Ok(())
        }
        None => step.run(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_parse_and_errors_list_them() {
        for &step in Step::ALL {
            assert_eq!(step.name().parse::<Step>().unwrap(), step);
        }
        let error = "deploy".parse::<Step>().unwrap_err();
        assert!(
            error.contains(
                "fmt, clippy, test, doc, tidy, loom, soak, fuzz, tsan, asan, targets, aarch64, macho, wasm"
            ),
            "{error}"
        );
    }
}
