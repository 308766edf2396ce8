//! Random and broken machines: whatever the files hold, nothing panics and every answer stays inside the machine.

mod common;

use common::{CPU, Machine, check_invariants};
use cpu_topology::{
    AllowedFrom, CpuTopology, MAX_CPU_ID, Quota, Snapshot, explain_cpu_pool_in, parse_cpu_list,
    parse_cpu_mask, parse_thread_siblings_list, resolve_cpu_threads_with,
};

/// A small generator of numbers (splitmix64): the same machines in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// Text that looks like what a file might hold, or like nothing.
    fn text(&mut self) -> Vec<u8> {
        const PIECES: [&str; 22] = [
            "0",
            "1",
            "2-3",
            "5-1",
            "7",
            "-",
            ",",
            ",,",
            "-1",
            "max",
            "100000",
            "200000 100000",
            "ffffffff",
            "0x",
            " ",
            "\n",
            "\0",
            "4294967296",
            "0-9999",
            "18446744073709551616",
            ":1/2",
            "/../..",
        ];
        let mut text = Vec::new();
        for _ in 0..self.below(6) {
            if self.one_in(8) {
                text.push(self.next() as u8);
            } else {
                text.extend_from_slice(self.pick(&PIECES).as_bytes());
            }
        }
        text
    }
}

const CPU_FILES: [&str; 12] = [
    "online",
    "topology/core_cpus_list",
    "topology/thread_siblings_list",
    "topology/core_cpus",
    "topology/thread_siblings",
    "topology/core_id",
    "topology/physical_package_id",
    "cpu_capacity",
    "cpufreq/base_frequency",
    "cpufreq/cpuinfo_max_freq",
    "acpi_cppc/highest_perf",
    "cache/index0/shared_cpu_list",
];

const OTHER_FILES: [&str; 12] = [
    "sys/devices/system/cpu/online",
    "sys/devices/cpu_core/cpus",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/cpu_lowpower/cpus",
    "proc/self/status",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/self/cpuset",
    "proc/mounts",
    "proc/cpuinfo",
    "sys/fs/cgroup/cpu.max",
    "sys/fs/cgroup/a/cpu.max",
];

/// A sound machine of up to 24 CPUs, of which some files are then replaced.
fn random_machine(random: &mut Random) -> Machine {
    let machine = Machine::new();
    let (n_cores, width) = (1 + random.below(12), 1 + random.below(2));
    machine.online(&format!("0-{}", n_cores * width - 1));
    machine
        .file("proc/self/cgroup", "4:cpu:/\n0::/a/b\n")
        .file("sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    for core in 0..n_cores {
        machine.cores(&[&(0..width).map(|thread| core + thread * n_cores).collect::<Vec<_>>()]);
        let speed = [400, 1000, 1024][random.below(3)];
        machine.speed((0..width).map(|thread| core + thread * n_cores), "cpu_capacity", speed);
    }
    for _ in 0..random.below(8) {
        let path = match random.below(2) {
            0 => format!(
                "{CPU}/cpu{}/{}",
                random.below(26),
                CPU_FILES[random.below(CPU_FILES.len())]
            ),
            _ => OTHER_FILES[random.below(OTHER_FILES.len())].to_owned(),
        };
        let prefix = if path == "proc/self/status" { "Cpus_allowed_list:\t" } else { "" };
        let content = [prefix.as_bytes(), &random.text()].concat();
        if !machine.root().join(&path).is_dir() {
            machine.file(&path, content);
        }
    }
    machine
}

#[test]
fn random_machines() {
    let mut random = Random(1);
    for _ in 0..300 {
        let machine = random_machine(&mut random);
        // A list of a million CPUs is legal, and slow to ask about.
        let online = machine.read_online();
        for topology in
            [&online, &machine.read()].into_iter().filter(|topology| topology.len() < 10_000)
        {
            check_invariants(topology);
            check_invariants(
                &topology.clone().with_quota(Quota::new(random.next() % 2_000_000, 100_000)),
            );
            let threads = resolve_cpu_threads_with(|_| None, || 1);
            assert!(!explain_cpu_pool_in(0, true, topology, threads).reasons.is_empty());
            assert!(topology.n_files_asked() <= 80 + 16 * 26 + 2 * topology.len());
            // The same files say the same again, however the folders are listed.
            assert_eq!(
                CpuTopology::from_root(
                    machine.root(),
                    &AllowedFrom::Set(topology.allowed_set().clone())
                ),
                *topology
            );
        }
        // A snapshot lists its names in order, a folder as it likes.
        let snapshot = Snapshot::take(machine.root());
        assert_eq!(CpuTopology::from_snapshot(&snapshot, &AllowedFrom::Online), online);
        let allowed = (0..random.below(30)).map(|_| random.below(40)).collect::<Vec<_>>();
        check_invariants(&CpuTopology::read_from(&machine.root().join(CPU), &allowed));
    }
}

#[test]
fn a_list_longer_than_the_machine_is_believed_and_costs_no_file_for_each_cpu() {
    let machine = Machine::new();
    machine.online("0-99999").cores(&[&[0, 99_999]]);
    let topology = machine.read();
    assert_eq!((topology.len(), topology.cores().len()), (100_000, 99_999));
}

#[test]
fn random_sibling_lists() {
    let mut random = Random(2);
    for _ in 0..2_000 {
        let n_cpus = 1 + random.below(12);
        let entries = (0..random.below(20))
            .map(|_| {
                let list = (0..random.below(5)).map(|_| random.below(n_cpus + 2)).collect();
                (random.below(n_cpus), list)
            })
            .collect::<Vec<(usize, Vec<usize>)>>();
        let topology = CpuTopology::from_sibling_lists(entries.clone());
        check_invariants(&topology);
        // CPUs of one core name each other.
        for core in topology.cores() {
            for (left, right) in core
                .cpus()
                .iter()
                .flat_map(|left| core.cpus().iter().map(move |right| (left, right)))
            {
                let first = entries.iter().find(|(cpu, _)| *cpu == left);
                assert!(left == right || first.is_some_and(|(_, list)| list.contains(&right)));
            }
        }
    }
}

#[test]
fn random_texts() {
    let mut random = Random(3);
    for _ in 0..3_000 {
        let bytes = random.text();
        let text = String::from_utf8_lossy(&bytes);
        let tolerant = parse_thread_siblings_list(&text);
        // What the strict parser accepts, the tolerant one finds as well, up to its limit.
        if let Some(set) = parse_cpu_list(&text).ok().filter(|_| tolerant.len() <= MAX_CPU_ID) {
            assert_eq!(
                tolerant.into_iter().collect::<cpu_topology::CpuSet>(),
                set,
                "text {text:?}"
            );
        }
        if let Ok(set) = parse_cpu_mask(&text) {
            assert!(set.len() <= 32 * text.len());
        }
    }
}
