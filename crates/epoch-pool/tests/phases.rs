//! Hot phases and sessions.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::watched;
use epoch_pool::Pool;

fn sum_of_rows(run: impl FnOnce(&(dyn Fn(std::ops::Range<usize>) + Sync))) -> usize {
    let sum = AtomicUsize::new(0);
    run(&|rows| _ = sum.fetch_add(rows.sum(), Ordering::Relaxed));
    sum.into_inner()
}

/// In a hot phase the workers of a pool that parks at once do not park, and afterwards they do.
#[test]
fn workers_stay_awake_in_a_hot_phase() {
    watched(|| {
        let pool = Pool::builder().participants(2).spin_budget(0).build().unwrap();
        if pool.statistics().oversubscribed {
            return; // on one CPU nobody stays awake for others
        }
        // Without a look at the clock the test would rely on this thread never losing its CPU for as long as a worker waits.
        let mut longest_gap = Duration::MAX;
        for _attempt in 0..50 {
            let hot = pool.hot();
            pool.run(|_, _| {}); // the worker is awake
            let before = pool.statistics();
            let mut last = Instant::now();
            longest_gap = Duration::ZERO;
            for _ in 0..1000 {
                pool.run(|_, _| {});
                longest_gap = longest_gap.max(last.elapsed());
                last = Instant::now();
            }
            let after = pool.statistics();
            drop(hot);
            if longest_gap < Duration::from_millis(20) {
                assert_eq!(after.parks, before.parks);
                break;
            }
        }
        if longest_gap >= Duration::from_millis(20) {
            eprintln!("this machine is too busy to tell");
        }
        let parks = pool.statistics().parks;
        pool.run(|_, _| {});
        while pool.statistics().parks == parks {
            thread::yield_now(); // until the watchdog
        }
    });
}

/// Phases may overlap; the last to end counts. Forgotten, one costs what its bound is, and the pool works on.
#[test]
fn phases_overlap_and_may_be_forgotten() {
    watched(|| {
        for n_workers in [0, 1, 3] {
            let pool = Pool::with_spin(n_workers, 0).unwrap();
            let (one, other) = (pool.hot(), pool.hot());
            assert_eq!(sum_of_rows(|f| pool.run_rows(100, f)), 4950);
            drop(one);
            assert_eq!(sum_of_rows(|f| pool.run_rows(100, f)), 4950);
            drop(other);
            assert_eq!(sum_of_rows(|f| pool.run_rows(100, f)), 4950);
            std::mem::forget(pool.hot());
            assert_eq!(sum_of_rows(|f| pool.run_rows(100, f)), 4950);
        }
    });
}

#[test]
fn a_phase_may_begin_and_end_on_other_threads_and_inside_a_job() {
    watched(|| {
        let pool = Pool::with_spin(2, 10).unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let hot = pool.hot();
                        assert_eq!(sum_of_rows(|f| pool.run_rows(100, f)), 4950);
                        drop(hot);
                    }
                });
            }
        });
        pool.run(|_, _| drop(pool.hot()));
    });
}

#[test]
fn a_session_runs_what_a_pool_runs() {
    watched(|| {
        for n_workers in [0, 1, 3] {
            for is_hot in [false, true] {
                let mut pool = Pool::with_spin(n_workers, 100).unwrap();
                let session = pool.session();
                let mut session = if is_hot { session.hot().hot() } else { session };
                assert_eq!(session.participants(), n_workers + 1);
                for _ in 0..50 {
                    assert_eq!(sum_of_rows(|f| session.run_rows(100, f)), 4950);
                    assert_eq!(sum_of_rows(|f| session.run_rows_by(16, 100, f)), 4950);
                    assert_eq!(sum_of_rows(|f| session.run_many(&[(100, f), (10, f)])), 4995);
                    assert_eq!(sum_of_rows(|f| session.run_many_by(8, &[(100, f)])), 4950);
                    let calls = AtomicUsize::new(0);
                    session.run(|_, participants| {
                        assert_eq!(participants, n_workers + 1);
                        calls.fetch_add(1, Ordering::Relaxed);
                    });
                    assert_eq!(calls.into_inner(), n_workers + 1);
                }
                let jobs = session.statistics().dispatches + session.statistics().inline.total();
                assert_eq!(jobs, 250);
                drop(session);
                assert_eq!(sum_of_rows(|f| pool.run_rows(100, f)), 4950);
            }
        }
    });
}

#[test]
fn a_panic_leaves_a_session_usable() {
    watched(|| {
        let mut pool = Pool::new(1).unwrap();
        let mut session = pool.session().hot();
        let panicking = || session.run(|_, _| std::panic::resume_unwind(Box::new(7)));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panicking));
        assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&7));
        assert_eq!(sum_of_rows(|f| session.run_rows(100, f)), 4950);
        drop(session);
        assert_eq!(pool.try_run(|_, _| {}), Ok(()));
    });
}
