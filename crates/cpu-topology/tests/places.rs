//! Caches, nodes, packages and the like of machines described in code.

mod common;

use common::{CPU, Machine, check_invariants, classes, cores};
use cpu_topology::{AllowedFrom, CpuTopology, Note, PlanRequest, Signal, Snapshot, draw_tree};

const NODE: &str = "sys/devices/system/node";

fn read(machine: &Machine) -> CpuTopology {
    let topology = machine.read();
    check_invariants(&topology);
    topology
}

/// CPUs 0 to n-1, each a core.
fn singles(n: usize) -> Machine {
    let machine = Machine::new();
    machine.online(&format!("0-{}", n - 1));
    (0..n).for_each(|cpu| {
        machine.cores(&[&[cpu]]);
    });
    machine
}

/// One cache of a CPU: index, level, type, the CPUs that share it.
fn cache(machine: &Machine, cpu: usize, (index, level, kind, shared): (usize, u8, &str, &str)) {
    let file = |name: &str| format!("cache/index{index}/{name}");
    machine
        .cpu(cpu, &file("level"), format!("{level}\n"))
        .cpu(cpu, &file("type"), format!("{kind}\n"))
        .cpu(cpu, &file("shared_cpu_list"), format!("{shared}\n"));
}

/// Level and CPUs of each last-level cache.
fn caches(topology: &CpuTopology) -> Vec<String> {
    let caches = topology.last_level_caches().iter();
    caches.map(|cache| format!("L{} {}", cache.level(), cache.cpus())).collect()
}

#[test]
fn the_last_level_is_told_by_its_number_and_not_by_its_index() {
    let machine = singles(4);
    for cpu in 0..4 {
        let own = cpu.to_string();
        // The level 3 comes first, and the highest level of all holds instructions only.
        cache(&machine, cpu, (0, 3, "Unified", ["0-1", "2-3"][cpu / 2]));
        cache(&machine, cpu, (1, 1, "Data", &own));
        cache(&machine, cpu, (2, 2, "Unified", &own));
        cache(&machine, cpu, (5, 4, "Instruction", "0-3"));
    }
    machine.cpu(0, "cache/index0/size", "16384K\n");
    let topology = read(&machine);
    assert_eq!(caches(&topology), ["L3 0-1", "L3 2-3"]);
    let sizes = topology.last_level_caches().iter().map(|cache| cache.size()).collect::<Vec<_>>();
    assert_eq!(sizes, [Some(16 << 20), None]);
    assert_eq!(topology.cache_of(&topology.cores()[3]), Some(1));
}

#[test]
fn cores_without_the_level_of_the_others_have_a_domain_of_their_own() {
    let machine = singles(4);
    for cpu in 0..4 {
        cache(&machine, cpu, (0, 2, "Unified", ["0-1", "2-3"][cpu / 2]));
    }
    for cpu in 0..2 {
        cache(&machine, cpu, (1, 3, "Unified", "0-1"));
    }
    assert_eq!(caches(&read(&machine)), ["L3 0-1", "L2 2-3"]);
}

#[test]
fn a_cache_that_is_shared_with_foreign_cpus_counts_for_ours() {
    let machine = Machine::new();
    machine.online("1,4").cores(&[&[0, 4], &[1, 5]]);
    (0..8).for_each(|cpu| cache(&machine, cpu, (3, 3, "Unified", "0-7")));
    let topology = read(&machine);
    assert_eq!((cores(&topology).len(), caches(&topology)), (2, vec!["L3 1,4".to_owned()]));
}

#[test]
fn caches_that_contradict_each_other_stay_disjoint() {
    let machine = singles(6);
    for (cpu, shared) in ["0-1", "0-1", "1-3", "2-3", "0", ""].into_iter().enumerate() {
        cache(&machine, cpu, (3, 3, "Unified", shared));
    }
    let topology = read(&machine);
    assert_eq!(caches(&topology), ["L3 0-1", "L3 2-3"]);
    let notes = topology.notes();
    assert!(notes.contains(&Note::CachesOverlap { cpu: 2, level: 3 }));
    assert!(notes.contains(&Note::CacheSharingUnknown { cpu: 4, level: 3 }));
    assert!(notes.contains(&Note::CacheSharingUnknown { cpu: 5, level: 3 }));
    assert_eq!(topology.cache_of(&topology.cores()[5]), None);
}

#[test]
fn a_cache_of_a_cpu_that_tells_of_none_comes_in_order() {
    let machine = singles(4);
    cache(&machine, 1, (2, 2, "Unified", "1"));
    cache(&machine, 2, (2, 2, "Unified", "0,2"));
    cache(&machine, 3, (2, 2, "Unified", "3"));
    assert_eq!(caches(&read(&machine)), ["L2 0,2", "L2 1", "L2 3"]);
}

