//! Linux machines described in code: what their files say, and what follows.

mod common;

use std::path::Path;

use common::{CPU, Machine, check_invariants, classes, cores};
use cpu_topology::{
    AllowedFrom, AllowedSource, CpuTopology, Note, Signal, perf_core_count_in,
    physical_core_count_in, physical_core_cpus_in, plan_cpu_pool_in,
};

fn read_from(machine: &Machine, allowed: &[usize]) -> CpuTopology {
    let topology = CpuTopology::read_from(&machine.root().join(CPU), allowed);
    check_invariants(&topology);
    topology
}

fn read(machine: &Machine) -> CpuTopology {
    let topology = machine.read();
    check_invariants(&topology);
    topology
}

/// Six fast cores of two CPUs (0 to 11) and eight slow ones of one (12 to 19).
fn hybrid_6p8e() -> Machine {
    let machine = Machine::new();
    machine.online("0-19");
    for core in 0..6 {
        machine.cores(&[&[2 * core, 2 * core + 1]]);
    }
    (12..20).for_each(|cpu| {
        machine.cores(&[&[cpu]]);
    });
    machine
}

fn status(machine: &Machine, list: &str) {
    machine.file(
        "proc/self/status",
        format!("Name:\tx\nCpus_allowed:\tffffffff\nCpus_allowed_list:\t{list}\n"),
    );
}

#[test]
fn siblings_share_a_core() {
    let machine = Machine::new();
    machine.cores(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]);
    let topology = read_from(&machine, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(cores(&topology), ["0,4", "1,5", "2,6", "3,7"]);
    assert_eq!(topology.allowed_source(), AllowedSource::Given);
    assert!(topology.quota().is_none() && topology.notes().is_empty());
    assert_eq!(
        topology,
        CpuTopology::from_sibling_lists((0..8).map(|cpu| (cpu, vec![cpu % 4, cpu % 4 + 4])))
    );
}

#[test]
fn the_order_and_repetition_of_allowed_cpus_do_not_matter() {
    let machine = Machine::new();
    machine.cores(&[&[0, 1], &[2, 3]]);
    let topology = read_from(&machine, &[3, 0, 1, 3, 0]);
    assert_eq!(topology.allowed_cpus(), [0, 1, 3]);
    assert_eq!(cores(&topology), ["0-1", "3"]);
    assert_eq!(topology.cores()[1].siblings_total(), 2);
}

#[test]
fn unknown_siblings_never_merge() {
    let machine = Machine::new();
    machine.cpu(0, "topology/core_id", "0\n").cpu(1, "topology/core_id", "0\n");
    machine.cpu(0, "topology/physical_package_id", "0\n").cpu(
        1,
        "topology/physical_package_id",
        "0\n",
    );
    machine.cpu(2, "topology/thread_siblings_list", "\n").cpu(
        3,
        "topology/thread_siblings_list",
        "junk\n",
    );
    assert_eq!(cores(&read_from(&machine, &[0, 1, 2, 3])), ["0", "1", "2", "3"]);
    assert_eq!(cores(&CpuTopology::read_from(Path::new("/no/such/root"), &[7, 9])), ["7", "9"]);
    assert!(read_from(&machine, &[]).is_empty());
}

#[test]
fn broken_lists_merge_only_what_both_sides_name() {
    /// The text of each CPU's list, and the cores.
    type Case = (&'static [&'static [u8]], &'static [&'static str]);
    const CASES: &[Case] = &[
        (&[b"0-1\n", b"0-1\n"], &["0-1"]),
        (&[b"0-1\n\0", b"0-1\0"], &["0-1"]),
        (&[b"0-1", b" 0 , 1 \r\n"], &["0-1"]),
        (&[b"0-1,junk\n", b"0-1\n"], &["0-1"]),
        (&[b"0\n", b"0\n"], &["0", "1"]),
        (&[b"0-1\n", b""], &["0", "1"]),
        (&[b"1-0\n", b"0-1\n"], &["0", "1"]),
        (&[b"0-4294967295\n", b"0-4294967295\n"], &["0", "1"]),
        (&[b"0-63\n", b"0-63\n"], &["0-1"]),
        (&[b"0-1048575\n", b"0-1048575\n"], &["0", "1"]),
        (&[b"\xff\xfe\x00", b"\x80"], &["0", "1"]),
        (&[b"-", b"-"], &["0", "1"]),
        (&[b"0-1", b"0-2", b"1-2"], &["0", "1", "2"]),
    ];
    for (lists, expected) in CASES {
        let machine = Machine::new();
        for (cpu, list) in lists.iter().enumerate() {
            machine.cpu(cpu, "topology/thread_siblings_list", list);
        }
        let allowed = (0..lists.len()).collect::<Vec<_>>();
        assert_eq!(cores(&read_from(&machine, &allowed)), *expected, "lists {lists:?}");
    }
}

