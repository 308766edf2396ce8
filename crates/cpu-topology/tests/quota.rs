//! Quotas of containers: version 1, version 2, both at once, nested, hidden and broken.

mod common;

use common::{Machine, check_invariants};
use cpu_topology::{
    AllowedFrom, CpuTopology, Note, Snapshot, perf_core_count_in, physical_core_count_in,
    plan_cpu_pool_in, resolve_threads_and_affinity_in,
};

const V2_MOUNT: &str =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const V1_MOUNT: &str =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

/// A machine of 16 CPUs, each a core, with these cgroups and mounts of its process.
fn machine(cgroup: &str, mountinfo: &str) -> Machine {
    let machine = Machine::new();
    machine.online("0-15").file("proc/self/cgroup", cgroup).file("proc/self/mountinfo", mountinfo);
    machine
}

fn v2(cgroup: &str, files: &[(&str, &str)]) -> Machine {
    let machine = machine(&format!("0::{cgroup}\n"), V2_MOUNT);
    for (group, max) in files {
        machine.file(&format!("sys/fs/cgroup/{group}/cpu.max"), max);
    }
    machine
}

fn read(machine: &Machine) -> CpuTopology {
    let topology = machine.read();
    check_invariants(&topology);
    topology
}

/// Quota and period.
fn quota(machine: &Machine) -> Option<(u64, u64)> {
    read(machine).quota().map(|quota| (quota.quota_us(), quota.period_us()))
}

#[test]
fn a_quota_counts_in_every_automatic_number() {
    let topology = read(&v2("/job", &[("job", "200000 100000\n")]));
    assert_eq!(topology.cores().len(), 16);
    assert_eq!(physical_core_count_in(&topology), 2);
    assert_eq!(perf_core_count_in(&topology), 2);
    assert_eq!(resolve_threads_and_affinity_in(0, &topology), (2, vec![0, 1]));
    let plan = plan_cpu_pool_in(0, true, &topology);
    assert_eq!((plan.num_threads, plan.coordinator_cpu), (2, None));
    assert_eq!(plan_cpu_pool_in(12, true, &topology).num_threads, 12);
}

