//! The suite of a model's file, on a small model that the test writes: through the measuring binary, as `cargo xtask bench` does it.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use benches::llama::Activations;
use benches::model_suite::{PROMPT, inspect};
use benches::protocol::{Measurement, ModelRequest, Report, Request, Suite};
use benches::{Backend, Contender, ModelShape, Placement, Variants};
use common::model::{N_CONTEXT, SmallModel, small_model};

fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Small-Model.gguf");
    fs::write(&path, content).unwrap();
    (folder, path)
}

fn request(contender: Contender, threads: usize, file: &Path, n_tokens: usize) -> Request {
    Request {
        suite: Suite::Model,
        backend: contender,
        threads,
        shape: ModelShape::ALL[0].name.into(),
        budget_ms: 0,
        working_set: 0,
        variants: Variants::default(),
        model: Some(ModelRequest {
            file: file.into(),
            activations: Activations::default(),
            prompt: PROMPT.into(),
            n_tokens,
        }),
    }
}

fn run(request: &Request) -> Output {
    let argument = serde_json::to_string(request).unwrap();
    Command::new(env!("CARGO_BIN_EXE_bench-runner")).arg(argument).output().unwrap()
}

fn report(request: &Request) -> Report {
    let output = run(request);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_backend_makes_the_same_tokens_and_says_what_they_cost() {
    let (_folder, path) = file(&small_model(true).file);
    let facts = inspect(&fs::read(&path).unwrap(), &path, 9).unwrap();
    assert_eq!((facts.name.as_str(), facts.n_tokens), ("small-model", 9));
    let backends: Vec<Backend> =
        Backend::ALL.iter().copied().filter(|b| !b.is_peer() && !b.is_engine()).collect();
    let mut checksums = BTreeSet::new();
    for contender in Contender::all(&backends, &[Placement::None], &[0, 1000]) {
        let report = report(&request(contender, 3, &path, facts.n_tokens));
        assert_eq!(report.participants, contender.backend().participants(3), "{contender}");
        checksums.insert(report.checksums["small-model"].clone());
        let has_ratios = report.measurements.iter().all(|m| m.value.max(m.resolution) > 0.0);
        assert!(has_ratios, "{contender}: nothing over nothing is no ratio");
        let value = |metric: &str| {
            let mut all = report.measurements.iter();
            let found = all.find(|m| m.metric == metric).map(|m| (m.case.as_str(), m.value));
            let (case, value) = found.unwrap_or_else(|| panic!("{metric} of {contender}"));
            assert!(case == "small-model" && value.is_finite(), "{metric} of {contender}");
            value
        };
        let bandwidth = value("tokens_per_s") * facts.bytes_per_token as f64 / 1e9;
        assert!((value("bandwidth") / bandwidth - 1.0).abs() < 1e-9);
        assert!(
            (value("of_ceiling") / 100.0 * value("read_ceiling") / bandwidth - 1.0).abs() < 1e-9
        );
        let shares =
            ["matvec", "dispatch", "attention", "rest"].map(|part| value(&format!("{part}_share")));
        assert!(
            shares.iter().all(|share| (0.0..=100.0).contains(share)),
            "{contender}: {shares:?}"
        );
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.1, "{contender}: {shares:?}");
        if cfg!(unix) {
            assert!(value("cpu_ms_per_token") > 0.0, "{contender}");
        }
        // The head alone is some 100 KB: too little for pools that wake threads.
        assert!(value("dispatches") <= 4.0 * 2.0 + 2.0 + 1.0, "{contender}");
    }
    assert_eq!(checksums.len(), 1, "{checksums:?}");
}

#[test]
fn packed_matrices_are_a_case_of_their_own() {
    for with_head in [true, false] {
        let (_folder, path) = file(&small_model(with_head).file);
        let mut request = request(Backend::Epoch.into(), 2, &path, 9);
        let rows = report(&request);
        request.variants.packed = true;
        let both = report(&request);
        assert_eq!(both.checksums, rows.checksums);
        let metrics = |report: &Report, case: &str| -> Vec<String> {
            let of_case = report.measurements.iter().filter(|m| m.case == case);
            of_case.map(|m| m.metric.clone()).collect()
        };
        let expected = metrics(&rows, "small-model");
        assert_eq!(metrics(&both, "small-model"), expected);
        let packed = [&expected[..], &["packing_gain".into()]].concat();
        assert_eq!(metrics(&both, "small-model-packed"), packed);
        let is_gain = |m: &&Measurement| m.metric == "packing_gain";
        assert!(both.measurements.iter().find(is_gain).unwrap().value > 0.0);
    }
}

#[test]
fn other_tokens_have_another_checksum() {
    let (_folder, path) = file(&small_model(true).file);
    let checksum = |n_tokens, activations| {
        let mut request = request(Backend::Serial.into(), 1, &path, n_tokens);
        request.model.as_mut().unwrap().activations = activations;
        report(&request).checksums["small-model"].clone()
    };
    let all = BTreeSet::from([
        checksum(5, Activations::Q8),
        checksum(6, Activations::Q8),
        checksum(5, Activations::F32),
    ]);
    assert_eq!(all.len(), 3);
}

#[test]
fn a_text_ends_where_the_model_does() {
    let (_folder, path) = file(&small_model(false).file);
    let facts = inspect(&fs::read(&path).unwrap(), &path, 1000).unwrap();
    assert_eq!(facts.n_prompt + facts.n_tokens, N_CONTEXT);
    report(&request(Backend::Serial.into(), 1, &path, facts.n_tokens));
    for n_tokens in [0, facts.n_tokens + 1] {
        refused(&run(&request(Backend::Serial.into(), 1, &path, n_tokens)));
    }
}

fn refused(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(output.stdout.is_empty() && errors.lines().count() == 1, "{errors}");
}

#[test]
fn what_is_no_model_is_refused() {
    let whole = small_model(true).file;
    let without = |key: &'static str| SmallModel::writer(true, |name| name != key).finish();
    let unknown_type = {
        let mut file = SmallModel::writer(true, |name| name != "blk.0.attn_q.weight");
        file.info("blk.0.attn_q.weight", &[256, 256], 99, 0);
        file.finish()
    };
    let contents = [
        Vec::new(),
        b"GGML\x03\0\0\0".to_vec(),
        whole[..whole.len() / 3].to_vec(),
        unknown_type,
        without("llama.block_count"),
        without("output_norm.weight"),
    ];
    for content in contents {
        let (_folder, path) = file(&content);
        let error = inspect(&content, &path, 9).unwrap_err();
        assert!(error.contains("Small-Model.gguf") && error.lines().count() == 1, "{error}");
        refused(&run(&request(Backend::Serial.into(), 1, &path, 9)));
    }
    let (folder, path) = file(b"");
    fs::remove_file(&path).unwrap();
    for path in [&path, folder.path()] {
        refused(&run(&request(Backend::Serial.into(), 1, path, 9)));
    }
    let mut without_model = request(Backend::Serial.into(), 1, &path, 9);
    without_model.model = None;
    refused(&run(&without_model));
}
