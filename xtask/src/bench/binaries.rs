//! The measuring programs: our binaries, built once, the one with the peers only if a peer is asked for; and engines of others.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use benches::protocol::MissingPeer;
use benches::{Backend, Contender};

use super::llama_cpp::LlamaCpp;
use crate::cli::UsageError;
use crate::workspace::{self, cargo};

/// Where the programs are.
#[derive(Debug)]
pub(crate) struct Binaries {
    ours: PathBuf,
    peers: Option<PathBuf>,
    llama_cpp: Option<LlamaCpp>,
}

impl Binaries {
    /// Builds what `contenders` need with the release profile. A peer that cannot be built in is a [`UsageError`] that says
    /// how to install what is missing.
    pub(crate) fn build(contenders: &[Contender]) -> anyhow::Result<Self> {
        let backends = || contenders.iter().map(|contender| contender.backend());
        let llama_cpp = backends()
            .any(|backend| backend == Backend::LlamaCpp)
            .then(|| LlamaCpp::find(&workspace::target_dir()?).map_err(anyhow::Error::from))
            .transpose()?;
        let ours = build("bench-runner", cargo_build().args(["--package", "benches"]))?;
        let wanted: Vec<Backend> = backends().filter(|backend| backend.is_peer()).collect();
        if wanted.is_empty() {
            return Ok(Self { ours, peers: None, llama_cpp });
        }
        let manifest = workspace::root().join("benches").join("peers").join("Cargo.toml");
        let mut command = cargo_build();
        command.arg("--manifest-path").arg(manifest);
        if wanted.contains(&Backend::Candle) {
            command.args(["--features", "candle"]);
        }
        // A folder of its own, so that neither build throws out what the other has made.
        command.arg("--target-dir").arg(workspace::target_dir()?.join("peers"));
        let peers = build("peer-runner", &mut command)?;
        refuse_missing(&wanted, &missing(&peers)?)?;
        Ok(Self { ours, peers: Some(peers), llama_cpp })
    }

    /// The command that measures `backend`; a request is still to come, as its last argument.
    pub(crate) fn of(&self, backend: Backend) -> anyhow::Result<Command> {
        if backend.is_engine() {
            let engine = self.llama_cpp.as_ref().context("llama.cpp was not looked for")?;
            return Ok(engine.command());
        }
        let binary = match backend.is_peer() {
            true => self.peers.as_deref().context("the peers were not built")?,
            false => &self.ours,
        };
        Ok(Command::new(binary))
    }

    /// A process that keeps a CPU busy until its standard input closes.
    pub(crate) fn busy(&self) -> Command {
        let mut command = Command::new(&self.ours);
        command.arg("--busy");
        command
    }
}

fn cargo_build() -> Command {
    let mut command = cargo();
    command.args(["build", "--release", "--quiet"]);
    command
}

/// Builds the binary `name` and finds out where cargo put it.
fn build(name: &str, command: &mut Command) -> anyhow::Result<PathBuf> {
    eprintln!("building {name} (release profile)");
    let output = command
        .args(["--bin", name, "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "{name} does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    let found = messages.lines().find_map(|message| executable(message, name));
    found.with_context(|| format!("cargo named no executable for {name}"))
}

/// The path of the binary `name` in one line of cargo's messages, if the line has it.
fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let is_it = message["reason"] == "compiler-artifact" && message["target"]["name"] == name;
    is_it.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
}

/// What the build of the peers had to leave out.
fn missing(peers: &Path) -> anyhow::Result<Vec<MissingPeer>> {
    let output = Command::new(peers).arg("--missing").output().context("cannot run peer-runner")?;
    serde_json::from_slice(&output.stdout).context("peer-runner does not say what is missing")
}

fn refuse_missing(wanted: &[Backend], missing: &[MissingPeer]) -> Result<(), UsageError> {
    let mut absent = missing.iter().filter(|peer| wanted.contains(&peer.backend)).peekable();
    if absent.peek().is_none() {
        return Ok(());
    }
    let parts: Vec<String> =
        absent.map(|peer| format!("{} (try: {})", peer.backend, peer.install)).collect();
    Err(UsageError(format!("not to be built here: {}", parts.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_in_cargos_messages() {
        let ours = r#"{"reason":"compiler-artifact","target":{"name":"bench-runner"},"executable":"t/bench-runner"}"#;
        let cases = [
            (ours, Some("t/bench-runner")),
            (
                r#"{"reason":"compiler-artifact","target":{"name":"peer-runner"},"executable":"t/peer-runner"}"#,
                None,
            ),
            (
                r#"{"reason":"compiler-artifact","target":{"name":"benches"},"executable":null}"#,
                None,
            ),
            (r#"{"reason":"build-finished","success":true}"#, None),
            ("no json", None),
        ];
        for (message, expected) in cases {
            let found = executable(message, "bench-runner");
            assert_eq!(found, expected.map(PathBuf::from), "{message}");
        }
    }

    #[test]
    fn each_backend_has_its_binary() {
        let binaries = Binaries { ours: "a".into(), peers: Some("b".into()), llama_cpp: None };
        for &backend in Backend::ALL.iter().filter(|backend| !backend.is_engine()) {
            let expected = if backend.is_peer() { "b" } else { "a" };
            assert_eq!(binaries.of(backend).unwrap().get_program(), expected, "{backend}");
        }
        let binaries = Binaries { peers: None, ..binaries };
        assert!(binaries.of(Backend::Chili).is_err());
        assert!(binaries.of(Backend::LlamaCpp).is_err());
    }

    #[test]
    fn a_missing_peer_is_refused_only_if_it_is_wanted() {
        let missing = |backend| MissingPeer { backend, install: format!("install {backend}") };
        let missing = [missing(Backend::Libgomp), missing(Backend::Pthreadpool)];
        assert!(refuse_missing(&[Backend::Chili, Backend::Original], &missing).is_ok());
        let UsageError(message) =
            refuse_missing(&[Backend::Pthreadpool, Backend::Libgomp], &missing).unwrap_err();
        assert!(message.contains("install pthreadpool"), "{message}");
        assert!(message.contains("install libgomp"), "{message}");
        let UsageError(message) = refuse_missing(&[Backend::Libgomp], &missing).unwrap_err();
        assert!(!message.contains("pthreadpool"), "{message}");
    }
}
