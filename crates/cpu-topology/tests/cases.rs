//! Machines that somebody has reported, as small trees, and the right answers. Each case is a machine on which one program
//! or another has counted wrong.

mod common;

use common::{CPU, Machine, check_invariants, classes};
use cpu_topology::{CpuTopology, PlanRequest};

/// The right answers.
struct Expected {
    /// Allowed CPUs.
    allowed: &'static str,
    /// Physical cores.
    cores: usize,
    /// Workers of a pool that is sized automatically: performance cores within the quota.
    workers: usize,
    /// Classes, `!` before those of efficiency cores.
    classes: &'static [&'static str],
}

const fn expected(
    allowed: &'static str,
    cores: usize,
    workers: usize,
    classes: &'static [&'static str],
) -> Expected {
    Expected { allowed, cores, workers, classes }
}

#[track_caller]
fn check(name: &str, lay_out: impl FnOnce(&Machine), expected: &Expected) -> CpuTopology {
    let machine = Machine::new();
    lay_out(&machine);
    let topology = machine.read();
    check_invariants(&topology);
    assert_eq!(topology.allowed_set().to_string(), expected.allowed, "{name}: allowed CPUs");
    assert_eq!(topology.cores().len(), expected.cores, "{name}: cores");
    assert_eq!(classes(&topology), expected.classes, "{name}: classes");
    let plan = PlanRequest::new().plan(&topology);
    assert_eq!(plan.num_threads, expected.workers, "{name}: workers");
    topology
}

/// CPUs from `first` to `last`, each a core of its own.
fn singles(machine: &Machine, first: usize, last: usize) {
    (first..=last).for_each(|cpu| {
        machine.cores(&[&[cpu]]);
    });
}

/// Cores of `width` CPUs side by side, up to CPU `last`.
fn side_by_side(machine: &Machine, last: usize, width: usize) {
    for first in (0..=last).step_by(width) {
        machine.cores(&[&(first..first + width).collect::<Vec<_>>()]);
    }
}

fn status(machine: &Machine, list: &str) {
    machine.file("proc/self/status", format!("Cpus_allowed_list:\t{list}\n"));
}

/// The process in the cgroup `/a/b` of version 2, with these limits from the root of the mount down.
fn limits(machine: &Machine, limits: [&str; 3]) {
    machine.file("proc/self/cgroup", "0::/a/b\n");
    machine.file("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    for (directory, limit) in ["", "/a", "/a/b"].into_iter().zip(limits) {
        if !limit.is_empty() {
            machine.file(&format!("sys/fs/cgroup{directory}/cpu.max"), format!("{limit}\n"));
        }
    }
}

fn cache(machine: &Machine, cpu: usize, level: usize, shared: &str) {
    let file = |name: &str| format!("cache/index{level}/{name}");
    machine.cpu(cpu, &file("level"), format!("{level}\n")).cpu(cpu, &file("type"), "Unified\n");
    machine.cpu(cpu, &file("shared_cpu_list"), format!("{shared}\n"));
}

fn caches(topology: &CpuTopology) -> Vec<String> {
    topology.last_level_caches().iter().map(|cache| cache.cpus().to_string()).collect()
}

#[test]
fn containers_with_a_quota() {
    // A server with 8 CPUs and a container with 4 of them: by a cpuset, and by a quota.
    let by_set = |m: &Machine| {
        m.online("0-7");
        singles(m, 0, 7);
        status(m, "0-3");
    };
    check("T01, cpuset", by_set, &expected("0-3", 4, 4, &["0-3"]));
    /// Limits from the root down, and workers of 16 cores.
    const CASES: &[(&str, [&str; 3], usize)] = &[
        ("T01, quota", ["", "", "400000 100000"], 4),
        ("T02, rounded up by one", ["", "", "765000 100000"], 7),
        ("T04, the leaf has none", ["", "800000 100000", ""], 8),
        ("T05, the leaf says max", ["", "800000 100000", "max 100000"], 8),
        ("T07, nothing is visible", ["", "", "max 100000"], 16),
        ("T08, a quarter", ["", "", "25000 100000"], 1),
        ("T10, not quite four", ["", "", "399000 100000"], 3),
        ("T11, two and a half", ["", "", "250000 100000"], 2),
        ("the parent is tighter", ["", "200000 100000", "300000 100000"], 2),
        ("more than there are CPUs", ["", "", "9900000 100000"], 16),
    ];
    for (name, quota, workers) in CASES {
        let lay_out = |m: &Machine| {
            m.online("0-15");
            singles(m, 0, 15);
            status(m, "0-15");
            limits(m, *quota);
        };
        check(name, lay_out, &expected("0-15", 16, *workers, &["0-15"]));
    }
}

