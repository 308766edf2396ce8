//! Rules for prose: a file that is named must exist.

use std::collections::BTreeSet;

use super::Violation;

/// Extensions that make a word in backticks the name of a file of this workspace.
const EXTENSIONS: &[&str] = &[".rs", ".toml", ".yml", ".css"];

/// Checks the names of files in READMEs, ARCHITECTURE.md and the like.
pub(super) fn check(path: &str, content: &str, names: &BTreeSet<&str>) -> Vec<Violation> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut in_code = false;
    let mut violations = Vec::new();
    for (index, line) in content.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        // Every second piece between backticks is code; a lone one at the end is not.
        let pieces: Vec<&str> = line.split('`').collect();
        let closed = pieces.len() - 1;
        for name in pieces[..closed].iter().skip(1).step_by(2) {
            if !in_code && is_file_name(name) && !exists(name, folder, names) {
                let message = format!("`{name}` does not exist");
                violations.push(Violation::new(path, index + 1, message));
            }
        }
    }
    violations
}

fn is_file_name(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    word.chars().all(plain)
        && EXTENSIONS
            .iter()
            .any(|extension| word.strip_suffix(extension).is_some_and(|stem| !stem.is_empty()))
}

/// A name may be relative to the workspace, to the folder of the text, or the end of a path below it.
fn exists(name: &str, folder: &str, names: &BTreeSet<&str>) -> bool {
    let tail = format!("/{name}");
    names.iter().any(|path| {
        let inside = path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let below = folder.is_empty() || inside;
        *path == name || (below && path.ends_with(&tail))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_files_must_exist() {
        let names = BTreeSet::from(["crates/a/src/job.rs", "crates/b/src/lib.rs", "Cargo.toml"]);
        let cases = [
            ("README.md", "see `crates/a/src/job.rs` and `src/job.rs` and `job.rs`", true),
            ("README.md", "see `src/gone.rs`", false),
            ("README.md", "see `gone.rs", true),
            ("README.md", "`a b.rs` and `.rs` and `Pool::run`", true),
            ("crates/a/README.md", "see `src/job.rs`", true),
            ("crates/a/README.md", "see `src/lib.rs`", false),
            ("crates/a/README.md", "see `Cargo.toml`", true),
            ("README.md", "```\n`src/gone.rs`\n```", true),
        ];
        for (path, content, clean) in cases {
            assert_eq!(check(path, content, &names).is_empty(), clean, "{path}: {content}");
        }
    }
}