#[test]
fn newer_names_lists_and_masks_in_this_order() {
    let machine = Machine::new();
    machine.cpu(0, "topology/core_cpus_list", "0-1\n").cpu(1, "topology/core_cpus_list", "0-1\n");
    machine.cpu(0, "topology/thread_siblings_list", "0\n").cpu(
        1,
        "topology/thread_siblings_list",
        "1\n",
    );
    // A list of nothing is as good as none.
    machine.cpu(7, "topology/core_cpus_list", "\n").cpu(
        7,
        "topology/thread_siblings_list",
        "7,9\n",
    );
    machine.cpu(9, "topology/core_cpus_list", "").cpu(9, "topology/thread_siblings_list", "7,9\n");
    // A malformed list falls back to the mask beside it.
    machine.cpu(2, "topology/core_cpus_list", "2-\n").cpu(2, "topology/core_cpus", "0000000c\n");
    machine.cpu(3, "topology/thread_siblings", "00000000,0000000c\n");
    machine.cpu(32, "topology/thread_siblings", "0003,00000000\n").cpu(
        33,
        "topology/core_cpus",
        "3,00000000\n\0",
    );
    // A mask of nothing is as good as none.
    machine.cpu(5, "topology/thread_siblings", "00000000\n").cpu(
        6,
        "topology/thread_siblings",
        "xyz\n",
    );
    let topology = read_from(&machine, &[0, 1, 2, 3, 5, 6, 7, 9, 32, 33]);
    assert_eq!(cores(&topology), ["0-1", "2-3", "5", "6", "7,9", "32-33"]);
    let malformed =
        topology.notes().iter().filter(|note| matches!(note, Note::Malformed { .. })).count();
    assert_eq!(malformed, 3); // the empty list of CPU 9 is not asked for: the older name has just served CPU 7
}

#[test]
fn a_file_that_cannot_be_a_list_is_noted_and_not_believed() {
    let machine = Machine::new();
    machine.folder(&format!("{CPU}/cpu0/topology/core_cpus_list"));
    machine.cpu(0, "topology/thread_siblings_list", "0-1\n").cpu(
        1,
        "topology/thread_siblings_list",
        "0-1\n",
    );
    machine.cpu(2, "topology/thread_siblings_list", "2,".repeat(1 << 20));
    let topology = read_from(&machine, &[0, 1, 2]);
    assert_eq!(cores(&topology), ["0-1", "2"]);
    assert_eq!(topology.notes().len(), 2);
    assert!(topology.notes().iter().all(|note| !note.to_string().is_empty()));
}

#[test]
#[cfg(unix)] // elsewhere a hole takes up space
fn a_file_without_end_is_not_read_to_the_end() {
    let machine = Machine::new();
    machine.cores(&[&[0, 1]]).cpu(2, "topology/core_cpus_list", "");
    let path = machine.root().join(CPU).join("cpu2/topology/core_cpus_list");
    let file = std::fs::File::options().write(true).open(path).expect("the file");
    file.set_len(1 << 36).expect("a file with a hole");
    assert_eq!(cores(&read_from(&machine, &[0, 1, 2])), ["0-1", "2"]);
}

