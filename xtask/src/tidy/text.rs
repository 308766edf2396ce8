//! Rules for every text file: white space at the ends of lines, tabs, machine paths.

use super::Violation;

/// Extensions of the files in which white space is checked.
const SOURCES: &[&str] = &[".rs", ".md", ".toml", ".yml", ".css"];
/// Paths that exist on one machine only, cut in two so that this file does not break its own rule.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Checks the text of one file.
pub(super) fn check(path: &str, content: &str) -> Vec<Violation> {
    if !SOURCES.iter().any(|extension| path.ends_with(extension)) {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for (index, line) in content.lines().enumerate() {
        let mut report =
            |message: String| violations.push(Violation::new(path, index + 1, message));
        if line.ends_with([' ', '\t']) {
            report("white space at the end of the line".into());
        }
        if line.contains('\t') {
            report("a tab".into());
        }
        for machine_path in MACHINE_PATHS {
            if line.contains(machine_path) {
                report(format!("a path of one machine: {machine_path}"));
            }
        }
    }
    let n_lines = content.lines().count();
    if !content.is_empty() && !content.ends_with('\n') {
        violations.push(Violation::new(path, n_lines, "no newline at the end of the file"));
    }
    if content.ends_with("\n\n") {
        violations.push(Violation::new(path, n_lines, "an empty line at the end of the file"));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Path, text, and the lines with a violation.
    const CASES: &[(&str, &str, &[usize])] = &[
        ("a.rs", "", &[]),
        ("a.rs", "fn a() {}\n", &[]),
        ("a.rs", "fn a() {} \n", &[1]),
        ("a.md", "one\n\ttwo\n", &[2]),
        ("a.toml", "a = 1", &[1]),
        ("a.toml", "a = 1\n\n", &[2]),
        ("a.md", concat!("in /ro", "ot/x\n"), &[1]),
        ("a.rs", concat!("\"/ho", "me/me\"\n"), &[1]),
        ("a.json", "{ \t}", &[]),
    ];

    #[test]
    fn white_space_and_machine_paths() {
        for (path, content, expected) in CASES {
            let lines: Vec<usize> = check(path, content).iter().map(|v| v.line).collect();
            assert_eq!(&lines, expected, "{path}: {content:?}");
        }
    }
}