#[test]
fn containers_with_ids_that_do_not_fit() {
    let sparse = |m: &Machine| {
        m.online("0-127");
        singles(m, 0, 127);
        status(m, "0,30-65,94-127");
        limits(m, ["", "", "200000 100000"]);
    };
    check("T13", sparse, &expected("0,30-65,94-127", 71, 2, &["0,30-65,94-127"]));

    let rewritten = |m: &Machine| {
        m.online("0").file(&format!("{CPU}/present"), "0-31\n");
        side_by_side(m, 31, 2);
        status(m, "24");
    };
    let topology = check("T14", rewritten, &expected("24", 1, 1, &["24"]));
    assert_eq!(PlanRequest::new().plan(&topology).core_ids, [24]);

    let one_of_many = |m: &Machine| {
        m.online("0-55");
        singles(m, 0, 55);
        status(m, "3");
    };
    check("T16", one_of_many, &expected("3", 1, 1, &["3"]));

    let half_cores = |m: &Machine| {
        m.online("1,4").cores(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]);
        (0..8).for_each(|cpu| cache(m, cpu, 3, "0-7"));
    };
    let topology = check("T17", half_cores, &expected("1,4", 2, 2, &["1,4"]));
    assert_eq!(caches(&topology), ["1,4"]);
    assert!(topology.cores().iter().all(|core| core.siblings_total() == 2));

    let isolated = |m: &Machine| {
        m.online("0-4").file(&format!("{CPU}/isolated"), "2\n");
        singles(m, 0, 4);
        status(m, "0-1,3-4");
    };
    let topology = check("T98", isolated, &expected("0-1,3-4", 4, 4, &["0-1,3-4"]));
    assert_eq!(PlanRequest::new().plan(&topology).core_ids, [0, 1, 3, 4]);
}

#[test]
fn sandboxes_without_topology() {
    let gvisor = |m: &Machine| {
        m.online("0-4");
        (0..5).for_each(|cpu| {
            m.folder(&format!("{CPU}/cpu{cpu}"));
        });
    };
    check("T19", gvisor, &expected("0-4", 5, 5, &["0-4"]));
    let enclave = |m: &Machine| {
        m.file("proc/cpuinfo", "processor\t: 0\n\nprocessor\t: 1\n");
    };
    check("T20", enclave, &expected("0-1", 2, 2, &["0-1"]));
    let firecracker = |m: &Machine| {
        m.online("0-1").cores(&[&[0], &[1]]);
        m.file(&format!("{CPU}/isolated"), "\n").file(&format!("{CPU}/offline"), "\n");
        m.file("proc/self/cgroup", "1:cpu:/\n0::/\n").folder("sys/fs/cgroup");
    };
    let topology = check("T22", firecracker, &expected("0-1", 2, 2, &["0-1"]));
    assert!(topology.quota().is_none() && topology.isolated().is_empty());
}

#[test]
fn intel_hybrids() {
    let pmu = |m: &Machine, core: &str, atom: &str| {
        m.file("sys/devices/cpu_core/cpus", format!("{core}\n"));
        m.file("sys/devices/cpu_atom/cpus", format!("{atom}\n"));
    };
    let without_smt = |m: &Machine| {
        m.online("0-19");
        singles(m, 0, 19);
        pmu(m, "0-7", "8-19");
    };
    check("T25", without_smt, &expected("0-19", 20, 8, &["0-7", "!8-19"]));
    let smt_off = |m: &Machine| {
        m.online("0-15");
        singles(m, 0, 15);
        pmu(m, "0-7", "8-15");
    };
    check("T26", smt_off, &expected("0-15", 16, 8, &["0-7", "!8-15"]));

    let laptop = |m: &Machine| {
        m.online("0-19");
        side_by_side(m, 11, 2);
        singles(m, 12, 19);
    };
    let by_base = |m: &Machine| {
        laptop(m);
        m.speed(0..12, "cpufreq/base_frequency", 1_900_000);
        m.speed(12..20, "cpufreq/base_frequency", 1_400_000);
        m.speed(0..12, "cpufreq/cpuinfo_max_freq", 5_000_000);
        m.speed(4..8, "cpufreq/cpuinfo_max_freq", 5_200_000);
        m.speed(12..20, "cpufreq/cpuinfo_max_freq", 3_900_000);
    };
    check("T28", by_base, &expected("0-19", 14, 6, &["0-11", "!12-19"]));
    let turbo_off = |m: &Machine| {
        laptop(m);
        pmu(m, "0-11", "12-19");
        m.speed(0..20, "acpi_cppc/highest_perf", 64);
        m.speed(0..12, "cpufreq/cpuinfo_max_freq", 2_600_000);
        m.speed(12..20, "cpufreq/cpuinfo_max_freq", 3_600_000);
    };
    check("T29", turbo_off, &expected("0-19", 14, 6, &["0-11", "!12-19"]));
    check(
        "T35",
        |m| {
            laptop(m);
            pmu(m, "0-11", "12-19");
        },
        &expected("0-19", 14, 6, &["0-11", "!12-19"]),
    );
    let packages = |m: &Machine| {
        m.online("0-23");
        singles(m, 0, 23);
        (0..24).for_each(|cpu| {
            m.cpu(cpu, "topology/physical_package_id", format!("{cpu}\n"));
        });
        pmu(m, "0-7", "8-23");
    };
    check("T31", packages, &expected("0-23", 24, 8, &["0-7", "!8-23"]));
}

