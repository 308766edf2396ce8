//! A sound small machine with files of any content laid over it: whatever they hold, the answers stay inside the machine, and a
//! folder, a text in memory and a snapshot of the folder tell the same.

#![no_main]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cpu_topology::{AllowedFrom, CpuSet, CpuTopology, PlanRequest, Snapshot, draw_tree};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use support::{check_topology, has_long_range};

const CPU: &str = "sys/devices/system/cpu";

#[derive(Arbitrary, Debug)]
struct Input {
    /// Cores of the machine below, up to 12, and CPUs per core, up to 3.
    cores: u8,
    width: u8,
    files: Vec<(Place, Content)>,
    allowed: Vec<u8>,
    /// In one of 16 cases files are laid out in a folder as well, which takes a hundred times longer.
    in_folder: u8,
}

#[derive(Arbitrary, Debug)]
enum Place {
    Cpu(u8, u8),
    Cache(u8, u8, u8),
    Node(u8, u8),
    Cgroup(u8, u8),
    Other(u8),
}

const CPU_FILES: [&str; 14] = [
    "online",
    "topology/core_cpus_list",
    "topology/thread_siblings_list",
    "topology/core_cpus",
    "topology/thread_siblings",
    "topology/core_id",
    "topology/physical_package_id",
    "topology/die_id",
    "topology/cluster_id",
    "cpu_capacity",
    "cpufreq/base_frequency",
    "cpufreq/cpuinfo_max_freq",
    "acpi_cppc/highest_perf",
    "regs/identification/midr_el1",
];
const CACHE_FILES: [&str; 5] = ["level", "type", "size", "shared_cpu_list", "shared_cpu_map"];
const NODE_FILES: [&str; 3] = ["cpulist", "cpumap", "cpu0/online"];
const CGROUPS: [&str; 7] = ["", "a/", "a/b/", "cpu/", "cpu/a/", "cpuset/", "cpuset/a/"];
const CGROUP_FILES: [&str; 7] = [
    "cpu.max",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "cpuset.cpus.effective",
    "cpuset.effective_cpus",
    "cpuset.cpus",
    "cpus",
];
const OTHER_FILES: [&str; 15] = [
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/isolated",
    "sys/devices/cpu_core/cpus",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/cpu_lowpower/cpus",
    "sys/hypervisor/type",
    "proc/device-tree/hypervisor/compatible",
    "proc/self/status",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/self/cpuset",
    "proc/mounts",
    "proc/cpuinfo",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/hostname",
];

