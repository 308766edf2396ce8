//! The measuring binary: one request in, one document out.

use std::process::{Command, Output};

use benches::protocol::{MissingPeer, Report, Request, Suite};
use benches::{Backend, ModelShape, Variants};

fn run(argument: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_peer-runner")).arg(argument).output().unwrap()
}

#[test]
fn a_request_gets_a_report_or_a_line() {
    let output = run("--missing");
    let missing: Vec<MissingPeer> = serde_json::from_slice(&output.stdout).unwrap();
    for &backend in Backend::ALL {
        let request = Request {
            suite: Suite::Dispatch,
            backend: backend.into(),
            threads: 2,
            shape: ModelShape::ALL[0].name.into(),
            budget_ms: 0,
            working_set: 0,
            model: None,
            variants: Variants::default(),
        };
        let output = run(&serde_json::to_string(&request).unwrap());
        let is_here = backend.is_peer()
            && !backend.is_library()
            && missing.iter().all(|peer| peer.backend != backend);
        if is_here {
            let report: Report = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report.participants, backend.participants(2), "{backend}");
            assert!(!report.measurements.is_empty(), "{backend}");
        } else {
            assert_eq!(output.status.code(), Some(1), "{backend}");
            assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{backend}");
        }
    }
}
