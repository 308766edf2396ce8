//! Rules for the files of a crate: what each one must have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Violation;

/// Keys that the manifest of a published crate must have.
const KEYS: &[&str] = &["description", "keywords", "readme"];

/// Checks every folder under `crates`.
pub(super) fn check(root: &Path, names: &BTreeSet<&str>) -> anyhow::Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for crate_name in crates(names) {
        for file in ["README.md", "CHANGELOG.md"] {
            let path = format!("crates/{crate_name}/{file}");
            if !names.contains(path.as_str()) {
                violations.push(Violation::new(&path, 1, "missing"));
            }
        }
        let path = format!("crates/{crate_name}/Cargo.toml");
        violations.extend(check_manifest(&path, &fs::read_to_string(root.join(&path))?));
    }
    Ok(violations)
}

/// The names of the folders under `crates` that have a manifest.
fn crates<'a>(names: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let manifests = names.iter().filter_map(|path| {
        path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|name| !name.contains('/'))
    });
    manifests.collect()
}

fn check_manifest(path: &str, content: &str) -> Vec<Violation> {
    let has = |key: &str| {
        content.lines().any(|line| {
            line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(['=', '.']))
        })
    };
    let missing = KEYS.iter().filter(|key| !has(key));
    missing.map(|key| Violation::new(path, 1, format!("no {key}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_need_their_keys() {
        let whole = "[package]\ndescription = \"a\"\nkeywords = []\nreadme.workspace = true\n";
        assert!(check_manifest("a", whole).is_empty());
        let found = check_manifest("a", "[package]\ndescriptions = 1\nreadme = \"b\"\n");
        let messages: Vec<&str> = found.iter().map(|v| v.message.as_str()).collect();
        assert_eq!(messages, ["no description", "no keywords"]);
    }

    #[test]
    fn crates_are_the_folders_with_a_manifest() {
        let names = BTreeSet::from([
            "crates/a/Cargo.toml",
            "crates/a/src/x/Cargo.toml",
            "xtask/Cargo.toml",
        ]);
        assert_eq!(crates(&names), BTreeSet::from(["a"]));
    }
}
