//! The measuring binaries, run once per backend, task and round.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use benches::library;
use benches::protocol::{Report, Request};

use super::binaries::Binaries;

/// Time a process has beyond its budget; longer than any set-up, so that a hang becomes an error.
const PATIENCE: Duration = Duration::from_secs(120);
/// For a model's file, where tokens are counted and not time: threads that wait for each other in loops can take seconds for one,
/// where they have less than a CPU each.
const MODEL_PATIENCE: Duration = Duration::from_secs(900);

/// Measures one request in a process of its own.
pub(crate) fn run(binaries: &Binaries, request: &Request) -> anyhow::Result<Report> {
    let what = format!("{} on {}", request.suite, request.backend);
    let mut command = binaries.of(request.backend.backend())?;
    command.arg(serde_json::to_string(request)?);
    if request.backend.backend().is_library() {
        command.envs(library::environment(request.threads));
    }
    let patience = if request.model.is_some() { MODEL_PATIENCE } else { PATIENCE };
    let output = output_within(&mut command, patience + request.budget())
        .with_context(|| format!("measuring {what}"))?;
    if !output.success {
        bail!("measuring {what} failed ({}): {}", output.status, output.stderr.trim());
    }
    let report: Report = serde_json::from_str(&output.stdout)
        .with_context(|| format!("measuring {what} gave no report: {}", output.stderr.trim()))?;
    let (found, wanted) =
        (report.participants, request.backend.backend().participants(request.threads));
    ensure!(found == wanted, "measuring {what}: the pool has {found} participants, not {wanted}");
    Ok(report)
}

/// What a finished process left behind.
struct Output {
    success: bool,
    status: String,
    stdout: String,
    stderr: String,
}

/// Runs a command to its end, without polling it; kills it if that takes longer than `limit`.
fn output_within(command: &mut Command, limit: Duration) -> anyhow::Result<Output> {
    let spawned =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.context("cannot start")?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let Ok(stdout) = stdout.recv_timeout(limit) else {
        child.kill().context("cannot end a process that hangs")?;
        child.wait()?;
        return Err(anyhow!("no answer within {} s", limit.as_secs()));
    };
    let status = child.wait()?;
    let stderr = stderr.recv().unwrap_or_default();
    Ok(Output { success: status.success(), status: status.to_string(), stdout, stderr })
}

/// Reads a pipe to its end on a thread of its own; the text arrives when the pipe closes.
fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is all there is to show.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_process_that_fails_leaves_its_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let output = output_within(&mut command, PATIENCE).unwrap();
        assert!(!output.success);
        assert_eq!((output.stdout.trim(), output.stderr.trim()), ("out", "err"));
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_hangs_is_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "exec sleep 600"]);
        assert!(output_within(&mut command, Duration::from_millis(1)).is_err());
    }
}
