//! What the numbers were measured on, as far as the system tells.

use std::fs;
use std::process::Command;

use cpu_topology::{CpuTopology, Quota};
use serde::{Deserialize, Serialize};

/// CPUs that others may keep busy before it is worth a note.
const BUSY: f64 = 0.1;

/// Facts about the machine. What the system does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    /// Logical CPUs this process may run on.
    pub(crate) logical_cpus: usize,
    pub(crate) physical_cores: usize,
    /// CPUs' worth of time the process may use, where a cgroup limits it.
    pub(crate) quota: Option<f64>,
    pub(crate) last_level_cache_mib: Option<f64>,
    pub(crate) memory_mib: Option<usize>,
    pub(crate) os: String,
    /// Instruction set of the kernels in use.
    pub(crate) isa: String,
    /// Participants of each pool, the calling thread included.
    pub(crate) threads: usize,
    /// Averages over 1, 5 and 15 minutes before the first process was started.
    pub(crate) load_average: Option<[f64; 3]>,
    /// CPUs that other processes kept busy on average while measuring.
    pub(crate) busy_elsewhere: Option<f64>,
    /// What a reader of the numbers should know.
    pub(crate) notes: Vec<String>,
}

impl Machine {
    /// Asks the system. `isa` and `notes` are known only after measuring.
    pub(crate) fn detect(threads: usize) -> Self {
        let topology = CpuTopology::detect();
        Self {
            cpu: cpu_name().unwrap_or_else(|| "unknown".into()),
            logical_cpus: topology.len(),
            physical_cores: topology.cores().len(),
            quota: topology.quota().map(Quota::ratio),
            last_level_cache_mib: last_level_cache().map(|bytes| bytes as f64 / (1 << 20) as f64),
            memory_mib: meminfo("MemTotal:").map(|bytes| bytes >> 20),
            os: os(),
            isa: String::new(),
            threads,
            load_average: load_average(),
            busy_elsewhere: None,
            notes: Vec::new(),
        }
    }

    /// Sets how many CPUs others kept busy, with a note if that is more than a little.
    pub(crate) fn set_busy_elsewhere(&mut self, cpus: Option<f64>) {
        self.busy_elsewhere = cpus.map(|cpus| (cpus * 100.0).round() / 100.0);
        if let Some(cpus) = cpus.filter(|cpus| *cpus > BUSY) {
            self.notes.push(format!(
                "others kept {cpus:.1} of {} CPUs busy meanwhile: a quiet machine gives other numbers",
                self.logical_cpus
            ));
        }
    }

    /// Names and values for people.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let optional = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
        vec![
            ("CPU", self.cpu.clone()),
            (
                "logical CPUs, physical cores",
                format!("{}, {}", self.logical_cpus, self.physical_cores),
            ),
            ("quota", self.quota.map_or("none".into(), |quota| format!("{quota} CPUs"))),
            (
                "last-level cache",
                optional(self.last_level_cache_mib.map(|mib| format!("{mib} MiB"))),
            ),
            ("memory", optional(self.memory_mib.map(|mib| format!("{mib} MiB")))),
            ("system", self.os.clone()),
            ("kernels", self.isa.clone()),
            ("threads per pool", self.threads.to_string()),
            (
                "busy elsewhere meanwhile",
                optional(self.busy_elsewhere.map(|cpus| format!("{cpus:.2} CPUs"))),
            ),
            (
                "load before the start",
                optional(
                    self.load_average
                        .map(|load| load.map(|average| format!("{average:.2}")).join(", ")),
                ),
            ),
        ]
    }
}

/// Bytes of memory a new process may take, where the system tells: what is free, or what is left of the
/// limit of our cgroup if that is less.
pub(crate) fn available_memory() -> Option<usize> {
    let cgroup = |file: &str| -> Option<usize> {
        fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok()?.trim().parse().ok()
    };
    let limit = cgroup("memory.max");
    let left = limit.map(|limit| limit.saturating_sub(cgroup("memory.current").unwrap_or(0)));
    [meminfo("MemAvailable:"), left].into_iter().flatten().min()
}

fn meminfo(key: &str) -> Option<usize> {
    parse_meminfo(&fs::read_to_string("/proc/meminfo").ok()?, key)
}

/// The bytes behind `key` in the text of `/proc/meminfo`.
fn parse_meminfo(text: &str, key: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn cpu_name() -> Option<String> {
    let from_proc = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    from_proc.or_else(|| printed(Command::new("sysctl").args(["-n", "machdep.cpu.brand_string"])))
}

fn os() -> String {
    let name = std::env::consts::OS;
    let described = printed(Command::new("uname").args(["-s", "-r", "-m"]));
    described.unwrap_or_else(|| format!("{name} {}", std::env::consts::ARCH))
}

/// What a command prints, on success.
fn printed(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
}

/// The size of the largest cache of CPU 0.
fn last_level_cache() -> Option<usize> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = caches.filter_map(|cache| {
        parse_size(fs::read_to_string(cache.ok()?.path().join("size")).ok()?.trim())
    });
    sizes.max()
}

/// A size such as `480M` or `491520K`, in bytes.
fn parse_size(text: &str) -> Option<usize> {
    let (number, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

fn load_average() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let averages: Vec<f64> = text.split(' ').take(3).map_while(|word| word.parse().ok()).collect();
    averages.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("480M", Some(480 << 20)),
            ("32K", Some(32 << 10)),
            ("64", Some(64)),
            ("", None),
            ("M", None),
            ("99999999999999999999K", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_size(text), expected, "{text:?}");
        }
    }

    #[test]
    fn memory() {
        let text = "MemTotal:       2048 kB\nMemAvailable:   1024 kB\nHugePages_Total:  0\n";
        let cases = [
            ("MemTotal:", Some(2 << 20)),
            ("MemAvailable:", Some(1 << 20)),
            ("HugePages_Total:", None),
            ("Swap:", None),
        ];
        for (key, expected) in cases {
            assert_eq!(parse_meminfo(text, key), expected, "{key}");
        }
    }

    #[test]
    fn this_machine_has_a_cpu() {
        let machine = Machine::detect(2);
        assert!(machine.logical_cpus >= 1 && machine.physical_cores >= 1);
        assert_eq!(machine.threads, 2);
        assert!(machine.facts().iter().all(|(name, _)| !name.is_empty()));
    }
}
