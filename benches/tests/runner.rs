//! The measuring binary as `cargo xtask bench` sees it: one request in, one document out.

use std::process::{Command, Output};

use benches::protocol::{Report, Request, Suite};
use benches::{Backend, ModelShape};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench-runner")).args(arguments).output().unwrap()
}

#[test]
fn a_request_gets_a_report() {
    let request = Request {
        suite: Suite::Dispatch,
        backend: Backend::Epoch,
        threads: 2,
        shape: ModelShape::ALL[0].name.into(),
        budget_ms: 0,
        working_set: 0,
    };
    let output = run(&[&serde_json::to_string(&request).unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report.participants, 2);
    assert!(!report.isa.is_empty());
    assert!(
        report
            .measurements
            .iter()
            .any(|m| m.case == "2us-x2-gap20us" && m.metric == "overhead_p50")
    );
}

#[test]
fn what_cannot_be_read_is_refused_on_one_line() {
    let unknown_shape = r#"{"suite":"decode","backend":"serial","threads":1,"shape":"x","budget_ms":0,"working_set":0}"#;
    for arguments in [&[][..], &["{}"], &["no json"], &[unknown_shape]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments:?}");
    }
}