impl Place {
    fn path(&self) -> String {
        let of = |names: &[&'static str], index: &u8| names[usize::from(*index) % names.len()];
        match self {
            Self::Cpu(cpu, file) => format!("{CPU}/cpu{cpu}/{}", of(&CPU_FILES, file)),
            Self::Cache(cpu, index, file) => {
                format!("{CPU}/cpu{cpu}/cache/index{}/{}", index % 5, of(&CACHE_FILES, file))
            }
            Self::Node(node, file) => {
                format!("sys/devices/system/node/node{}/{}", node % 8, of(&NODE_FILES, file))
            }
            Self::Cgroup(group, file) => {
                format!("sys/fs/cgroup/{}{}", of(&CGROUPS, group), of(&CGROUP_FILES, file))
            }
            Self::Other(file) => of(&OTHER_FILES, file).to_owned(),
        }
    }
}

#[derive(Arbitrary, Debug)]
enum Content {
    Pieces(Vec<Piece>),
    Raw(String),
}

/// What such files are made of.
#[derive(Arbitrary, Debug)]
enum Piece {
    Small(u8),
    Large(u32),
    Range(u8, u8),
    Mask(u32),
    Word(u8),
}

const WORDS: [&str; 44] = [
    ",",
    "-",
    ":",
    "/",
    " ",
    "\n",
    "\0",
    "\t",
    "-1",
    "max",
    "max 100000",
    "100000",
    "K",
    "M",
    "Data",
    "Unified",
    "Instruction",
    "0x",
    ":1/2",
    "..",
    "Cpus_allowed_list:\t",
    "Cpus_allowed:\t",
    "processor\t: ",
    "physical id\t: ",
    "core id\t: ",
    "CPU implementer\t: 0x",
    "CPU part\t: 0x",
    "CPU implementer\t: 0x41\nCPU part\t: 0xd05\n",
    "CPU implementer\t: 0x41\nCPU part\t: 0xd41\n",
    "flags\t: fpu hypervisor\n",
    "0::/",
    "0::/a/b\n",
    "4:cpu,cpuacct:/a\n",
    "3:cpuset:/a\n",
    "1:cpu:/../..",
    " (deleted)",
    "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
    "32 23 0:28 /a /sys/fs/cgroup/cpuset rw - cgroup c rw,cpuset\n",
    "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "\\040",
    "microsoft",
    "host",
    "18446744073709551615",
];

impl Content {
    fn text(&self) -> String {
        let pieces = match self {
            Self::Raw(text) => return text.clone(),
            Self::Pieces(pieces) => pieces,
        };
        let text = |piece: &Piece| match piece {
            Piece::Small(number) => number.to_string(),
            Piece::Large(number) => number.to_string(),
            Piece::Range(first, more) => {
                format!("{first}-{}", u32::from(*first) + u32::from(*more))
            }
            Piece::Mask(word) => format!("{word:08x}"),
            Piece::Word(index) => WORDS[usize::from(*index) % WORDS.len()].to_owned(),
        };
        pieces.iter().map(text).collect()
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(input) = Unstructured::new(data).arbitrary::<Input>() else { return };
    let files = files(&input);
    if files.values().any(|text| has_long_range(text)) {
        return;
    }
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('\n', "\\n");
    let lines = files.iter().map(|(path, text)| format!("{path}\t{}\n", escaped(text)));
    let Ok(snapshot) = Snapshot::parse(&lines.collect::<String>()) else { return };
    let some = input.allowed.iter().map(|cpu| usize::from(*cpu)).collect::<CpuSet>();
    let sources = [AllowedFrom::Process, AllowedFrom::Online, AllowedFrom::Set(some)];
    let found = sources.map(|from| (CpuTopology::from_snapshot(&snapshot, &from), from));
    for (topology, _) in &found {
        check(topology);
    }
    if input.in_folder % 16 == 1 {
        let folder =
            tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        if lay_out(folder.path(), &files) {
            let again = Snapshot::take(folder.path());
            for (topology, from) in &found {
                same(topology, &CpuTopology::from_root(folder.path(), from));
                same(topology, &CpuTopology::from_snapshot(&again, from));
            }
        }
    }
});

/// The machine below, with the files of the input over it.
fn files(input: &Input) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let (n_cores, width) = (usize::from(input.cores % 13), usize::from(input.width % 3) + 1);
    if n_cores > 0 {
        files.insert(format!("{CPU}/online"), format!("0-{}\n", n_cores * width - 1));
    }
    for cpu in 0..n_cores * width {
        let siblings = (0..width).map(|thread| (cpu % n_cores + thread * n_cores).to_string());
        let siblings = siblings.collect::<Vec<_>>().join(",");
        files.insert(format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"), siblings + "\n");
    }
    files.extend(input.files.iter().map(|(place, content)| (place.path(), content.text())));
    files
}

fn check(topology: &CpuTopology) {
    // A table of mounts may name some thousand directories, and a list more CPUs than have files.
    assert!(topology.n_files_asked() <= 60_000 + 64 * 256 + 2 * topology.len());
    if check_topology(topology) {
        let report = PlanRequest::new().reserve_coordinator(true).explain(topology);
        assert!(!report.to_string().is_empty());
        let n_cores = draw_tree(topology, &report.plan).matches("─ core ").count();
        assert_eq!(n_cores, topology.cores().len());
        topology.notes().iter().for_each(|note| assert!(!note.to_string().is_empty()));
    }
}

fn same(left: &CpuTopology, right: &CpuTopology) {
    assert_eq!(left, right);
    assert_eq!(left.region(), right.region());
    assert_eq!(left.online(), right.online());
    assert_eq!(left.isolated(), right.isolated());
    assert_eq!(left.is_virtualized(), right.is_virtualized());
}

/// Writes the files; whether that was possible, as a file may be in the place of a folder.
fn lay_out(root: &Path, files: &BTreeMap<String, String>) -> bool {
    files.iter().all(|(path, text)| {
        let path = root.join(path);
        let folder = path.parent().map(fs::create_dir_all);
        folder.is_some_and(|made| made.is_ok()) && fs::write(path, text).is_ok()
    })
}
