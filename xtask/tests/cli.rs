//! Mistakes on the command line: one line that says what is wrong, exit code 2, nothing measured.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn xtask(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap()
}

/// Checks that `arguments` are refused; returns the line that says why.
fn refusal(arguments: &[&str]) -> String {
    let output = xtask(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    stderr
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn mistakes_in_the_arguments() {
    let cases: [&[&str]; 37] = [
        &[],
        &["benhc"],
        &["bench", "latency"],
        &["bench", "--backends", "tbb"],
        &["bench", "--backends", "epoch,tbb"],
        &["bench", "--backends", ""],
        &["bench", "--placement", "somewhere"],
        &["bench", "--placement", ""],
        &["bench", "--threads", "0"],
        &["bench", "--threads", "many"],
        &["bench", "--threads"],
        &["bench", "--shape", "gpt-2"],
        &["bench", "--spin", ""],
        &["bench", "--spin", "-1"],
        &["bench", "--spin", "4294967296"],
        &["bench", "model"],
        &["bench", "--tokens", "5"],
        &["bench", "--backends", "llama.cpp"],
        &["bench", "decode", "--model"],
        &["bench", "decode", "--model", "f", "--tokens", "0"],
        &["bench", "matvec", "--model", "f"],
        &["bench", "--model", "f", "--format", "Q8_0"],
        &["bench", "--unknown"],
        &["bench", "--format", "Q9_9"],
        &["bench", "--batch", "0"],
        &["bench", "--kernel", "abacus"],
        &["bench", "--input", "q4"],
        &["bench", "--working-set", "much"],
        &["bench", "dispatch", "--backends", "openblas"],
        &["bench", "matvec", "--backends", "openblas", "--format", "Q8_0"],
        &["bench", "matvec", "--backends", "gemm", "--packed"],
        &["bench", "--quick", "--check", "."],
        &["ci", "now"],
        &["loom", "--mutants", "no_wakeup_is_lost"],
        &["topology", "--json"],
        &["fuzz", "no_such_target"],
        &["fuzz", "--seconds", "0"],
    ];
    for arguments in cases {
        refusal(arguments);
    }
}

#[test]
fn the_line_names_what_would_have_been_right() {
    assert!(refusal(&["bench", "latency"]).contains("dispatch, matvec, decode"));
    assert!(refusal(&["bench", "--backends", "tbb"]).contains("epoch-spin0"));
    assert!(refusal(&["bench", "--placement", "pinned"]).contains("one-per-core"));
    assert!(refusal(&["bench", "--shape", "gpt-2"]).contains("Llama-3.2-1B"));
    assert!(refusal(&["bench", "--format", "Q9_9"]).contains("Q6_K"));
    assert!(refusal(&["bench", "--kernel", "abacus"]).contains("scalar"));
    assert!(refusal(&["bench", "--threads", "0"]).contains("at least 1 thread"));
}

/// A file of one tensor of this type; a whole one is much longer.
fn model_file(magic: &[u8], tensor_type: u32) -> Vec<u8> {
    let mut file = [magic, &3_u32.to_le_bytes()].concat();
    for count in [1_u64, 0, 1] {
        file.extend(count.to_le_bytes()); // tensors, entries, bytes of the first name
    }
    file.push(b't');
    file.extend(1_u32.to_le_bytes());
    file.extend(4_u64.to_le_bytes());
    file.extend(tensor_type.to_le_bytes());
    file.extend(0_u64.to_le_bytes());
    file.resize(file.len().next_multiple_of(32) + 16, 0);
    file
}

#[test]
fn a_model_that_cannot_be_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    let out = folder.path().join("out");
    let whole = model_file(b"GGUF", 0);
    let cases = [
        (Vec::new(), "cut short"),
        (whole[..whole.len() - 1].to_vec(), "data ends at byte"),
        (whole[..30].to_vec(), "cut short"),
        (model_file(b"GGML", 0), "not a GGUF file"),
        (model_file(b"GGUF", 99), "unknown tensor type 99"),
        (whole, "general.architecture"),
    ];
    for (content, words) in cases {
        fs::write(&file, content).unwrap();
        let line = refusal(&["bench", "decode", "--model", path(&file), "--out", path(&out)]);
        assert!(line.contains(words) && line.contains("model.gguf"), "{line} without {words}");
    }
    fs::remove_file(&file).unwrap();
    for file in [&file, folder.path()] {
        let line = refusal(&["bench", "decode", "--model", path(file), "--out", path(&out)]);
        assert!(line.contains(path(file)), "{line}");
    }
    assert!(!out.exists(), "nothing was begun");
}

#[test]
fn a_folder_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for out in [file.clone(), file.join("below")] {
        let line = refusal(&["bench", "--quick", "--out", path(&out)]);
        assert!(line.contains(path(&out)), "{line}");
    }
}

#[test]
fn a_baseline_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let baseline = folder.path().join("baseline");
    let arguments = ["bench", "--out", path(&out), "--baseline", path(&baseline)];
    refusal(&arguments);
    fs::create_dir(&baseline).unwrap();
    for text in ["", "{", "[]", "{}", r#"{"schema": 99}"#, r#"{"schema": 1, "results": 3}"#] {
        fs::write(baseline.join("results.json"), text).unwrap();
        let line = refusal(&arguments);
        assert!(line.contains("results.json"), "{line}");
    }
}

#[test]
fn results_that_are_not_whole() {
    let folder = tempfile::tempdir().unwrap();
    refusal(&["bench", "--check", path(folder.path())]);
    let empty = r#"{"schema": 1, "machine": {"cpu": "", "logical_cpus": 1, "physical_cores": 1, "quota": null,
        "last_level_cache_mib": null, "memory_mib": null, "os": "", "isa": "", "threads": 1,
        "load_average": null, "busy_elsewhere": null, "notes": []}, "commit": "", "rustc": "", "rounds": 1, "results": []}"#;
    fs::write(folder.path().join("results.json"), empty).unwrap();
    let output = xtask(&["bench", "--check", path(folder.path())]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}

#[test]
fn help_is_no_mistake() {
    for arguments in [&["--help"][..], &["bench", "--help"], &["help", "bench"]] {
        let output = xtask(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stderr.is_empty() && !output.stdout.is_empty(), "{arguments:?}");
    }
}
