//! Limits that the kernel enforces: affinity, a quota and a cpuset of version 1, and a view of version 2 in a mount namespace.
//! What the machine does not permit is skipped, and the reason is printed.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs, process, thread};

use cpu_topology::{CpuTopology, PlanRequest, parse_cpu_list, process_affinity_cpus};

/// What a process under a limit finds.
#[derive(Debug, PartialEq)]
struct Found {
    allowed: String,
    quota: Option<f64>,
    workers: usize,
    /// What the standard library counts.
    parallelism: usize,
}

const MARK: &str = "found in the child: ";

/// The part that runs in a process under a limit.
#[test]
fn in_a_child() {
    if env::var_os("CPU_TOPOLOGY_TEST_CHILD").is_none() {
        return;
    }
    let topology = CpuTopology::detect();
    let quota = topology.quota().map_or(-1.0, |quota| quota.ratio());
    let workers = PlanRequest::new().plan(&topology).num_threads;
    let parallelism = thread::available_parallelism().expect("a count").get();
    let nproc = nproc().unwrap_or(0);
    println!("\n{MARK}{} {quota} {workers} {parallelism} {nproc}", topology.allowed_set());
}

/// What the program of this name counts here, if there is one. Variables of OpenMP, which it obeys, are kept from it.
fn nproc() -> Option<usize> {
    let mut command = Command::new("nproc");
    let output =
        command.env_remove("OMP_NUM_THREADS").env_remove("OMP_THREAD_LIMIT").output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok().filter(|_| output.status.success())
}

/// Runs the part above by a shell that first does what `before` says.
fn under(before: &str, launcher: &[&str]) -> Result<Found, String> {
    let program = env::current_exe().expect("this program");
    let script = format!("{before}\nexec \"$0\" --exact in_a_child --nocapture");
    let command = [launcher, &["sh", "-ec", &script]].concat();
    let output = Command::new(command[0])
        .args(&command[1..])
        .arg(&program)
        .env("CPU_TOPOLOGY_TEST_CHILD", "1")
        .output()
        .map_err(|error| format!("{}: {error}", command[0]))?;
    found(&output)
}

fn found(output: &Output) -> Result<Found, String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix(MARK));
    let fields = line.map(|line| line.split(' ').collect::<Vec<_>>());
    let Some([allowed, quota, workers, parallelism, nproc]) = fields.as_deref() else {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    };
    let found = Found {
        allowed: (*allowed).to_owned(),
        quota: quota.parse().ok().filter(|quota| *quota >= 0.0),
        workers: workers.parse().expect("a number"),
        parallelism: parallelism.parse().expect("a number"),
    };
    // Both count the mask. Of a quota older versions of the program know nothing, and others round it in their own way.
    let n_allowed = parse_cpu_list(allowed).expect("a list").len().to_string();
    if found.quota.is_none() && *nproc != "0" {
        assert_eq!(n_allowed, *nproc, "nproc, and CPUs {allowed}");
    }
    Ok(found)
}

/// A cgroup of version 1 that is removed again, with the cgroups in it.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(controller: &str, name: &str) -> Result<Self, String> {
        let path =
            format!("/sys/fs/cgroup/{controller}/cpu-topology-test-{}-{name}", process::id());
        fs::create_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self(path.into()))
    }

    fn inner(&self, name: &str) -> Self {
        let path = self.0.join(name);
        fs::create_dir(&path).expect("a cgroup in one of ours");
        Self(path)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.0.join(file);
        fs::write(&path, value).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Shell that moves the process into it.
    fn enter(&self) -> String {
        format!("echo $$ > {}", self.0.join("cgroup.procs").display())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        _ = fs::remove_dir(&self.0);
    }
}

fn skipped(test: &str, reason: &str) {
    println!("{test}: skipped: {reason}");
}

#[test]
fn an_affinity_mask() {
    for cpu in process_affinity_cpus() {
        let cpu = cpu.to_string();
        match under("", &["taskset", "-c", &cpu]) {
            Ok(found) => {
                assert_eq!((found.allowed, found.workers, found.parallelism), (cpu, 1, 1));
            }
            Err(reason) => return skipped("an affinity mask", &reason),
        }
    }
}