#[test]
fn offline_cpus_and_gaps() {
    // Every second CPU offline: their siblings no longer name them, and their files are gone.
    let machine = Machine::new();
    machine.online("0,2,4,6").cores(&[&[0], &[2], &[4], &[6]]).folder(&format!("{CPU}/cpu1"));
    let topology = read(&machine);
    assert_eq!(
        (cores(&topology), topology.allowed_source()),
        (vec!["0".into(), "2".into(), "4".into(), "6".into()], AllowedSource::OnlineList)
    );

    // No list of online CPUs: each CPU tells. CPU 0 cannot go offline and has no such file.
    let machine = Machine::new();
    machine.cpu(0, "topology/thread_siblings", "00000000,00000101\n").cpu(1, "online", "1\n");
    machine.cpu(2, "online", "0\n").cpu(8, "online", "1\n").cpu(
        8,
        "topology/thread_siblings",
        "0,00000101\n",
    );
    machine.folder(&format!("{CPU}/cpufreq")).folder(&format!("{CPU}/cpuidle"));
    let topology = read(&machine);
    assert_eq!(cores(&topology), ["0,8", "1"]);
    assert_eq!(topology.allowed_source(), AllowedSource::CpuDirectories);
}

#[test]
fn the_mask_of_the_process_wins_over_lists_with_other_ids() {
    // Inside a container that rewrites the list of online CPUs.
    let machine = Machine::new();
    machine.online("0").cores(&[&[0, 16], &[8, 24]]);
    status(&machine, "24");
    let topology = read(&machine);
    assert_eq!((topology.allowed_cpus(), cores(&topology)), (vec![24], vec!["24".to_owned()]));
    assert_eq!(plan_cpu_pool_in(0, true, &topology).core_ids, [24]);
    assert_eq!(topology.allowed_source(), AllowedSource::StatusFile);

    // Half of each of two cores, lists that name the host's CPUs, and all of the host's directories.
    let machine = Machine::new();
    machine.online("1,4").cores(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]);
    let topology = read(&machine);
    assert_eq!(cores(&topology), ["1", "4"]);
    assert!(topology.cores().iter().all(|core| core.siblings_total() == 2));
}

#[test]
fn a_mask_with_room_for_more_than_is_there() {
    // A virtual machine that could have 128 CPUs.
    let machine = Machine::new();
    machine.online("0-3").cores(&[&[0, 1], &[2, 3]]);
    status(&machine, "0-127");
    let topology = read(&machine);
    assert_eq!((topology.len(), topology.cores().len()), (4, 2));
    // CPU 3 is offline, and CPU 24 says that it is online, which the rewritten list does not.
    machine.online("0-2").cpu(3, "online", "0\n").cpu(24, "online", "1\n");
    assert_eq!(read(&machine).allowed_cpus(), [0, 1, 2, 24]);
}

#[test]
fn the_status_file_has_a_list_and_a_mask() {
    /// Lines of the file, and the CPUs they allow; nothing falls through to the online ones, 0 to 3.
    const CASES: &[(&str, &[usize])] = &[
        ("Cpus_allowed:\t3\nCpus_allowed_list:\t1-2\n", &[1, 2]),
        ("Cpus_allowed:\t00000001,00000002\n", &[1]), // 32 is not online
        ("Cpus_allowed:\t00000001,00000000\n", &[32]),
        ("Cpus_allowed:\t2\nCpus_allowed_list:\tjunk\n", &[1]),
        ("Cpus_allowed:\t0\nCpus_allowed_list:\t\n", &[0, 1, 2, 3]),
        ("Cpus_allowed:\n", &[0, 1, 2, 3]),
        ("Name:\tCpus_allowed_list:\t9\n", &[0, 1, 2, 3]),
        ("", &[0, 1, 2, 3]),
    ];
    for (text, expected) in CASES {
        let machine = Machine::new();
        machine.online("0-3").file("proc/self/status", text);
        assert_eq!(read(&machine).allowed_cpus(), *expected, "status {text:?}");
    }
}

