//! How much of the machine others took while we measured: the first question about any odd number.

use std::fs;

/// CPU time so far: of the whole machine, busy and in all, and of this process and its children.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    busy: f64,
    total: f64,
    ours: f64,
    n_cpus: f64,
}

/// Watches CPU time from its making on.
#[derive(Debug)]
pub(crate) struct Neighbours {
    start: Option<Ticks>,
}

impl Neighbours {
    /// Starts to watch, where the system tells the times (`/proc`).
    pub(crate) fn watch() -> Self {
        Self { start: Ticks::now() }
    }

    /// How many CPUs others kept busy on average since then, time stolen by other machines included.
    pub(crate) fn busy_cpus(&self) -> Option<f64> {
        let (start, end) = (self.start?, Ticks::now()?);
        let others = (end.busy - start.busy) - (end.ours - start.ours);
        let total = end.total - start.total;
        (total > 0.0).then(|| (others / total * end.n_cpus).max(0.0))
    }
}

impl Ticks {
    fn now() -> Option<Self> {
        let machine = fs::read_to_string("/proc/stat").ok()?;
        let process = fs::read_to_string("/proc/self/stat").ok()?;
        Self::parse(&machine, &process)
    }

    fn parse(machine: &str, process: &str) -> Option<Self> {
        let line = machine.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times = numbers(line);
        // user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user already.
        let &[user, nice, system, idle, iowait, irq, softirq, steal, ..] = times.as_slice() else {
            return None;
        };
        let busy = user + nice + system + irq + softirq + steal;
        let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
        // Behind the name, which may hold anything: state is field 3; utime to cstime are 14 to 17.
        let (_, fields) = process.rsplit_once(')')?;
        let ours =
            fields.split_whitespace().skip(11).take(4).map_while(|word| word.parse::<f64>().ok());
        let n_cpus = machine.lines().filter(is_cpu).count() as f64;
        Some(Self { busy, total: busy + idle + iowait, ours: ours.sum(), n_cpus })
    }
}

fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().map_while(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "cpu  100 1 50 800 20 2 3 4 0 0\ncpu0 1 1\ncpu1 1 1\nintr 5\n";
    const PROCESS: &str = "77 (a ) b) S 1 1 1 0 -1 4194560 9 8 7 6 11 12 13 14 20 0 1";

    #[test]
    fn times_are_found_in_the_texts() {
        let ticks = Ticks::parse(MACHINE, PROCESS);
        assert_eq!(ticks, Some(Ticks { busy: 160.0, total: 980.0, ours: 50.0, n_cpus: 2.0 }));
        for (machine, process) in [("", PROCESS), ("cpu  1 2 3\n", PROCESS), (MACHINE, "")] {
            assert_eq!(Ticks::parse(machine, process), None, "{machine:?}, {process:?}");
        }
    }

    #[test]
    fn without_the_texts_nothing_is_said() {
        assert_eq!(Neighbours { start: None }.busy_cpus(), None);
    }
}