/// Limits of a cgroup and of one in it, and the quota that counts.
const QUOTAS: &[(&str, &str, Option<f64>)] = &[
    ("-1", "-1", None),
    ("-1", "100000", Some(1.0)),
    ("-1", "150000", Some(1.5)),
    ("100000", "-1", Some(1.0)),
    ("150000", "50000", Some(0.5)),
    ("30000", "30000", Some(0.3)),
];

#[test]
fn a_quota_of_version_1() {
    let run = |outer: &str, inner: &str| {
        let outside = Cgroup::new("cpu", "quota")?;
        let inside = outside.inner("inner");
        outside.set("cpu.cfs_quota_us", outer)?;
        inside.set("cpu.cfs_quota_us", inner)?;
        under(&inside.enter(), &[])
    };
    let unlimited = CpuTopology::detect();
    for (outer, inner, quota) in QUOTAS {
        let found = match run(outer, inner) {
            Ok(found) => found,
            Err(reason) => return skipped("a quota of version 1", &reason),
        };
        if unlimited.quota().is_some() {
            return skipped("a quota of version 1", "this process has a quota itself");
        }
        assert_eq!(found.quota, *quota, "{outer} and {inner} in it");
        let workers = PlanRequest::new().plan(&unlimited).num_threads;
        let limit = quota.map_or(usize::MAX, |quota| (quota as usize).max(1));
        assert_eq!(found.workers, workers.min(limit), "{outer} and {inner} in it");
        // The standard library rounds down as well.
        let same = process_affinity_cpus().len().min(limit);
        assert_eq!(found.parallelism, same, "{outer} and {inner} in it");
    }
}

#[test]
fn a_cpuset_of_version_1() {
    let run = |cpu: &str| {
        let set = Cgroup::new("cpuset", cpu)?;
        let parent = Path::new("/sys/fs/cgroup/cpuset");
        let mems = fs::read_to_string(parent.join("cpuset.mems")).map_err(|e| e.to_string())?;
        set.set("cpuset.mems", &mems)?;
        set.set("cpuset.cpus", cpu)?;
        under(&set.enter(), &[])
    };
    for cpu in process_affinity_cpus() {
        match run(&cpu.to_string()) {
            Ok(found) => {
                let expected = (cpu.to_string(), 1, 1);
                assert_eq!((found.allowed, found.workers, found.parallelism), expected);
            }
            Err(reason) => return skipped("a cpuset of version 1", &reason),
        }
    }
}

#[test]
fn a_quota_of_version_2() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // A process's view of version 2: a file system of our own over the hierarchies, and a file over the name of the cgroup.
    // The table of mounts would say `tmpfs`, so that is covered as well.
    let run = |outer: &str, inner: &str| {
        let limit = |quota: &str| format!("{} 100000", quota.replace("-1", "max"));
        let (outer, inner) = (limit(outer), limit(inner));
        let (cgroup, mounts) = (folder.path().join("cgroup"), folder.path().join("mountinfo"));
        fs::write(&cgroup, "0::/a/b\n").map_err(|error| error.to_string())?;
        fs::write(&mounts, "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
            .map_err(|error| error.to_string())?;
        let script = format!(
            "mount -t tmpfs none /sys/fs/cgroup
             mkdir -p /sys/fs/cgroup/a/b
             echo cpu | tee /sys/fs/cgroup/cgroup.controllers /sys/fs/cgroup/a/cgroup.controllers \
                /sys/fs/cgroup/a/b/cgroup.controllers > /dev/null
             echo '{outer}' > /sys/fs/cgroup/a/cpu.max
             echo '{inner}' > /sys/fs/cgroup/a/b/cpu.max
             mount --bind {mounts} /proc/$$/mountinfo
             mount --bind {cgroup} /proc/$$/cgroup",
            mounts = mounts.display(),
            cgroup = cgroup.display()
        );
        under(&script, &["unshare", "-m"])
    };
    for (outer, inner, quota) in QUOTAS {
        let found = match run(outer, inner) {
            Ok(found) => found,
            Err(reason) => return skipped("a quota of version 2", &reason),
        };
        assert_eq!(found.quota, *quota, "{outer} and {inner} in it");
        let limit = quota.map_or(usize::MAX, |quota| (quota as usize).max(1));
        assert!(found.workers <= limit, "{found:?}");
        let same = process_affinity_cpus().len().min(limit);
        assert_eq!(found.parallelism, same, "{outer} and {inner} in it");
    }
}
