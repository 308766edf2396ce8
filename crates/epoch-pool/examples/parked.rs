//! Whether a parked pool is left alone: builds one, uses it, waits until its workers have parked, and looks for some seconds
//! whether any of them is scheduled. Fails if one is. Linux only, as it reads `/proc`.
//!
//! `cargo run --release -p epoch-pool --example parked -- [SECONDS]`

use std::error::Error;
use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let seconds = match std::env::args().nth(1) {
        Some(seconds) => seconds.parse()?,
        None => 10,
    };
    watch(seconds)
}

#[cfg(not(target_os = "linux"))]
fn watch(_seconds: u64) -> Result<ExitCode, Box<dyn Error>> {
    eprintln!("context switches are counted on Linux only");
    Ok(ExitCode::SUCCESS)
}

#[cfg(target_os = "linux")]
use linux::watch;

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::fs;
    use std::path::Path;
    use std::process::ExitCode;
    use std::sync::mpsc;
    use std::thread::{available_parallelism, sleep};
    use std::time::Duration;

    use epoch_pool::Pool;

    const COUNTERS: [&str; 2] = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];

    pub(super) fn watch(seconds: u64) -> Result<ExitCode, Box<dyn Error>> {
        let participants = available_parallelism()?.get().max(2);
        let (registered, tasks) = mpsc::channel();
        let pool = Pool::builder()
            .participants(participants)
            .on_worker_start(move |_| _ = registered.send(fs::read_link("/proc/thread-self")))
            .build()?;
        // As /proc names it: PID/task/TID.
        let tasks: Vec<_> = tasks.try_iter().collect::<Result<_, _>>()?;
        let read = || tasks.iter().map(|task| Task::read(task)).collect::<Result<Vec<_>, _>>();

        for _ in 0..1000 {
            pool.run(|_, _| {});
        }
        let before = until_parked(&pool, read)?;
        println!("{} workers have parked; watching them for {seconds} s", pool.n_workers());
        sleep(Duration::from_secs(seconds));
        let after = read()?;
        for ((task, before), after) in tasks.iter().zip(&before).zip(&after) {
            println!("{}", task.display());
            for (name, (before, after)) in
                COUNTERS.iter().zip(before.switches.iter().zip(after.switches))
            {
                println!("    {name} {before} before, {after} after");
            }
        }
        Ok(if before == after { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// What the kernel says of a thread.
    #[derive(PartialEq, Eq)]
    struct Task {
        is_asleep: bool,
        switches: [u64; COUNTERS.len()],
    }

    impl Task {
        fn read(task: &Path) -> Result<Self, Box<dyn Error>> {
            let text = fs::read_to_string(Path::new("/proc").join(task).join("status"))?;
            let value = |name: &str| {
                let value = text.lines().find_map(|line| line.strip_prefix(name));
                value.map(str::trim).ok_or(format!("{} has no {name}", task.display()))
            };
            let mut switches = [0; COUNTERS.len()];
            for (name, count) in COUNTERS.iter().zip(&mut switches) {
                *count = value(name)?.parse()?;
            }
            Ok(Self { is_asleep: value("State:")?.starts_with('S'), switches })
        }
    }

    /// The workers when each has parked: as many parks as workers, and all asleep and unchanged for a second. A thread that is
    /// preempted on its way to sleep looks asleep, but on a busy machine it has to come back for a moment.
    fn until_parked(
        pool: &Pool,
        read: impl Fn() -> Result<Vec<Task>, Box<dyn Error>>,
    ) -> Result<Vec<Task>, Box<dyn Error>> {
        let mut earlier = (0, Vec::new());
        loop {
            let now = (pool.statistics().parks, read()?);
            let is_asleep =
                now.0 >= pool.n_workers() as u64 && now.1.iter().all(|task| task.is_asleep);
            if is_asleep && now == earlier {
                return Ok(now.1);
            }
            earlier = now;
            sleep(Duration::from_secs(1));
        }
    }
}
