//! `cargo xtask fuzz`: the targets of the folder `fuzz`, each for some seconds.
//!
//! They are libFuzzer's, laid out as cargo-fuzz has them. The instrumentation is LLVM's and there for the asking in any
//! release of Rust, so neither cargo-fuzz nor a nightly compiler is needed: a C++ compiler is, for libFuzzer itself. What the
//! fuzzer has learned is kept in the target folder from run to run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::cli::{FuzzOptions, UsageError};
use crate::debian::host;
use crate::output::print;
use crate::workspace::{cargo, root, step, target_dir};

/// How code is compiled so that the fuzzer sees which of it runs, as cargo-fuzz does it.
const FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// An input that takes longer, in seconds, or more memory, in MiB, is a failure. A machine that is busy makes a second long.
const LIMITS: [&str; 2] = ["-timeout=60", "-rss_limit_mb=2048"];

/// Fails if something is not installed.
pub(crate) fn require_tools() -> anyhow::Result<()> {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let found = Command::new(&compiler).arg("--version").stdout(Stdio::null()).status();
    ensure!(
        found.is_ok_and(|status| status.success()),
        "no C++ compiler for libFuzzer: {} (Debian: apt-get install -y --no-install-recommends g++)",
        compiler.to_string_lossy()
    );
    Ok(())
}

/// Builds the targets and runs one after the other; stops at the first that fails.
pub(crate) fn run(options: &FuzzOptions) -> anyhow::Result<()> {
    let targets = chosen(&options.targets, targets()?)?;
    require_tools()?;
    let folder = target_dir()?.join("fuzz");
    build(&targets, &folder)?;
    targets.iter().try_for_each(|target| fuzz(target, options.seconds, &folder))
}

/// The names of all targets: a target is a file.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let files = fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let name = |path: PathBuf| {
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        is_rust.then(|| Some(path.file_stem()?.to_str()?.to_owned())).flatten()
    };
    let mut names = files.iter().filter_map(|file| name(file.path())).collect::<Vec<_>>();
    names.sort();
    Ok(names)
}

/// Those that were asked for, or all.
fn chosen(asked: &[String], all: Vec<String>) -> Result<Vec<String>, UsageError> {
    match asked.iter().find(|name| !all.contains(name)) {
        Some(name) => {
            let names = all.join(", ");
            Err(UsageError(format!("unknown fuzz target `{name}`; the targets are {names}")))
        }
        None if asked.is_empty() => Ok(all),
        None => Ok(asked.to_vec()),
    }
}

fn build(targets: &[String], folder: &Path) -> anyhow::Result<()> {
    let mut command = cargo();
    command.args(["build", "--manifest-path", "fuzz/Cargo.toml", "--locked", "--release"]);
    // With a target named, build scripts and macros are not instrumented.
    command.args(["--target", &host()]);
    command.args(targets.iter().flat_map(|target| ["--bin", target]));
    step(command.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", folder))
}

fn fuzz(target: &str, seconds: u32, folder: &Path) -> anyhow::Result<()> {
    let program = folder.join(host()).join("release").join(target);
    let (corpus, failures) = (folder.join("corpus").join(target), folder.join("failures"));
    for made in [&corpus, &failures] {
        fs::create_dir_all(made).with_context(|| format!("{}", made.display()))?;
    }
    let mut command = Command::new(&program);
    // Inputs may grow soon: a machine is several files.
    command.args(LIMITS).arg("-len_control=20").arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/{target}-", failures.display()));
    let seeds = root().join("fuzz/seeds").join(target);
    command.arg(&corpus).args(Some(seeds).filter(|seeds| seeds.is_dir()));
    let output = command.output().with_context(|| format!("{}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{}", what_failed(&text));
        bail!("{target} failed; to run its input again: {} FILE", program.display());
    }
    let done = text.lines().rev().find_map(|line| line.strip_prefix("Done "));
    print(&format!("{target}: {}", done.unwrap_or("done")));
    Ok(())
}

/// The end of the output, from where it says what was wrong; it says as well where the input is.
fn what_failed(output: &str) -> String {
    let starts = ["panicked at ", "ERROR: libFuzzer", "error: "];
    let lines = output.lines().collect::<Vec<_>>();
    let first = lines.iter().position(|line| starts.iter().any(|start| line.contains(start)));
    lines[first.unwrap_or(lines.len().saturating_sub(40))..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use benches::gguf::Gguf;
    use benches::llama::Model;
    use rowpar::Format;

    use super::*;

    #[test]
    fn every_target_is_in_the_manifest_and_the_other_way_round() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        let paths = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""));
        let mut paths = paths.map(str::to_owned).collect::<Vec<_>>();
        paths.sort();
        assert_eq!(paths, targets().unwrap());
        for name in paths {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        }
    }

    #[test]
    fn seeds_are_those_of_a_target() {
        let targets = targets().unwrap();
        for folder in fs::read_dir(root().join("fuzz/seeds")).unwrap() {
            let name = folder.unwrap().file_name().into_string().unwrap();
            assert!(targets.contains(&name), "{name}");
        }
    }

    /// What the target does with a model, it does with every seed.
    #[test]
    fn seeds_of_gguf_are_models_in_all_formats() {
        let mut types = HashSet::new();
        for file in fs::read_dir(root().join("fuzz/seeds/gguf")).unwrap() {
            let path = file.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let gguf = Gguf::parse(&bytes).unwrap();
            Model::from_gguf(&gguf).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            types.extend(gguf.tensors().map(|tensor| tensor.tensor_type.id()));
        }
        for format in Format::ALL {
            assert!(types.contains(&format.gguf_id()), "{format}");
        }
    }

    #[test]
    fn a_failure_is_told_from_its_start() {
        let output = "INFO: Seed\n#1 NEW\nthread 'x' panicked at a.rs:1\nleft: 1\nTest unit in y";
        assert_eq!(what_failed(output), output[output.find("thread").unwrap()..]);
        assert_eq!(what_failed(&"line\n".repeat(50)).lines().count(), 40);
    }

    #[test]
    fn targets_are_chosen_by_name() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let all = names(&["a", "b", "c"]);
        assert_eq!(chosen(&[], all.clone()).unwrap(), all);
        assert_eq!(chosen(&names(&["c", "a"]), all.clone()).unwrap(), names(&["c", "a"]));
        assert!(chosen(&names(&["d"]), all).unwrap_err().to_string().contains("a, b, c"));
    }
}