#[test]
fn nodes_count_only_if_they_do_not_overlap() {
    let machine = singles(4);
    machine.file(&format!("{NODE}/node0/cpulist"), "0,2\n");
    // Of an old kernel: a mask.
    machine.file(&format!("{NODE}/node3/cpumap"), "00000000,0000000a\n");
    machine.file(&format!("{NODE}/node7/cpulist"), "\n").folder(&format!("{NODE}/power"));
    let topology = read(&machine);
    let nodes = |topology: &CpuTopology| {
        let nodes = topology.numa_nodes().iter();
        nodes.map(|node| format!("{}:{}", node.id(), node.cpus())).collect::<Vec<_>>()
    };
    assert_eq!(nodes(&topology), ["0:0,2", "3:1,3"]);
    assert_eq!(topology.other_numa_nodes(), [7]);
    assert!(!topology.notes().iter().any(|note| matches!(note, Note::OutsideOfNodes { .. })));

    let some = CpuTopology::from_root(machine.root(), &AllowedFrom::Set([1].into_iter().collect()));
    assert_eq!((nodes(&some), some.other_numa_nodes().to_vec()), (vec!["3:1".into()], vec![0, 7]));

    // Simulated nodes: all CPUs in each.
    machine.file(&format!("{NODE}/node3/cpulist"), "0-3\n");
    let topology = read(&machine);
    assert!(topology.numa_nodes().is_empty() && topology.other_numa_nodes().is_empty());
    assert!(topology.notes().contains(&Note::NodesOverlap { node: 3 }));
}

#[test]
fn cpus_outside_of_all_nodes_are_noted() {
    let machine = singles(4);
    machine.folder(&format!("{NODE}/node1/cpu2")).folder(&format!("{NODE}/node1/cpu3"));
    let topology = read(&machine);
    assert_eq!(topology.numa_nodes()[0].cpus().to_string(), "2-3");
    let outside = Note::OutsideOfNodes { cpus: [0, 1].into_iter().collect() };
    assert!(topology.notes().contains(&outside));
}

#[test]
fn packages_dies_and_clusters_are_as_reported() {
    let machine = singles(8);
    for cpu in 0..8 {
        machine
            .cpu(cpu, "topology/physical_package_id", ["36\n", "8442\n\0"][cpu / 4])
            .cpu(cpu, "topology/die_id", format!("{}\n", cpu / 2 % 2))
            .cpu(cpu, "topology/cluster_id", ["5\n", "65535\n"][cpu / 4]);
    }
    let topology = read(&machine);
    let show = |groups: &[cpu_topology::CpuGroup]| {
        groups.iter().map(|group| format!("{}:{}", group.id(), group.cpus())).collect::<Vec<_>>()
    };
    assert_eq!(show(topology.packages()), ["36:0-3", "8442:4-7"]);
    assert_eq!(show(topology.dies()), ["0:0-1", "1:2-3", "0:4-5", "1:6-7"]);
    assert_eq!(show(topology.clusters()), ["5:0-3"]);

    // A number of -1 is none.
    let machine = singles(2);
    (0..2).for_each(|cpu| {
        machine.cpu(cpu, "topology/physical_package_id", "-1\n").cpu(
            cpu,
            "topology/die_id",
            "-1\n",
        );
    });
    let topology = read(&machine);
    assert!(topology.packages().is_empty() && topology.dies().is_empty());
}

#[test]
fn packages_of_a_machine_with_nothing_but_cpuinfo() {
    let machine = Machine::new();
    let block = |cpu: usize| {
        format!("processor\t: {cpu}\nphysical id\t: {}\ncore id\t: {}\n\n", cpu / 2 % 2, cpu % 2)
    };
    machine.file("proc/cpuinfo", (0..8).map(block).collect::<String>());
    let topology = read(&machine);
    assert_eq!(cores(&topology), ["0,4", "1,5", "2,6", "3,7"]);
    let packages = topology.packages().iter().map(|package| package.cpus().to_string());
    assert_eq!(packages.collect::<Vec<_>>(), ["0-1,4-5", "2-3,6-7"]);
}

