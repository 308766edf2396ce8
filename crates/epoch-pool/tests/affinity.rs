//! CPUs that are taken away and given back, and workers that are pinned to one each. Alone in its process, as it moves threads.
#![cfg(target_os = "linux")]

mod common;

use std::mem::{size_of, zeroed};
use std::sync::{Arc, Mutex};

use common::watched;
use epoch_pool::Pool;

fn cpus_of(thread: libc::pid_t) -> Vec<usize> {
    // SAFETY: a set of CPUs is plain bits.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: `set` is writable, and as large as said.
    let result = unsafe { libc::sched_getaffinity(thread, size_of::<libc::cpu_set_t>(), &mut set) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the numbers are below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

fn bind(thread: libc::pid_t, cpus: &[usize]) {
    // SAFETY: a set of CPUs is plain bits.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    for &cpu in cpus {
        // SAFETY: the numbers came out of such a set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: `set` is readable, and as large as said.
    let result = unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

fn this_thread() -> libc::pid_t {
    // SAFETY: always sound.
    unsafe { libc::gettid() }
}

/// A pool of two participants, and the threads in it.
fn pool() -> (Pool, Vec<libc::pid_t>) {
    let threads = Arc::new(Mutex::new(vec![this_thread()]));
    let record = threads.clone();
    // Nobody else is to move them.
    let builder = Pool::builder().participants(2).keep_apart(false);
    let pool = builder.on_worker_start(move |_| record.lock().unwrap().push(this_thread())).build();
    let threads = threads.lock().unwrap().clone();
    (pool.unwrap(), threads)
}

/// Dispatches until the pool knows; the watchdog ends what does not end.
fn dispatch_until(pool: &Pool, is_known: impl Fn(&Pool) -> bool) {
    while !is_known(pool) {
        pool.run_rows(100, |_rows| {});
        std::thread::yield_now();
    }
}

fn counted(pool: &Pool, times: u64) {
    let before = pool.statistics().cpu_counts;
    dispatch_until(pool, |pool| pool.statistics().cpu_counts >= before + times);
}

#[test]
fn the_cpus_of_the_threads_are_found_out_again() {
    watched(|| {
        let all = cpus_of(0);
        let [first, second, ..] = all[..] else {
            eprintln!("two CPUs are needed to take one of them away");
            return;
        };
        let (pool, threads) = pool();
        if pool.statistics().oversubscribed {
            eprintln!("a quota leaves less than two CPUs");
            return;
        }
        for _ in 0..2 {
            threads.iter().for_each(|&thread| bind(thread, &[second]));
            dispatch_until(&pool, |pool| pool.statistics().oversubscribed);
            threads.iter().for_each(|&thread| bind(thread, &all));
            dispatch_until(&pool, |pool| !pool.statistics().oversubscribed);
        }
        // One CPU each is enough, though no thread may use both.
        bind(threads[0], &[first]);
        bind(threads[1], &[second]);
        counted(&pool, 3);
        assert!(!pool.statistics().oversubscribed);
        bind(threads[0], &all);
    });
}