#[test]
fn a_cpuset_counts_where_there_is_no_mask() {
    let machine = Machine::new();
    machine.online("0-3,5-7").file("proc/self/cgroup", "0::/job\n");
    machine.file("proc/self/mountinfo", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
    machine.file("cg/job/cpuset.cpus.effective", "2-5\n");
    let topology = read(&machine);
    assert_eq!(
        (topology.allowed_cpus(), topology.allowed_source()),
        (vec![2, 3, 5], AllowedSource::Cpuset)
    );
}

#[test]
fn without_sys_there_is_still_an_answer() {
    let machine = Machine::new();
    let topology = read(&machine);
    assert_eq!((topology.len(), topology.allowed_source()), (0, AllowedSource::Nowhere));
    assert_eq!(plan_cpu_pool_in(0, true, &topology).core_ids, [0]);

    machine.file("proc/cpuinfo", "processor\t: 0\nmodel name\t: x\n\nprocessor\t: 2\n");
    let topology = read(&machine);
    assert_eq!(
        (cores(&topology), topology.allowed_source()),
        (vec!["0".into(), "2".into()], AllowedSource::CpuInfo)
    );

    status(&machine, "0-4");
    assert_eq!(physical_core_count_in(&read(&machine)), 5);
}

#[test]
fn a_copy_without_sibling_files_is_guessed_and_says_so() {
    let guessed = |topology: &CpuTopology| {
        topology.notes().iter().any(|note| matches!(note, Note::CoresGuessed { .. }))
    };
    let ids = |machine: &Machine, cpu: usize, package: &str, core: &str| {
        machine.cpu(cpu, "topology/physical_package_id", package).cpu(
            cpu,
            "topology/core_id",
            core,
        );
    };
    let machine = Machine::new();
    machine.online("0-3");
    (0..4).for_each(|cpu| ids(&machine, cpu, ["0\n", "1\n"][cpu / 2], "5\n"));
    let topology = read(&machine);
    assert_eq!(cores(&topology), ["0-1", "2-3"]);
    assert!(guessed(&topology));
    // Ids that are missing are no ids.
    ids(&machine, 3, "-1\n", "-1\n");
    assert_eq!(cores(&read(&machine)), ["0", "1", "2", "3"]);
    // One sibling file anywhere, and nothing is guessed.
    ids(&machine, 3, "1\n", "5\n");
    machine.cores(&[&[0]]);
    let topology = read(&machine);
    assert_eq!(cores(&topology), ["0", "1", "2", "3"]);
    assert!(!guessed(&topology));
}

#[test]
fn intel_lists_make_classes() {
    let machine = hybrid_6p8e();
    machine
        .file("sys/devices/cpu_core/cpus", "0-11\n")
        .file("sys/devices/cpu_atom/cpus", "12-19\n");
    // Turbo is off: the slow cores seem to be the faster ones.
    machine.speed(0..12, "cpufreq/cpuinfo_max_freq", 2_600_000).speed(
        12..20,
        "cpufreq/cpuinfo_max_freq",
        3_600_000,
    );
    let topology = read(&machine);
    assert_eq!(classes(&topology), ["0-11", "!12-19"]);
    assert_eq!(topology.class_signal(), Some(Signal::PmuLists));
    assert_eq!((perf_core_count_in(&topology), physical_core_count_in(&topology)), (6, 14));
}

#[test]
fn three_kinds_of_intel_cores() {
    let machine = hybrid_6p8e();
    machine
        .file("sys/devices/cpu_core/cpus", "0-11\n")
        .file("sys/devices/cpu_atom/cpus", "12-17\n");
    machine.file("sys/devices/cpu_lowpower/cpus", "18-19\n");
    let topology = read(&machine);
    assert_eq!(classes(&topology), ["0-11", "!12-17", "!18-19"]);
    assert_eq!(perf_core_count_in(&topology), 6);
}

#[test]
fn a_process_on_slow_cores_has_no_efficiency_cores() {
    let machine = hybrid_6p8e();
    machine
        .file("sys/devices/cpu_core/cpus", "0-11\n")
        .file("sys/devices/cpu_atom/cpus", "12-19\n");
    status(&machine, "14-19");
    let topology = read(&machine);
    assert_eq!(classes(&topology), ["14-19"]);
    assert_eq!(perf_core_count_in(&topology), 6);
}

#[test]
fn base_frequency_tells_kinds_where_maximum_frequency_tells_favoured_cores() {
    let machine = hybrid_6p8e();
    machine.speed(0..12, "cpufreq/base_frequency", 1_900_000).speed(
        12..20,
        "cpufreq/base_frequency",
        1_400_000,
    );
    machine.speed(0..12, "cpufreq/cpuinfo_max_freq", 5_000_000).speed(
        12..20,
        "cpufreq/cpuinfo_max_freq",
        3_900_000,
    );
    machine.speed(4..8, "cpufreq/cpuinfo_max_freq", 5_200_000);
    let topology = read(&machine);
    assert_eq!(classes(&topology), ["0-11", "!12-19"]);
    assert_eq!(topology.class_signal(), Some(Signal::BaseFrequency));
}

#[test]
fn capacities_of_a_phone() {
    /// Capacity of each CPU, the classes, and the performance cores.
    type Case = (&'static [u64], &'static [&'static str], usize);
    const CASES: &[Case] = &[
        (&[280, 280, 280, 855, 855, 855, 855, 1024], &["3-7", "!0-2"], 5),
        (&[848, 848, 1024, 1024, 1024, 1024], &["0-5"], 6),
        (&[250, 250, 250, 250, 620, 620, 620, 1024], &["7", "4-6", "!0-3"], 4),
        (&[1024, 1024, 279, 279, 279, 279, 905, 905, 866, 866, 984, 984], &["0-1,6-11", "!2-5"], 8),
        (&[1024, 1024, 1024, 1024], &["0-3"], 4),
        (&[0, 0, 0, 0], &["0-3"], 4),
    ];
    for (capacities, expected, perf) in CASES {
        let machine = Machine::new();
        for (cpu, capacity) in capacities.iter().enumerate() {
            machine.cores(&[&[cpu]]).speed([cpu], "cpu_capacity", *capacity);
        }
        let topology = read_from(&machine, &(0..capacities.len()).collect::<Vec<_>>());
        assert_eq!(classes(&topology), *expected, "capacities {capacities:?}");
        assert_eq!(perf_core_count_in(&topology), *perf, "capacities {capacities:?}");
    }
}

#[test]
fn slow_cores_of_the_same_design_are_no_efficiency_cores() {
    /// Part of each half of the CPUs, and the classes.
    const CASES: &[([&str; 2], [&str; 2])] = &[
        (["0xd03", "0xd03"], ["2-3", "0-1"]),
        (["0xd03", "0xd08"], ["2-3", "!0-1"]),
        (["", "0xd08"], ["2-3", "!0-1"]),
        (["junk", "junk"], ["2-3", "!0-1"]),
    ];
    for (parts, expected) in CASES {
        let machine = Machine::new();
        machine.online("0-3").speed(0..2, "cpufreq/cpuinfo_max_freq", 1_113_600);
        machine.speed(2..4, "cpufreq/cpuinfo_max_freq", 1_459_200);
        let block = |cpu: usize| {
            format!(
                "processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU part\t: {}\n\n",
                parts[cpu / 2]
            )
        };
        machine.file("proc/cpuinfo", (0..4).map(block).collect::<String>());
        assert_eq!(classes(&read(&machine)), *expected, "parts {parts:?}");
    }
}

#[test]
fn a_process_without_the_slowest_cores_has_no_efficiency_cores() {
    let machine = Machine::new();
    machine.speed(0..4, "cpu_capacity", 250).speed(4..7, "cpu_capacity", 620).speed(
        [7],
        "cpu_capacity",
        1024,
    );
    status(&machine, "5-7");
    assert_eq!(classes(&read(&machine)), ["7", "5-6"]);
    status(&machine, "3-6");
    assert_eq!(classes(&read(&machine)), ["4-6", "!3"]);
}

#[test]
fn favoured_cores_are_no_class() {
    let machine = Machine::new();
    machine.online("0-15");
    for cpu in 0..16 {
        machine.cores(&[&[cpu]]).speed([cpu], "acpi_cppc/highest_perf", 166 + 5 * cpu as u64);
        machine.speed([cpu], "cpufreq/cpuinfo_max_freq", 5_086_181);
    }
    assert_eq!(classes(&read(&machine)), ["0-15"]);
    // Not even where a process has only the best and the worst of them.
    status(&machine, "0,15");
    assert_eq!(classes(&read(&machine)), ["0,15"]);
}

#[test]
fn a_signal_that_is_missing_for_some_cores_is_noted() {
    let machine = Machine::new();
    machine.cores(&[&[0], &[1]]).speed([0], "cpufreq/cpuinfo_max_freq", 800_000);
    machine.cpu(1, "cpufreq/cpuinfo_max_freq", "fast\n");
    let topology = read_from(&machine, &[0, 1]);
    assert_eq!(classes(&topology), ["0-1"]);
    let expected = Note::SignalIncomplete { signal: Signal::MaxFreq, cpu: 1 };
    assert!(topology.notes().contains(&expected));
}

#[test]
fn a_plan_prefers_fast_cores() {
    // The fast cores have the highest ids, as on some machines.
    let machine = Machine::new();
    machine.online("0-4").cores(&[&[0], &[1], &[2], &[3], &[4]]);
    machine.speed(0..4, "cpu_capacity", 400).speed([4], "cpu_capacity", 1024);
    let topology = read(&machine);
    assert_eq!(perf_core_count_in(&topology), 1);
    assert_eq!(plan_cpu_pool_in(1, false, &topology).core_ids, [4]);
    let plan = plan_cpu_pool_in(0, true, &topology);
    assert_eq!((plan.core_ids, plan.coordinator_cpu), (vec![4, 0, 1, 2], Some(3)));
    assert_eq!(physical_core_cpus_in(&topology), [0, 1, 2, 3, 4]);
}

#[test]
fn large_sparse_ids() {
    let machine = Machine::new();
    machine.cores(&[&[1023, 1024], &[4095, 100_000]]);
    status(&machine, "1023-1024,4095,100000");
    let topology = read(&machine);
    assert_eq!(cores(&topology), ["1023-1024", "4095,100000"]);
    // More than a million CPUs is no list that a kernel wrote.
    status(&machine, "0-4294967295");
    machine.online("0-1");
    assert_eq!(read(&machine).allowed_source(), AllowedSource::StatusFile); // from the mask beside it
}

#[test]
fn given_cpus_stand_as_they_are() {
    let machine = Machine::new();
    machine.online("0-3").cores(&[&[0, 1], &[2, 3]]);
    let set = [1, 2, 3, 9].into_iter().collect();
    let topology = CpuTopology::from_root(machine.root(), &AllowedFrom::Set(set));
    check_invariants(&topology);
    assert_eq!(cores(&topology), ["1", "2-3", "9"]);
    assert_eq!(topology.allowed_source(), AllowedSource::Given);
}

#[test]
fn a_core_of_more_cpus_than_any_has_is_unknown() {
    // A megabyte in which all processors are of one core, and one in which they are of cores as large as can be.
    let cpuinfo = |cpus: usize, core: fn(usize) -> usize| {
        let block = |cpu| format!("processor:{cpu}\nphysical id:0\ncore id:{}\n", core(cpu));
        (0..cpus).map(block).collect::<String>()
    };
    let machine = Machine::new();
    machine.online("0-24999").file("proc/cpuinfo", cpuinfo(25_000, |_| 7));
    let topology = machine.read_online();
    assert_eq!((topology.len(), topology.cores().len()), (25_000, 25_000));
    assert!(topology.notes().contains(&Note::CoreTooLarge { cpu: 0, count: 25_000 }));
    assert!(topology.notes().contains(&Note::SiblingsUnknown));

    machine.file("proc/cpuinfo", cpuinfo(25_000, |cpu| cpu % 500));
    let topology = machine.read_online();
    assert_eq!(topology.cores().len(), 500);
    assert_eq!(topology.cores()[499].cpus().len(), 50);

    let machine = Machine::new();
    machine.online("0-99").cpu(0, "topology/core_cpus_list", "0-99\n");
    machine.cpu(1, "topology/core_cpus_list", "1-2\n").cpu(2, "topology/core_cpus_list", "1-2\n");
    let topology = machine.read_online();
    assert_eq!(topology.cores().len(), 99);
    assert_eq!(topology.notes(), [Note::CoreTooLarge { cpu: 0, count: 100 }]);

    let lists = [(0, (0..65).collect::<Vec<_>>()), (1, vec![0, 1])];
    let topology = CpuTopology::from_sibling_lists(lists);
    assert_eq!(cores(&topology), ["0", "1"]);
    assert!(topology.notes().contains(&Note::CoreTooLarge { cpu: 0, count: 65 }));
}
