//! The measuring binary as `cargo xtask bench` sees it: one request in, one document out.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use benches::protocol::{Report, Request, Suite};
use benches::{Backend, ModelShape, Variants};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench-runner")).args(arguments).output().unwrap()
}

#[test]
fn a_request_gets_a_report() {
    let request = Request {
        suite: Suite::Dispatch,
        backend: Backend::Epoch.into(),
        threads: 2,
        shape: ModelShape::ALL[0].name.into(),
        budget_ms: 0,
        working_set: 0,
        model: None,
        variants: Variants::default(),
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
fn a_busy_process_takes_time_until_its_input_closes() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bench-runner"))
        .arg("--busy")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "busy\n");
    // Only a process that runs is charged for time again and again: this loop would not end beside one that waits.
    #[cfg(target_os = "linux")]
    for more in 1..=3 {
        while cpu_ticks(child.id()) < more {
            std::thread::yield_now();
        }
    }
    assert!(child.try_wait().unwrap().is_none(), "its input is still open");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// CPU time that a process has taken, in ticks of the kernel (usually 10 ms).
#[cfg(target_os = "linux")]
fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // Behind the name, which ends with the last parenthesis, the times are fields 12 and 13.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

#[test]
fn what_cannot_be_read_is_refused_on_one_line() {
    let unknown_shape = r#"{"suite":"decode","backend":"serial","threads":1,"shape":"x","budget_ms":0,"working_set":0}"#;
    let peer = r#"{"suite":"dispatch","backend":"chili","threads":1,"shape":"SmolLM2-135M","budget_ms":0,"working_set":0}"#;
    for arguments in [&[][..], &["{}"], &["no json"], &[unknown_shape], &[peer]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments:?}");
    }
}
