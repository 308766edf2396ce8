//! llama.cpp as a backend: a script for Node, on a package that the user installs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::UsageError;
use crate::workspace;

/// The version that the script was written for, which brings llama.cpp v0.5.0.
const PACKAGE: &str = "node-llama-cpp@3.22.1";

/// Node, the script and the folder of the package.
#[derive(Debug)]
pub(crate) struct LlamaCpp {
    node: OsString,
    script: PathBuf,
    folder: PathBuf,
}

impl LlamaCpp {
    /// Finds what is needed. What is missing is a [`UsageError`] that says how to install it; nothing is installed here.
    pub(crate) fn find(target: &Path) -> Result<Self, UsageError> {
        let node = std::env::var_os("NODE").unwrap_or_else(|| "node".into());
        Self::find_with(node, target.join("llama.cpp"))
    }

    fn find_with(node: OsString, folder: PathBuf) -> Result<Self, UsageError> {
        let missing = |what: &str, how: &str| {
            Err(UsageError(format!("not to be measured here: llama.cpp, as {what} (try: {how})")))
        };
        let found = Command::new(&node)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !found.is_ok_and(|status| status.success()) {
            let what = format!("`{}` does not run", node.display());
            return missing(&what, "install Node.js 20 or later, or name it in the variable NODE");
        }
        if !folder.join("node_modules/node-llama-cpp/package.json").is_file() {
            let how = format!("npm install --prefix {} {PACKAGE}", shown(&folder));
            return missing("its npm package is not there", &how);
        }
        let script = workspace::root().join("benches").join("peers").join("llama-cpp.mjs");
        Ok(Self { node, script, folder })
    }

    /// The command that takes a request as its next argument.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).arg(&self.folder);
        command
    }
}

/// A path as short as it can be typed where the user is.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_the_command_that_installs_it() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |node: &str| {
            let UsageError(message) =
                LlamaCpp::find_with(node.into(), folder.path().into()).unwrap_err();
            message
        };
        assert!(refusal("/no/such/program").contains("install Node.js"));
        // Any program that knows `--version` stands in for Node.
        let message = refusal("cargo");
        assert!(message.contains("npm install --prefix"), "{message}");
        assert!(message.contains(&folder.path().display().to_string()), "{message}");
        let package = folder.path().join("node_modules/node-llama-cpp");
        std::fs::create_dir_all(&package).unwrap();
        std::fs::write(package.join("package.json"), "{}").unwrap();
        let found = LlamaCpp::find_with("cargo".into(), folder.path().into()).unwrap();
        let arguments: Vec<OsString> = found.command().get_args().map(Into::into).collect();
        assert!(Path::new(&arguments[0]).is_file(), "the script is in the tree");
        assert_eq!(arguments[1], folder.path());
    }
}