#[test]
fn isolated_cpus_of_ours_are_told_and_noted() {
    let machine = singles(6);
    machine.file(&format!("{CPU}/isolated"), "2,5\n");
    machine.file("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    let topology = read(&machine);
    assert_eq!(topology.isolated().to_string(), "2");
    let note = Note::IsolatedAllowed { cpus: [2].into_iter().collect() };
    assert!(topology.notes().contains(&note));
    machine.file(&format!("{CPU}/isolated"), "\n");
    assert!(read(&machine).isolated().is_empty());
}

#[test]
fn online_cpus_are_known_beside_the_allowed_ones() {
    let machine = singles(4);
    machine.file("proc/self/status", "Cpus_allowed_list:\t1-2\n");
    let topology = read(&machine);
    assert_eq!(topology.online().map(ToString::to_string).as_deref(), Some("0-3"));
    machine.file("proc/self/status", "Cpus_allowed_list:\t6-7\n");
    let note = Note::AllowedNotOnline { cpus: (6..8).collect() };
    assert!(read(&machine).notes().contains(&note));
    assert_eq!(CpuTopology::from_sibling_lists([(0, vec![])]).online(), None);
}

#[test]
fn virtual_machines_are_recognized() {
    /// A file, its content, and what follows.
    const CASES: &[(&str, &str, Option<bool>)] = &[
        ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse hypervisor lahf_lm\n", Some(true)),
        ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse\n", Some(false)),
        ("proc/cpuinfo", "processor\t: 0\nvmx flags\t: hypervisor\n", None),
        ("proc/cpuinfo", "processor\t: 0\nCPU part\t: 0xd0c\n", None),
        ("sys/hypervisor/type", "xen\n", Some(true)),
        ("proc/device-tree/hypervisor/compatible", "linux,kvm\0", Some(true)),
        ("proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n", Some(true)),
        ("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n", None),
    ];
    for (path, content, expected) in CASES {
        let machine = singles(2);
        machine.file(path, content);
        let topology = read(&machine);
        assert_eq!(topology.is_virtualized(), *expected, "{path}: {content:?}");
        let noted = topology.notes().contains(&Note::Virtualized);
        assert_eq!(noted, *expected == Some(true));
    }
}

#[test]
fn designs_by_registers_where_cpuinfo_tells_none() {
    let machine = singles(4);
    for (cpu, midr) in [(0, 0x410fd034_u64), (1, 0x410fd034), (2, 0x410fd082), (3, 0x410fd082)] {
        machine.cpu(cpu, "regs/identification/midr_el1", format!("0x{midr:016x}\n"));
        machine.speed([cpu], "cpufreq/cpuinfo_max_freq", 1_800_000);
    }
    let topology = read(&machine);
    assert_eq!(classes(&topology), ["2-3", "!0-1"]);
    assert_eq!(topology.class_signal(), Some(Signal::Design));
}

#[test]
fn a_sandbox_without_sys_says_what_it_does_not_know() {
    let machine = Machine::new();
    machine.file("proc/self/status", "Cpus_allowed_list:\t0-4\n");
    let topology = read(&machine);
    assert_eq!(cores(&topology).len(), 5);
    assert!(topology.notes().contains(&Note::SiblingsUnknown));
    assert!(topology.last_level_caches().is_empty() && topology.numa_nodes().is_empty());
    assert_eq!((topology.online(), topology.is_virtualized()), (None, None));
}

#[test]
fn a_snapshot_keeps_the_hypervisor_of_a_device_tree() {
    let machine = singles(2);
    machine.folder("proc/device-tree/hypervisor");
    let text = Snapshot::take(machine.root()).to_string();
    let snapshot = Snapshot::parse(&text).expect("what was printed");
    let found = CpuTopology::from_snapshot(&snapshot, &AllowedFrom::Online);
    assert_eq!(found.is_virtualized(), Some(true), "{text}");
    machine.file("proc/device-tree/hypervisor/compatible", "linux,kvm\0");
    assert_eq!(Snapshot::take(machine.root()).to_string(), text);
}

/// Time that grew with the square of the number of cores would be felt here.
#[test]
fn very_many_cores_each_with_a_package_and_a_cache_of_its_own() {
    const N: usize = 10_000;
    let mut text = format!("{CPU}/online\t0-{}\n{CPU}/isolated\t0-{}:1/2\n", 2 * N, 2 * N);
    for cpu in (0..2 * N).step_by(2) {
        let directory = format!("{CPU}/cpu{cpu}");
        text += &format!(
            "{directory}/topology/core_cpus_list\t{cpu}\n{directory}/topology/physical_package_id\t{cpu}\n\
             {directory}/cache/index2/level\t2\n{directory}/cache/index2/shared_cpu_list\t{cpu}\n\
             sys/devices/system/node/node{cpu}/cpulist\t{cpu}\n"
        );
    }
    let snapshot = Snapshot::parse(&text).expect("a snapshot");
    let even = AllowedFrom::Set((0..2 * N).step_by(2).collect());
    let topology = CpuTopology::from_snapshot(&snapshot, &even);
    let found = [topology.packages().len(), topology.numa_nodes().len(), topology.len()];
    assert_eq!((found, topology.last_level_caches().len()), ([N; 3], N));
    let plan = PlanRequest::new().reserve_coordinator(true).plan(&topology);
    assert_eq!((plan.num_threads, topology.isolated().len()), (N - 1, N));
    assert_eq!(draw_tree(&topology, &plan).lines().count(), 2 * N + 1);
}
