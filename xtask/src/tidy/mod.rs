//! `cargo xtask tidy`: rules about the text of this workspace that no compiler checks.
//!
//! A rule is a function of a path and a text. The same rules run as a test of this package.

mod files;
mod markdown;
mod rust;
mod text;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::workspace;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    path: String,
    line: usize,
    message: String,
}

impl Violation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks the whole tree; prints each violation.
pub(crate) fn run() -> anyhow::Result<()> {
    let violations = check_tree(workspace::root())?;
    for violation in &violations {
        crate::output::print(&violation.to_string());
    }
    match violations.len() {
        0 => Ok(()),
        n => bail!("tidy found {n} violations"),
    }
}

/// Every violation in the files under `root`, ordered by place.
fn check_tree(root: &Path) -> anyhow::Result<Vec<Violation>> {
    let mut paths = Vec::new();
    list(root, "", &mut paths)?;
    let names: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    let mut violations = files::check(root, &names)?;
    for path in &paths {
        let content = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        let Ok(content) = String::from_utf8(content) else { continue };
        violations.extend(check_file(path, &content, &names));
    }
    violations.sort();
    Ok(violations)
}

/// The violations in one file; `names` are all paths of the tree.
fn check_file(path: &str, content: &str, names: &BTreeSet<&str>) -> Vec<Violation> {
    let mut violations = text::check(path, content);
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("rs") => violations.extend(rust::check(path, content)),
        Some("md") => violations.extend(markdown::check(path, content, names)),
        _ => {}
    }
    violations
}

/// The files under `root`, relative to it and with `/` between the parts; not hidden ones nor build output.
fn list(root: &Path, folder: &str, paths: &mut Vec<String>) -> anyhow::Result<()> {
    let place = root.join(folder);
    for entry in fs::read_dir(&place).with_context(|| format!("cannot list {}", place.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let skipped = matches!(name.as_str(), ".git" | "target" | "shared");
        if entry.file_type()?.is_dir() {
            if !skipped {
                list(root, &path, paths)?;
            }
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_is_tidy() {
        let violations = check_tree(workspace::root()).unwrap();
        let lines: Vec<String> = violations.iter().map(Violation::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }

    #[test]
    fn a_violation_is_printed_as_a_place() {
        let violation = Violation::new("a/b.rs", 3, "no");
        assert_eq!(violation.to_string(), "a/b.rs:3: no");
    }
}