#[test]
fn version_two() {
    /// Files of cgroups, and the quota for a process in /a/b.
    type Case = (&'static [(&'static str, &'static str)], Option<(u64, u64)>);
    const CASES: &[Case] = &[
        (&[], None),
        (&[("a/b", "max 100000\n")], None),
        (&[("a/b", "400000 100000\n")], Some((400_000, 100_000))),
        // The tightest of all ancestors, by ratio and not by time.
        (&[("a/b", "max 100000\n"), ("a", "800000 100000\n")], Some((800_000, 100_000))),
        (&[("a/b", "800000 100000\n"), ("a", "400000 100000\n")], Some((400_000, 100_000))),
        (&[("a/b", "100000 10000\n"), ("a", "400000 100000\n")], Some((400_000, 100_000))),
        (&[("a/b", "800000 100000\n"), (".", "300000 100000\n")], Some((300_000, 100_000))),
        // Somebody else's limits are not ours.
        (&[("a/c", "100000 100000\n"), ("a/b/c", "100000 100000\n"), ("b", "1000 100000\n")], None),
        // What is broken does not hide what is sound.
        (&[("a/b", "junk\n"), ("a", "500000 100000\n")], Some((500_000, 100_000))),
        (&[("a/b", "100000 0\n"), ("a", "\n")], None),
    ];
    for (files, expected) in CASES {
        assert_eq!(quota(&v2("/a/b", files)), *expected, "files {files:?}");
    }
}

#[test]
fn fractions_are_kept_and_rounded_down() {
    /// Content of the file, exact ratio in hundredths, threads.
    const CASES: &[(&str, u64, usize)] = &[
        ("765000 100000\n", 765, 7),
        ("399000 100000\n", 399, 3),
        ("250000 100000\n", 250, 2),
        ("25000 100000\n", 25, 1),
        ("0 100000\n", 0, 1),
        ("99900000 100000\n", 99_900, 16),
    ];
    for (text, hundredths, threads) in CASES {
        let topology = read(&v2("/a", &[("a", text)]));
        let quota = topology.quota().expect("a quota");
        assert_eq!(quota.quota_us() * 100 / quota.period_us(), *hundredths, "text {text:?}");
        assert_eq!(physical_core_count_in(&topology), *threads, "text {text:?}");
    }
}

#[test]
fn the_file_is_named_as_the_process_sees_it() {
    let topology = read(&v2("/a/b", &[("a", "200000 100000\n")]));
    let path = topology.quota().and_then(|quota| quota.path().map(std::path::Path::to_owned));
    assert_eq!(path.as_deref(), Some("/sys/fs/cgroup/a/cpu.max".as_ref()));
}

#[test]
fn version_one() {
    let cgroup = "9:memory:/x\n4:cpu,cpuacct:/docker/1\n3:cpuset:/y\n";
    let group = |path: &str| format!("sys/fs/cgroup/cpu,cpuacct/{path}");
    let machine = machine(cgroup, V1_MOUNT);
    assert_eq!(quota(&machine), None);
    machine
        .file(&group("docker/1/cpu.cfs_quota_us"), "-1\n")
        .file(&group("docker/1/cpu.cfs_period_us"), "100000\n");
    assert_eq!(quota(&machine), None);
    machine.file(&group("docker/1/cpu.cfs_quota_us"), "765000\n");
    assert_eq!(quota(&machine), Some((765_000, 100_000)));
    machine
        .file(&group("docker/cpu.cfs_quota_us"), "50000\n")
        .file(&group("docker/cpu.cfs_period_us"), "10000\n");
    assert_eq!(quota(&machine), Some((50_000, 10_000)));
    machine.file(&group("docker/cpu.cfs_period_us"), "0\n");
    assert_eq!(quota(&machine), Some((765_000, 100_000)));
}

#[test]
fn a_controller_is_called_exactly_cpu() {
    let machine = machine("5:cpuacct:/other\n4:cpuset,cpu2:/other\n", V1_MOUNT);
    machine.file("sys/fs/cgroup/cpu,cpuacct/other/cpu.cfs_quota_us", "100000\n");
    assert_eq!(quota(&machine), None);
}

#[test]
fn both_versions_at_once() {
    let mounts = format!("{V1_MOUNT}33 31 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    let machine = machine("2:cpu,cpuacct:/job\n0::/user.slice/job\n", &mounts);
    // No file anywhere, as where the hierarchies are mounted and the controller is not in use.
    assert_eq!(quota(&machine), None);
    machine.file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
    assert_eq!(quota(&machine), Some((300_000, 100_000)));
    machine.file("sys/fs/cgroup/unified/user.slice/cpu.max", "200000 100000\n");
    assert_eq!(quota(&machine), Some((200_000, 100_000)));
}

#[test]
fn a_container_sees_its_cgroup_at_the_mount_point() {
    // Version 1 without a namespace: the mount shows only the container's subtree.
    let mounts = "32 31 0:29 /docker/1 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
    let machine = machine("4:cpu:/docker/1/worker\n", mounts);
    machine.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
    machine.file("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "1000\n");
    assert_eq!(quota(&machine), Some((400_000, 100_000)));
    machine.file("sys/fs/cgroup/cpu/worker/cpu.cfs_quota_us", "300000\n");
    assert_eq!(quota(&machine), Some((300_000, 100_000)));
    // A sibling whose name begins the same is another one.
    machine
        .file("proc/self/cgroup", "4:cpu:/docker/12\n")
        .file("sys/fs/cgroup/cpu/2/cpu.cfs_quota_us", "1000\n");
    assert_eq!(quota(&machine), Some((400_000, 100_000)));
}

#[test]
fn cgroups_outside_of_the_namespace() {
    for cgroup in ["/..", "/../../other", "/gone (deleted)"] {
        let machine = v2(cgroup, &[(".", "200000 100000\n")]);
        assert_eq!(quota(&machine), Some((200_000, 100_000)), "cgroup {cgroup}");
    }
}

#[test]
fn a_mount_of_what_lies_above_the_namespace_shows_nobody_elses_limits() {
    let machine = machine("0::/x\n", "30 23 0:26 /../.. /cg rw - cgroup2 cgroup2 rw\n");
    machine.file("cg/x/cpu.max", "1000 100000\n").file("cg/cpu.max", "400000 100000\n");
    assert_eq!(quota(&machine), Some((400_000, 100_000)));
}

#[test]
fn a_long_table_of_mounts_is_read_as_far_as_is_reasonable() {
    let others =
        "50 23 0:50 / /var/lib/containers/overlay/some/rather/long/name rw - overlay overlay rw\n";
    let machine = machine("0::/a\n", &format!("{V2_MOUNT}{}", others.repeat(20_000)));
    machine.file("sys/fs/cgroup/a/cpu.max", "400000 100000\n");
    assert_eq!(quota(&machine), Some((400_000, 100_000)));
    assert!(!read(&machine).notes().is_empty());
}

#[test]
fn without_a_cgroup_no_limit_is_ours() {
    let machine = Machine::new();
    machine.online("0-3").file("proc/self/mountinfo", V2_MOUNT).file("proc/self/cpuset", "/a\n");
    machine
        .file("sys/fs/cgroup/cpu.max", "100000 100000\n")
        .file("sys/fs/cgroup/a/cpu.max", "100000 100000\n");
    assert_eq!(quota(&machine), None);
}

#[test]
fn no_path_leads_out_of_the_root() {
    let machine = Machine::new();
    let root = "inner";
    machine.file("cpu.max", "100000 100000\n").file("secret/cpu.max", "100000 100000\n");
    machine.file("inner/proc/self/cgroup", "0::/../../../secret\n");
    machine.file("inner/proc/self/mountinfo", "30 23 0:26 / /../../.. rw - cgroup2 cgroup2 rw\n");
    let allowed = cpu_topology::AllowedFrom::Process;
    assert_eq!(CpuTopology::from_root(&machine.root().join(root), &allowed).quota(), None);
}

#[test]
fn mount_tables_may_be_absent_old_or_escaped() {
    let machine = Machine::new();
    machine
        .online("0-7")
        .file("proc/self/cgroup", "0::/a\n")
        .file("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
    assert_eq!(quota(&machine), Some((200_000, 100_000)));
    machine
        .file("proc/mounts", "none /my\\040cg cgroup2 rw 0 0\n")
        .file("my cg/a/cpu.max", "300000 100000\n");
    assert_eq!(quota(&machine), Some((300_000, 100_000)));
    machine.file("proc/self/mountinfo", "30 23 0:26 / /our\\040cg rw - cgroup2 none rw\n");
    machine.file("our cg/a/cpu.max", "400000 100000\n");
    assert_eq!(quota(&machine), Some((400_000, 100_000)));
    machine.file("proc/self/mountinfo", "no mounts here\n");
    assert_eq!(quota(&machine), None);
}

#[test]
fn a_machine_without_limits() {
    // Cgroups of both versions, hierarchies mounted, and no file with a limit.
    let mounts = "32 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    let machine = machine("9:name=systemd:/\n1:cpu:/\n0::/\n", mounts);
    machine
        .file("sys/devices/system/cpu/isolated", "\n")
        .file("sys/devices/system/cpu/offline", "\n")
        .file("proc/self/status", "Cpus_allowed_list:\t0-1\n");
    machine.online("0-1").cores(&[&[0], &[1]]);
    let topology = read(&machine);
    assert!(topology.quota().is_none() && topology.notes().is_empty());
    assert_eq!(topology.thread_limit(), None);
}

#[test]
fn a_broken_limit_is_noted_with_its_file() {
    let topology = read(&v2("/a", &[("a", "two cores\n")]));
    assert_eq!(topology.quota(), None);
    let path = std::path::Path::new("/sys/fs/cgroup/a/cpu.max");
    assert!(
        topology
            .notes()
            .iter()
            .any(|note| matches!(note, Note::Malformed { path: found, .. } if found == path))
    );
}

#[test]
fn names_with_colons_and_endless_names() {
    let machine = v2("/a:b/c", &[("a:b/c", "200000 100000\n")]);
    assert_eq!(quota(&machine), Some((200_000, 100_000)));
    machine.file("proc/self/cgroup", format!("0::{}\n", "/x".repeat(300_000)));
    assert_eq!(quota(&machine), None);
}

#[test]
fn a_snapshot_says_the_same_whatever_the_host_is_called() {
    let names =
        ["max", "100", "core", "processor", "cpu", "cpuset", "cgroup", "sys", "0", "rw", "job"];
    for host in names {
        let mounts = format!(
            "{V2_MOUNT}32 31 0:29 /{host} /sys/fs/cgroup/{host}/cpu rw - cgroup cgroup rw,cpu\n"
        );
        let group = format!("0::/lxc/{host}/job\n4:cpu:/{host}/100 100\n");
        let machine = machine(&group, &mounts);
        machine.file("proc/sys/kernel/hostname", format!("{host}\n"));
        machine.file(&format!("sys/fs/cgroup/lxc/{host}/cpu.max"), "300000 100000\n");
        let v1 = format!("sys/fs/cgroup/{host}/cpu/100 100/cpu.cfs_");
        machine.file(&format!("{v1}quota_us"), "100\n").file(&format!("{v1}period_us"), "1000\n");
        machine.file("sys/fs/cgroup/lxc/cpuset.cpus", "0-3\n");
        let block =
            |cpu| format!("processor\t: {cpu}\nphysical id\t: 0\ncore id\t: {}\n\n", cpu / 2);
        machine.file("proc/cpuinfo", (0..16).map(block).collect::<String>());

        let snapshot = Snapshot::take(machine.root());
        for allowed in [AllowedFrom::Online, AllowedFrom::Process] {
            let found = CpuTopology::from_snapshot(&snapshot, &allowed);
            let expected = CpuTopology::from_root(machine.root(), &allowed);
            // The quota is the same one but for its path, which has the name in it.
            let unlimited = |topology: &CpuTopology| topology.clone().with_quota(None);
            assert_eq!(unlimited(&found), unlimited(&expected), "host {host}");
            let ratio = |topology: &CpuTopology| {
                topology.quota().map(|quota| (quota.quota_us(), quota.period_us()))
            };
            assert_eq!(ratio(&expected), Some((100, 1000)), "host {host}");
            assert_eq!(ratio(&found), ratio(&expected), "host {host}");
            assert_eq!(found.cores()[0].cpus().len(), 2, "host {host}");
        }
        let text = snapshot.to_string();
        let hidden = !text.contains(&format!("lxc/{host}"));
        assert!(hidden || ["cpu", "cpuset", "cgroup", "sys"].contains(&host), "{text}");
    }
}
