//! A thread that the operating system refuses, after others have been started. In a process of its own, whose address space is
//! limited so that a few stacks fit.
#![cfg(target_os = "linux")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use epoch_pool::{Error, Pool};

const STACK: usize = 64 << 20;

fn n_threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// A thread that has been joined may still be listed for a moment.
fn assert_n_threads(expected: usize) {
    for _ in 0..1_000_000 {
        if n_threads() == expected {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{} threads where {expected} are expected", n_threads());
}

fn allow_address_space(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes as libc::rlim_t, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is a valid `rlimit`, which is only read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

#[test]
fn a_refused_thread_is_an_error_and_none_is_left_behind() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let in_use = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let in_use: u64 = in_use.trim().trim_end_matches(" kB").parse().unwrap();
    allow_address_space(1024 * in_use + 4 * STACK as u64);
    let before = n_threads();

    let many = || Pool::builder().workers(1000).stack_size(STACK);
    for _ in 0..3 {
        let Error::Spawn { worker, .. } = many().build().unwrap_err() else {
            panic!("another error")
        };
        assert!((2..100).contains(&worker), "refused at worker {worker}");
        assert_n_threads(before);
    }

    // A start hook's panic is not lost because a later thread was refused.
    let hook = |worker| {
        if worker == 1 {
            resume_unwind(Box::new("hook"))
        }
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| many().on_worker_start(hook).build()));
    assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"hook"));
    assert_n_threads(before);

    allow_address_space(libc::RLIM_INFINITY);
    assert_eq!(Pool::new(2).unwrap().participants(), 3);
}
