//! Rules for Rust files: where unsafe code and atomics may be, how long a file is, what must not stay.

use super::Violation;

/// Most lines of code in a file, tests not counted.
const MAX_LINES: usize = 400;
/// Where unsafe code may be: a path that begins and goes on like one of these.
const UNSAFE_ALLOWED: &[(&str, &str)] = &[
    ("crates/", "/src/sys/"),
    ("crates/", "/tests/"),
    ("crates/epoch-pool/", "src/job.rs"),
    ("crates/epoch-pool/", "src/dispatch.rs"),
    ("crates/epoch-pool/", "src/tests/"),
    ("crates/rowpar/", "src/pool/"),
    ("crates/rowpar/", "src/kernel/"),
    ("benches/", "src/spawn.rs"),
    ("benches/", "src/metered.rs"),
    ("benches/", "src/runner.rs"),
    ("benches/", "src/gguf/map.rs"),
    ("benches/", "src/bin/"),
    ("benches/", "examples/generate.rs"),
    ("benches/", "tests/gguf_allocations.rs"),
    ("benches/", "tests/llama_floats.rs"),
    ("benches/", "peers/src/bin/"),
    ("benches/", "peers/src/pool/"),
    ("benches/", "peers/src/library/"),
    ("soak/", "src/sys/"),
    ("xtask/", "src/bench/model.rs"),
];
/// What epoch-pool may name in `sync.rs` and the folder `sync` only, so that loom sees every use.
const LOOM_ONLY: &[&str] = &[
    "std::sync::atomic",
    "core::sync::atomic",
    "std::thread",
    "std::hint",
    "core::hint",
    "std::cell",
];
/// What must not stay in the tree. Cut in two, so that this file does not break its own rule.
const UNFINISHED: &[&str] = &[
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("#[ign", "ore"),
];
const FORBID: &str = "#![forbid(unsafe_code)]";

/// Checks one Rust file.
pub(super) fn check(path: &str, content: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let code = code_lines(content);
    let is_test_file = is_test_path(path);
    if code.iter().filter(|(_, line)| !line.is_empty()).count() > MAX_LINES && !is_test_file {
        violations.push(Violation::new(path, 1, format!("more than {MAX_LINES} lines of code")));
    }
    let unsafe_allowed = is_unsafe_allowed(path);
    for (number, line) in &code {
        if !unsafe_allowed && has_unsafe(line) {
            violations.push(Violation::new(
                path,
                *number,
                "unsafe code is not allowed in this file",
            ));
        }
        if must_go_through_sync(path) {
            for name in LOOM_ONLY.iter().filter(|name| line.contains(*name)) {
                let message = format!("{name} only in `sync.rs`, where loom can replace it");
                violations.push(Violation::new(path, *number, message));
            }
        }
    }
    for (index, line) in content.lines().enumerate() {
        for word in UNFINISHED.iter().filter(|word| line.contains(*word)) {
            violations.push(Violation::new(path, index + 1, format!("{word} must not stay")));
        }
    }
    if must_forbid_unsafe(path, content) && !content.lines().any(|line| line == FORBID) {
        violations.push(Violation::new(path, 1, format!("{FORBID} is missing")));
    }
    violations
}

/// The lines outside comments and in front of the unit tests, with their numbers.
///
/// Comments to the end of a line are cut off; unit tests stand at the end of a file (`#[cfg(test)]` in
/// front of a module with a body), as everywhere in this workspace.
fn code_lines(content: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = content.lines().collect();
    let tests = lines.windows(2).position(|pair| {
        pair[0].starts_with("#[cfg(")
            && pair[0].contains("test")
            && pair[1].starts_with("mod ")
            && pair[1].ends_with('{')
    });
    let code = &lines[..tests.unwrap_or(lines.len())];
    code.iter().enumerate().map(|(index, line)| (index + 1, strip_comment(line))).collect()
}

fn strip_comment(line: &str) -> &str {
    let code = line.split_once("//").map_or(line, |(code, _)| code);
    code.trim()
}

/// The word `unsafe` as code: not inside another word, and not in a lint's name or a string.
fn has_unsafe(line: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices("unsafe").any(|(start, word)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let in_string = line[..start].matches('"').count() % 2 == 1;
        !before.is_some_and(is_word) && !after.is_some_and(is_word) && !in_string
    })
}

fn is_unsafe_allowed(path: &str) -> bool {
    UNSAFE_ALLOWED.iter().any(|(folder, part)| {
        path.strip_prefix(folder).is_some_and(|rest| {
            rest.starts_with(part) || rest.contains(part) && part.starts_with('/')
        })
    })
}

/// Tests, examples and benches of a package, and test modules in files of their own.
fn is_test_path(path: &str) -> bool {
    path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs")
}

fn must_go_through_sync(path: &str) -> bool {
    let inside = path.strip_prefix("crates/epoch-pool/src/");
    let exempt = ["tests.rs", "tests/", "sync.rs", "sync/", "compile_fail.rs"];
    inside.is_some_and(|name| !exempt.iter().any(|start| name.starts_with(start)))
}

