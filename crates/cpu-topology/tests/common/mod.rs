//! Machines described in code, laid out as files in a temporary folder.

#![allow(dead_code, unused_imports, reason = "each test program uses its own part")]

use std::fs;
use std::path::Path;

use cpu_topology::{AllowedFrom, CpuTopology};
use tempfile::TempDir;

mod invariants;
pub(crate) use invariants::check_invariants;

/// Where the CPUs are described, under the root.
pub(crate) const CPU: &str = "sys/devices/system/cpu";

/// A machine as a tree of files.
pub(crate) struct Machine {
    root: TempDir,
}

impl Machine {
    /// An empty folder, in memory where the system has a place for that: machines are thousands of small files.
    pub(crate) fn new() -> Self {
        let root = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
        Self { root: root.expect("a temporary folder") }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Writes one file.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.root().join(path);
        if fs::write(&path, &content).is_err() {
            fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
            fs::write(&path, &content).expect("a file");
        }
        self
    }

    pub(crate) fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.root().join(path)).expect("a folder");
        self
    }

    /// Writes a file of one CPU.
    pub(crate) fn cpu(&self, cpu: usize, name: &str, content: impl AsRef<[u8]>) -> &Self {
        self.file(&format!("{CPU}/cpu{cpu}/{name}"), content)
    }

    /// Writes the sibling list of each CPU named in one of these cores.
    pub(crate) fn cores(&self, cores: &[&[usize]]) -> &Self {
        for core in cores {
            let list = core.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            for cpu in *core {
                self.cpu(*cpu, "topology/thread_siblings_list", format!("{list}\n"));
            }
        }
        self
    }

    /// Writes the same number for each of these CPUs.
    pub(crate) fn speed(
        &self,
        cpus: impl IntoIterator<Item = usize>,
        name: &str,
        value: u64,
    ) -> &Self {
        for cpu in cpus {
            self.cpu(cpu, name, format!("{value}\n"));
        }
        self
    }

    pub(crate) fn online(&self, list: &str) -> &Self {
        self.file(&format!("{CPU}/online"), format!("{list}\n"))
    }

    /// As the process of `proc/self` sees it.
    pub(crate) fn read(&self) -> CpuTopology {
        CpuTopology::from_root(self.root(), &AllowedFrom::Process)
    }

    pub(crate) fn read_online(&self) -> CpuTopology {
        CpuTopology::from_root(self.root(), &AllowedFrom::Online)
    }
}

/// The cores as lists of CPUs.
pub(crate) fn cores(topology: &CpuTopology) -> Vec<String> {
    topology.cores().iter().map(|core| core.cpus().to_string()).collect()
}

/// The classes as lists of CPUs, `!` before those of efficiency cores.
pub(crate) fn classes(topology: &CpuTopology) -> Vec<String> {
    let show = |efficiency: bool| if efficiency { "!" } else { "" };
    topology
        .classes()
        .iter()
        .map(|class| format!("{}{}", show(class.is_efficiency()), class.cpus()))
        .collect()
}
