//! Where this workspace and its build output are, and how to run a command in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// The folder of the workspace manifest.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// The cargo that started this process, or the one on the path.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Cargo's target folder, wherever the environment or a configuration file puts it.
pub(crate) fn target_dir() -> anyhow::Result<PathBuf> {
    let output = cargo()
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let folder = metadata["target_directory"].as_str().context("no target folder in metadata")?;
    Ok(PathBuf::from(folder))
}

/// Prints a command, runs it, and fails if it fails.
pub(crate) fn step(command: &mut Command) -> anyhow::Result<()> {
    eprintln!("\n$ {}", display(command));
    let status = command.status().with_context(|| format!("cannot run {}", display(command)))?;
    if !status.success() {
        bail!("failed ({status}): {}", display(command));
    }
    Ok(())
}

/// A command as one would type it.
pub(crate) fn display(command: &Command) -> String {
    let quote = |text: &str| {
        if text.contains(' ') { format!("{text:?}") } else { text.to_owned() }
    };
    let variables = command.get_envs().filter_map(|(key, value)| {
        Some(format!("{}={}", key.to_string_lossy(), quote(&value?.to_string_lossy())))
    });
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let program = std::iter::once(program.to_string_lossy().into_owned());
    let arguments = command.get_args().map(|argument| quote(&argument.to_string_lossy()));
    variables.chain(program).chain(arguments).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_the_workspace_manifest() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "a b"]).env("RUSTFLAGS", "--cfg loom");
        assert_eq!(display(&command), "RUSTFLAGS=\"--cfg loom\" cargo test \"a b\"");
    }
}