#[test]
fn virtual_machines() {
    let wsl = |m: &Machine| {
        m.online("0-23");
        side_by_side(m, 23, 2);
        m.file("proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n");
    };
    let topology = check("T32", wsl, &expected("0-23", 12, 12, &["0-23"]));
    assert_eq!(topology.is_virtualized(), Some(true));
    let one_cache = |m: &Machine| {
        m.online("0-31");
        side_by_side(m, 31, 2);
        (0..32).for_each(|cpu| cache(m, cpu, 3, "0-31"));
    };
    assert_eq!(caches(&check("T34", one_cache, &expected("0-31", 16, 16, &["0-31"]))), ["0-31"]);
    let repeated_ids = |m: &Machine| {
        m.online("0-3");
        side_by_side(m, 3, 2);
        for cpu in 0..4 {
            m.cpu(cpu, "topology/core_id", "0\n");
            m.cpu(cpu, "topology/physical_package_id", format!("{}\n", cpu / 2));
        }
    };
    check("T41", repeated_ids, &expected("0-3", 2, 2, &["0-3"]));
    let hotplug = |m: &Machine| {
        // Read while CPUs 12 to 15 went away: CPU 11 still names them.
        m.online("0-11,16-31");
        side_by_side(m, 31, 4);
        (12..16).for_each(|cpu| {
            m.cpu(cpu, "topology/thread_siblings_list", "");
        });
        m.cpu(11, "topology/thread_siblings_list", "8-15\n");
    };
    check("T44", hotplug, &expected("0-11,16-31", 7, 7, &["0-11,16-31"]));
}

#[test]
fn gaps_and_cpus_that_are_offline() {
    let hole = |m: &Machine| {
        m.online("0-15").file(&format!("{CPU}/possible"), "0-31\n");
        (0..8).for_each(|core| {
            m.cores(&[&[core, core + 8]]);
        });
        m.folder(&format!("{CPU}/cpu16"));
    };
    check("T46", hole, &expected("0-15", 8, 8, &["0-15"]));
    let gaps = |m: &Machine| {
        m.online("0,3-7").file(&format!("{CPU}/present"), "0,3-7\n");
        singles(m, 0, 0);
        singles(m, 3, 7);
    };
    check("T47", gaps, &expected("0,3-7", 6, 6, &["0,3-7"]));
    let every_second = |m: &Machine| {
        m.online("0,2,4,6");
        m.cores(&[&[0], &[2], &[4], &[6]]);
        m.folder(&format!("{CPU}/cpu1"));
    };
    check("T52", every_second, &expected("0,2,4,6", 4, 4, &["0,2,4,6"]));
    let node_with_offline = |m: &Machine| {
        m.online("0-1").cores(&[&[0], &[1]]);
        m.file("sys/devices/system/node/node0/cpulist", "0-3\n").folder(&format!("{CPU}/cpu2"));
    };
    let topology = check("T53", node_with_offline, &expected("0-1", 2, 2, &["0-1"]));
    assert_eq!(topology.numa_nodes()[0].cpus().to_string(), "0-1");
    let masks_only = |m: &Machine| {
        for (cpu, mask) in [(0, "101"), (1, "202"), (8, "101"), (9, "202"), (10, "400")] {
            m.cpu(cpu, "topology/thread_siblings", format!("00000000,00000{mask}\n"));
            m.cpu(cpu, "online", "1\n");
        }
        m.cpu(2, "online", "0\n");
    };
    check("T55", masks_only, &expected("0-1,8-10", 3, 3, &["0-1,8-10"]));
    let no_smt = |m: &Machine| {
        m.online("0-3").file(&format!("{CPU}/smt/control"), "off\n");
        singles(m, 0, 3);
    };
    check("T61", no_smt, &expected("0-3", 4, 4, &["0-3"]));
}

