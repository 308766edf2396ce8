//! The lines of the table "In a server" of the README that need a process of their own: a fork, and a container whose quota changes.

#![cfg(all(target_os = "linux", feature = "epoch-pool"))]

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Lines, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use cpu_topology::plan_cpu_pool;
use rowpar::{RowPool, WorkerSetup, for_each_range_mut};

/// Whether a pool does its work.
fn works(pool: &dyn RowPool) -> bool {
    let mut out = vec![0; 1000];
    for_each_range_mut(pool, &mut out, 1, |rows, out| {
        out.iter_mut().zip(rows).for_each(|(out, row)| *out = row);
    });
    out.into_iter().eq(0..1000)
}

/// Runs `child` in a fork; its exit code, or `None` if a signal has ended it.
fn in_a_fork(child: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: the child uses what it has a copy of and the allocator, which the C library makes usable in it, and leaves by `_exit`.
    let id = unsafe { libc::fork() };
    assert!(id >= 0, "{}", io::Error::last_os_error());
    if id == 0 {
        // SAFETY: always sound; ends a child that hangs.
        unsafe { libc::alarm(60) };
        let code = child();
        // SAFETY: always sound; runs no destructor of the parent's.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: `id` is a child that has not been waited for; `status` is writable.
    assert_eq!(unsafe { libc::waitpid(id, &mut status, 0) }, id);
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

#[test]
fn a_forked_child_has_the_pool_without_its_workers() {
    let setup = WorkerSetup::new(plan_cpu_pool(3, false));
    let pool = setup.epoch_builder().build().expect("threads can be spawned");
    assert!(works(&pool));
    let code = in_a_fork(|| match (works(&pool), pool.statistics().inline.forked) {
        (true, 1..) => 0,
        (true, 0) => 1,
        (false, _) => 2,
    });
    assert_eq!(code, Some(0));
    assert!(works(&pool), "the parent's is as before");
}

#[test]
fn a_forked_child_can_build_a_pool_of_its_own() {
    let setup = WorkerSetup::new(plan_cpu_pool(3, false));
    let code = in_a_fork(|| match setup.epoch_builder().build() {
        Ok(pool) if works(&pool) && pool.statistics().inline.forked == 0 => 0,
        Ok(_) => 1,
        Err(_) => 2,
    });
    assert_eq!(code, Some(0));
}

/// A group with a quota of its own, as a container has; gone with the value.
struct Group(PathBuf);

impl Group {
    /// `None` where this process may not make one: version 1, as root.
    fn new() -> Option<Self> {
        let name = format!("rowpar-test-{}", std::process::id());
        let path = Path::new("/sys/fs/cgroup/cpu").join(name);
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        group.0.join("cpu.cfs_quota_us").exists().then_some(group)
    }

    /// Full CPUs per period, or no limit.
    fn set_quota(&self, cpus: Option<u32>) {
        let period = fs::read_to_string(self.0.join("cpu.cfs_period_us")).unwrap();
        let period: i64 = period.trim().parse().unwrap();
        let quota = cpus.map_or(-1, |cpus| period * i64::from(cpus));
        fs::write(self.0.join("cpu.cfs_quota_us"), quota.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It has to be empty; if it is not, whoever looks finds it by its name.
        _ = fs::remove_dir(&self.0);
    }
}

const CHILD: &str = "ROWPAR_TEST_SERVER";
const ANSWER: &str = "width ";

/// The child: at each line that it is sent it plans anew, tries the pool that it built at the first, and answers with both widths.
/// Without the variable it is not the child, and has nothing to do.
#[test]
fn a_server_that_is_asked_for_its_widths() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let mut standing = None;
    for line in io::stdin().lines() {
        line.expect("the parent writes text");
        let setup = WorkerSetup::new(plan_cpu_pool(0, false));
        let pool = setup.epoch_builder().build().expect("threads can be spawned");
        let planned = pool.participants();
        assert!(works(&pool));
        let standing = standing.get_or_insert(pool);
        assert!(works(standing));
        println!("\n{ANSWER}{planned} {}", standing.participants());
    }
}

struct Server {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start(group: &Group) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "a_server_that_is_asked_for_its_widths", "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        fs::write(group.0.join("cgroup.procs"), process.id().to_string()).unwrap();
        Self { process, input, output }
    }

    /// What it would plan, and the width of the pool that it has.
    fn widths(&mut self) -> (usize, usize) {
        writeln!(self.input, "plan").unwrap();
        let answer = self.output.by_ref().map_while(Result::ok).find_map(|line| {
            let (planned, standing) = line.strip_prefix(ANSWER)?.split_once(' ')?;
            Some((planned.parse().ok()?, standing.parse().ok()?))
        });
        answer.expect("the server answers until its input ends")
    }

    fn end(mut self) -> bool {
        drop(self.input);
        self.process.wait().unwrap().success()
    }
}

#[test]
fn a_quota_that_changes_is_in_the_next_plan_and_not_in_the_pool_that_stands() {
    let Some(group) = Group::new() else {
        eprintln!("skipped: no control group of version 1 can be made here");
        return;
    };
    let mut server = Server::start(&group);
    let (unlimited, standing) = server.widths();
    assert_eq!(unlimited, standing);
    group.set_quota(Some(1));
    assert_eq!(server.widths(), (1, standing));
    group.set_quota(Some(2));
    assert_eq!(server.widths(), (unlimited.min(2), standing));
    group.set_quota(None);
    assert_eq!(server.widths(), (unlimited, standing));
    assert!(server.end());
}
