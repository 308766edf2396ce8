//! The example `generate` as a program: the same text from every pool, and how it answers bad files.

mod common;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use common::model::{SmallModel, small_model};

/// The program. Cargo builds it beside this test, but not if it is told to build tests alone; what is there then may be old.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let here = env::current_exe().expect("this program");
        let folder = here.ancestors().nth(2).expect("the folder of the profile");
        let target = folder.parent().expect("the target folder");
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        let status = Command::new(env!("CARGO"))
            .args(["build", "-q", "-p", "benches", "--example", "generate"])
            .args(["--profile", profile, "--target-dir"])
            .arg(target)
            .status();
        assert!(status.expect("cargo").success());
        folder.join("examples").join(format!("generate{}", env::consts::EXE_SUFFIX))
    })
}

fn generate(model: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("--model").arg(model).args(["--prompt", "What is a row?"]).args(arguments);
    command.output().expect("the program")
}

/// A folder with a file of this content.
fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, content).unwrap();
    (folder, path)
}

#[test]
fn the_text_is_the_same_from_every_pool() {
    let (_folder, path) = file(&small_model(true).file);
    let text = |arguments: &[&str]| {
        let output = generate(&path, &[&["--max-tokens", "24"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {errors}");
        assert!(errors.contains("tokens/s"), "{arguments:?}: {errors}");
        output.stdout
    };
    for more in [&["--activations", "f32"][..], &["--temperature", "1", "--seed", "7"]] {
        let expected = text(&[&["--pool", "serial"], more].concat());
        assert!(expected.len() > 24, "{}", String::from_utf8_lossy(&expected));
        for setting in [
            &["--pool", "rayon", "--threads", "2", "--batch", "1"][..],
            &["--pool", "epoch", "--threads", "1", "--batch", "1", "--packed"],
            &["--pool", "epoch", "--threads", "3", "--batch", "2"],
            &["--pool", "epoch-spin0", "--threads", "8", "--batch", "2", "--packed"],
        ] {
            assert_eq!(text(&[setting, more].concat()), expected, "{setting:?} {more:?}");
        }
    }
}

#[test]
fn two_settings_are_compared_bit_for_bit() {
    let (_folder, path) = file(&small_model(false).file);
    for packed in [&[][..], &["--packed"]] {
        let arguments = ["--max-tokens", "16", "--batch", "2", "--verify", "rayon:3"];
        let output = generate(&path, &[&arguments, packed].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, "16 tokens, 598 logits each: the same bits\n");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(errors.contains("were packed: "), !packed.is_empty(), "{errors}");
    }
}

#[test]
fn a_bad_file_is_one_line_and_exit_code_2() {
    let whole = small_model(true).file;
    let unknown_type = {
        let mut file = SmallModel::writer(true, |name| name != "blk.0.attn_q.weight");
        file.info("blk.0.attn_q.weight", &[256, 256], 99, 0);
        file.finish()
    };
    let without_tokens = SmallModel::writer(true, |name| name != "llama.block_count").finish();
    let cases: [(&[u8], &str); 6] = [
        (b"", "cut short"),
        (b"GGML\x03\0\0\0", "not a GGUF file"),
        (&whole[..whole.len() / 3], "data ends at byte"),
        (&whole[..1000], "cut short"),
        (&unknown_type, "tensor \"blk.0.attn_q.weight\""),
        (&without_tokens, "llama.block_count"),
    ];
    for (content, words) in cases {
        let (_folder, path) = file(content);
        check_refusal(&generate(&path, &[]), words);
    }
    let (folder, path) = file(b"");
    fs::remove_file(&path).unwrap();
    check_refusal(&generate(&path, &[]), "model.gguf");
    check_refusal(&generate(folder.path(), &[]), "error: ");
    // A prompt that fills the context of 64 tokens.
    let (_folder, path) = file(&whole);
    check_refusal(&generate(&path, &["--prompt", &"row ".repeat(64)]), "in a context of 64");
    // A prompt of nothing but a byte without a token.
    check_refusal(&generate(&path, &["--raw", "--prompt", "\u{4}"]), "no tokens");
}

#[test]
fn an_answer_ends_where_the_context_does() {
    let (_folder, path) = file(&small_model(true).file);
    for setting in [&[][..], &["--batch", "2"], &["--verify", "serial"]] {
        let more = [&["--max-tokens", "18446744073709551615"], setting].concat();
        let output = generate(&path, &more);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        assert!(errors.contains("note: in a context of 64 tokens"), "{errors}");
    }
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let whole = small_model(true).file;
    let (_folder, path) = file(&whole);
    // The small model has no chat template.
    check_refusal(&generate(&path, &["--system", "You are a row."]), "template");
    for more in [["--top-k", "3"], ["--top-p", "0.5"], ["--seed", "3"]] {
        check_refusal(&generate(&path, &more), "--temperature");
    }
    check_refusal(&generate(&path, &["--pool", "serial", "--threads", "2"]), "one thread");
    check_refusal(&generate(&path, &["--verify", "serial:2"]), "one thread");
    let engines = ["llama.cpp", "openblas", "chili", "rayon-inside", "no-such"];
    for (option, pool) in
        ["--pool", "--verify"].into_iter().flat_map(|o| engines.map(|pool| (o, pool)))
    {
        let output = generate(&path, &[option, pool]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        let first = errors.lines().next().unwrap_or_default();
        assert!(first.contains(pool) && first.contains("serial, spawn, rayon, epoch"), "{errors}");
    }
    let output = generate(&path, &["--max-tokens", "0"]);
    assert_eq!(output.status.code(), Some(2));
}

fn check_refusal(output: &Output, words: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(output.stdout.is_empty() && errors.lines().count() == 1, "{errors}");
    assert!(errors.contains(words) && errors.starts_with("error: "), "{errors} without {words}");
}
