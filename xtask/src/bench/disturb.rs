//! Busy processes beside what is measured: neighbours to order.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

/// Processes that do nothing but take CPU time. They end when their standard input closes: when this is dropped, or when this
/// process dies.
#[derive(Debug)]
pub(crate) struct Disturbance {
    processes: Vec<Child>,
}

impl Disturbance {
    /// Starts `n_processes` of them, and waits until each has said on its standard output that it has begun.
    pub(crate) fn start(n_processes: usize, command: impl Fn() -> Command) -> anyhow::Result<Self> {
        let mut disturbance = Self { processes: Vec::new() };
        for _ in 0..n_processes {
            let spawned = command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let child = spawned.context("cannot start a busy process")?;
            disturbance.processes.push(child);
        }
        for child in &mut disturbance.processes {
            let stdout = child.stdout.take().context("a busy process without an output")?;
            let mut line = String::new();
            let length = BufReader::new(stdout).read_line(&mut line);
            ensure!(length.is_ok_and(|length| length > 0), "a busy process ended at once");
        }
        Ok(disturbance)
    }

    /// Ends the processes. An error if one of them had ended before: then it was not there all the time.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        for child in &mut self.processes {
            let early = child.try_wait().context("cannot ask after a busy process")?;
            ensure!(early.is_none(), "a busy process ended while others measured");
        }
        Ok(())
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        for child in &mut self.processes {
            drop(child.stdin.take());
        }
        for child in &mut self.processes {
            // Whoever cannot be waited for is gone.
            _ = child.wait();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    fn shell(script: String) -> impl Fn() -> Command {
        move || {
            let mut command = Command::new("sh");
            command.args(["-c", &script]);
            command
        }
    }

    /// Processes that leave a file each when they start, and another one when their input has closed.
    fn watched(folder: &std::path::Path) -> impl Fn() -> Command {
        let folder = folder.display();
        shell(format!(
            ": > '{folder}'/begun.$$; echo busy; cat > /dev/null; : > '{folder}'/ended.$$"
        ))
    }

    fn count(folder: &std::path::Path, start: &str) -> usize {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(start)).count()
    }

    #[test]
    fn the_processes_run_until_they_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let disturbance = Disturbance::start(3, watched(folder.path())).unwrap();
        assert_eq!((count(folder.path(), "begun."), count(folder.path(), "ended.")), (3, 0));
        disturbance.end().unwrap();
        assert_eq!(count(folder.path(), "ended."), 3);
    }

    #[test]
    fn dropping_ends_them_as_well() {
        let folder = tempfile::tempdir().unwrap();
        drop(Disturbance::start(2, watched(folder.path())).unwrap());
        assert_eq!(count(folder.path(), "ended."), 2);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert!(Disturbance::start(1, || Command::new("/no/such/program")).is_err());
        assert!(Disturbance::start(1, shell("exit 0".into())).is_err());
        let mut disturbance = Disturbance::start(1, shell("echo busy".into())).unwrap();
        disturbance.processes[0].wait().unwrap();
        assert!(disturbance.end().is_err());
        Disturbance::start(0, || Command::new("/no/such/program")).unwrap().end().unwrap();
    }
}