/// Leaf files of the crates; the roots and the files that hold unsafe modules cannot forbid.
fn must_forbid_unsafe(path: &str, content: &str) -> bool {
    let Some((_, inside)) = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
    else {
        return false;
    };
    let name = inside.rsplit('/').next().unwrap_or(inside);
    let is_root = matches!(name, "lib.rs" | "main.rs" | "mod.rs");
    let declares_modules = content.lines().any(|line| {
        let line = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        line.starts_with("mod ") && line.ends_with(';')
    });
    !is_root && !declares_modules && !is_unsafe_allowed(path) && !inside.starts_with("tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORBIDDING: &str = "//! Docs.\n\n#![forbid(unsafe_code)]\n\n";

    fn messages(path: &str, content: &str) -> Vec<(usize, String)> {
        check(path, content).into_iter().map(|v| (v.line, v.message)).collect()
    }

    #[test]
    fn unsafe_code_has_its_places() {
        let code = "unsafe impl Send for A {}\n";
        let cases = [
            ("crates/cpu-qos/src/sys/apple.rs", true),
            ("crates/epoch-pool/src/job.rs", true),
            ("crates/epoch-pool/tests/pool.rs", true),
            ("crates/rowpar/src/kernel/avx2.rs", true),
            ("crates/rowpar/src/matvec.rs", false),
            ("crates/epoch-pool/src/pool.rs", false),
            ("benches/src/spawn.rs", true),
            ("benches/src/backend.rs", false),
            ("benches/peers/src/pool/chili.rs", true),
            ("benches/peers/src/calls.rs", false),
            ("soak/src/sys/fork.rs", true),
            ("soak/src/perform.rs", false),
            ("xtask/src/main.rs", false),
        ];
        for (path, allowed) in cases {
            let found = messages(path, &format!("{FORBIDDING}{code}"));
            assert_eq!(found.is_empty(), allowed, "{path}: {found:?}");
        }
    }

    #[test]
    fn unsafe_is_a_word_of_code() {
        let cases = [
            ("unsafe { a() }", true),
            ("pub unsafe fn a()", true),
            ("let unsafety = 1;", false),
            ("#![forbid(unsafe_code)]", false),
            ("print(\"unsafe\")", false),
            ("(unsafe)", true),
        ];
        for (line, expected) in cases {
            assert_eq!(has_unsafe(line), expected, "{line}");
        }
        assert_eq!(strip_comment("let a = 1; // unsafe"), "let a = 1;");
    }

    #[test]
    fn atomics_go_through_the_shim() {
        let code = format!("{FORBIDDING}use std::sync::atomic::AtomicU32;\n");
        let in_tests =
            format!("{FORBIDDING}#[cfg(test)]\nmod tests {{\n    use std::thread;\n}}\n");
        let in_docs = format!("{FORBIDDING}/// As in [`std::thread::park`].\nfn a() {{}}\n");
        let cases = [
            ("crates/epoch-pool/src/wait.rs", &code, false),
            ("crates/epoch-pool/src/sync.rs", &code, true),
            ("crates/epoch-pool/src/tests/loom.rs", &code, true),
            ("crates/rowpar/src/matvec.rs", &code, true),
            ("crates/epoch-pool/src/wait.rs", &in_tests, true),
            ("crates/epoch-pool/src/wait.rs", &in_docs, true),
        ];
        for (path, content, clean) in cases {
            let found = messages(path, content);
            assert_eq!(found.is_empty(), clean, "{path}: {found:?}");
        }
    }

    #[test]
    fn leaf_files_forbid_unsafe_code() {
        let cases = [
            ("crates/a/src/plan.rs", "fn a() {}\n", false),
            ("crates/a/src/plan.rs", FORBIDDING, true),
            ("crates/a/src/lib.rs", "mod sys;\n", true),
            ("crates/a/src/linux/mod.rs", "mod sys;\n", true),
            ("crates/a/src/class.rs", "#[cfg(test)]\nmod tests;\n", true),
            ("crates/a/src/sys/linux.rs", "fn a() {}\n", true),
            ("crates/a/examples/show.rs", "fn a() {}\n", true),
        ];
        for (path, content, clean) in cases {
            assert_eq!(messages(path, content).is_empty(), clean, "{path}: {content}");
        }
    }

    #[test]
    fn length_counts_code_in_front_of_the_tests() {
        let line = "fn a() {}\n";
        let long = format!("{FORBIDDING}{}", line.repeat(MAX_LINES));
        assert_eq!(
            messages("crates/a/src/b.rs", &long).len(),
            1,
            "one line too many with the attribute"
        );
        let comments = format!("{FORBIDDING}{}", "// a\n\n".repeat(MAX_LINES));
        assert!(messages("crates/a/src/b.rs", &comments).is_empty());
        let tests =
            format!("{FORBIDDING}#[cfg(test)]\nmod tests {{\n{}}}\n", line.repeat(MAX_LINES));
        assert!(messages("crates/a/src/b.rs", &tests).is_empty());
        assert!(messages("crates/a/tests/b.rs", &long).is_empty());
    }

    #[test]
    fn nothing_unfinished_stays() {
        for word in UNFINISHED {
            let content = format!("{FORBIDDING}{word}\n");
            assert_eq!(messages("crates/a/src/b.rs", &content).len(), 1, "{word}");
        }
    }
}