#[test]
fn amd_machines() {
    let two_dies = |m: &Machine| {
        m.online("0-31");
        for core in 0..16 {
            m.cores(&[&[core, core + 16]]);
            let shared = ["0-7,16-23", "8-15,24-31"][core / 8];
            for cpu in [core, core + 16] {
                cache(m, cpu, 3, shared);
                m.speed([cpu], "acpi_cppc/highest_perf", 166 + 4 * core as u64);
            }
        }
    };
    let topology = check("T49", two_dies, &expected("0-31", 16, 16, &["0-31"]));
    assert_eq!(caches(&topology), ["0-7,16-23", "8-15,24-31"]);
    let dense_cores = |m: &Machine| {
        m.online("0-23");
        for core in 0..12 {
            m.cores(&[&[core, core + 12]]);
            let (shared, freq) =
                if core < 4 { ("0-3,12-15", 5_100_000) } else { ("4-11,16-23", 3_300_000) };
            for cpu in [core, core + 12] {
                cache(m, cpu, 3, shared);
                m.speed([cpu], "cpufreq/cpuinfo_max_freq", freq);
                m.cpu(cpu, "topology/cluster_id", "0\n");
            }
        }
    };
    let topology =
        check("T50", dense_cores, &expected("0-23", 12, 4, &["0-3,12-15", "!4-11,16-23"]));
    assert_eq!(caches(&topology).len(), 2);
}

#[test]
fn arm_machines() {
    let capacities = |m: &Machine, capacities: &[u64]| {
        m.online(&format!("0-{}", capacities.len() - 1));
        for (cpu, capacity) in capacities.iter().enumerate() {
            m.cores(&[&[cpu]]).speed([cpu], "cpu_capacity", *capacity);
        }
    };
    let clusters = |m: &Machine| {
        capacities(m, &[1024; 12]);
        for cpu in 0..12 {
            m.cpu(cpu, "topology/core_id", format!("{}\n", cpu % 4));
            m.cpu(cpu, "topology/physical_package_id", "0\n");
            cache(m, cpu, 2, ["0-3", "4-7", "8-11"][cpu / 4]);
        }
    };
    let topology = check("T62", clusters, &expected("0-11", 12, 12, &["0-11"]));
    assert_eq!(caches(&topology), ["0-3", "4-7", "8-11"]);
    let headset = |m: &Machine| {
        capacities(m, &[848, 848, 1024, 1024, 1024, 1024]);
        for cpu in 0..6 {
            m.cpu(cpu, "topology/physical_package_id", ["0\n", "1\n"][usize::from(cpu > 1)]);
            m.cpu(cpu, "topology/core_id", format!("{}\n", if cpu > 1 { cpu - 2 } else { cpu }));
            cache(m, cpu, 3, "0-5");
        }
    };
    let topology = check("T64", headset, &expected("0-5", 6, 6, &["0-5"]));
    assert_eq!((caches(&topology), topology.numa_nodes().len()), (vec!["0-5".to_owned()], 0));
    let by_ids = |m: &Machine| {
        let all = [1024, 1024, 279, 279, 279, 279, 905, 905, 866, 866, 984, 984];
        m.online("0-11");
        for (cpu, capacity) in all.into_iter().enumerate() {
            m.speed([cpu], "cpu_capacity", capacity);
            m.cpu(cpu, "topology/core_id", format!("{cpu}\n"));
            m.cpu(cpu, "topology/physical_package_id", "0\n");
        }
    };
    check("T65", by_ids, &expected("0-11", 12, 8, &["0-1,6-11", "!2-5"]));
    let eight_nodes = |m: &Machine| {
        capacities(m, &[1024; 4]);
        (0..8).for_each(|node| {
            m.file(&format!("sys/devices/system/node/node{node}/cpulist"), "0-3\n");
        });
    };
    assert!(check("T67", eight_nodes, &expected("0-3", 4, 4, &["0-3"])).numa_nodes().is_empty());
    let three_kinds = |m: &Machine| capacities(m, &[160, 160, 160, 160, 480, 480, 480, 1024]);
    check("T68", three_kinds, &expected("0-7", 8, 4, &["7", "4-6", "!0-3"]));
    let hot_unplugged = |m: &Machine| {
        capacities(m, &[250, 250, 250, 250, 1024, 1024, 1024, 1024]);
        m.online("0,2-4").file(&format!("{CPU}/present"), "0,2-7\n");
    };
    check("T70", hot_unplugged, &expected("0,2-4", 4, 1, &["4", "!0,2-3"]));
    let background = |m: &Machine| {
        capacities(m, &[400, 400, 400, 400, 1024, 1024, 1024, 1024]);
        status(m, "0-1");
    };
    check("T71, background", background, &expected("0-1", 2, 2, &["0-1"]));
    let foreground = |m: &Machine| {
        capacities(m, &[400, 400, 400, 400, 1024, 1024, 1024, 1024]);
        status(m, "0-5");
    };
    check("T71, foreground", foreground, &expected("0-5", 6, 2, &["4-5", "!0-3"]));
    let nul_bytes = |m: &Machine| {
        m.online("0-127");
        for cpu in 0..128 {
            m.cpu(cpu, "topology/thread_siblings_list", format!("{cpu}\n\0"));
            m.cpu(cpu, "topology/die_id", "-1\n");
            m.cpu(cpu, "topology/physical_package_id", ["36\n", "8442\n"][cpu / 64]);
        }
    };
    let topology = check("T76", nul_bytes, &expected("0-127", 128, 128, &["0-127"]));
    assert_eq!((topology.packages().len(), topology.dies().len()), (2, 0));
    let four_and_four = |m: &Machine| capacities(m, &[530, 530, 530, 530, 1024, 1024, 1024, 1024]);
    check("T77", four_and_four, &expected("0-7", 8, 4, &["4-7", "!0-3"]));
}

