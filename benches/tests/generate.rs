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
            ["--pool", "rayon", "--threads", "2", "--batch", "1"],
            ["--pool", "epoch", "--threads", "1", "--batch", "1"],
            ["--pool", "epoch", "--threads", "3", "--batch", "2"],
            ["--pool", "epoch-spin0", "--threads", "8", "--batch", "2"],
        ] {
            assert_eq!(text(&[&setting, more].concat()), expected, "{setting:?} {more:?}");
        }
    }
}

#[test]
fn two_settings_are_compared_bit_for_bit() {
    let (_folder, path) = file(&small_model(false).file);
    let output = generate(&path, &["--max-tokens", "16", "--batch", "2", "--verify", "rayon:3"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "16 tokens, 598 logits each: the same bits\n");
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
    // A prompt of nothing but a byte without a token.
    let (_folder, path) = file(&whole);
    check_refusal(&generate(&path, &["--raw", "--prompt", "\u{4}"]), "no tokens");
}

fn check_refusal(output: &Output, words: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(output.stdout.is_empty() && errors.lines().count() == 1, "{errors}");
    assert!(errors.contains(words) && errors.starts_with("error: "), "{errors} without {words}");
}