#[test]
fn power_and_mainframes() {
    let smt4 = |m: &Machine| {
        m.online("0-63");
        side_by_side(m, 63, 4);
    };
    let topology = check("T79", smt4, &expected("0-63", 16, 16, &["0-63"]));
    let two = PlanRequest::new().threads_per_core(2).plan(&topology);
    assert_eq!((two.num_threads, two.core_ids[15..18].to_vec()), (32, vec![60, 1, 5]), "T80");
    let smt8 = |m: &Machine| {
        m.online("0-79");
        side_by_side(m, 79, 8);
        (0..80).for_each(|cpu| {
            m.cpu(
                cpu,
                "topology/core_siblings_list",
                format!("{}-{}\n", cpu / 8 * 8, cpu / 8 * 8 + 7),
            );
        });
    };
    check("T82", smt8, &expected("0-79", 10, 10, &["0-79"]));
    let half_of_each = |m: &Machine| {
        m.online("0-3,8-11,16-19");
        for first in [0, 8, 16] {
            m.cores(&[&(first..first + 4).collect::<Vec<_>>()]);
        }
    };
    check("T83", half_of_each, &expected("0-3,8-11,16-19", 3, 3, &["0-3,8-11,16-19"]));
    let mainframe = |m: &Machine| {
        m.online("0-7");
        side_by_side(m, 7, 2);
        (0..8).for_each(|cpu| {
            m.cpu(cpu, "topology/physical_package_id", "-1\n").cpu(cpu, "topology/core_id", "1\n");
        });
    };
    check("T85", mainframe, &expected("0-7", 4, 4, &["0-7"]));
    let books = |m: &Machine| {
        m.online("0-19").file(&format!("{CPU}/possible"), "0-63\n");
        for cpu in 0..20 {
            m.cpu(cpu, "topology/thread_siblings", format!("{:08x},{:08x}\n", 0, 1 << cpu));
            m.cpu(cpu, "topology/core_id", format!("{}\n", 1 + cpu / 4));
            m.cpu(cpu, "topology/physical_package_id", "-1\n");
            m.cpu(cpu, "topology/book_id", format!("{}\n", cpu / 10));
        }
    };
    check("T86", books, &expected("0-19", 20, 20, &["0-19"]));
}

#[test]
fn machines_of_every_size() {
    for n_cpus in [1, 2, 63, 64, 65, 1023, 1024, 1025, 4096] {
        let lay_out = |m: &Machine| {
            m.online(&format!("0-{}", n_cpus - 1));
            singles(m, 0, n_cpus - 1);
        };
        let all = if n_cpus == 1 { "0".to_owned() } else { format!("0-{}", n_cpus - 1) };
        let machine = Machine::new();
        lay_out(&machine);
        let topology = machine.read();
        assert_eq!(topology.allowed_set().to_string(), all);
        assert_eq!(PlanRequest::new().plan(&topology).num_threads, n_cpus);
    }
}
