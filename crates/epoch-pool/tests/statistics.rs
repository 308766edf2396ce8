//! What a pool counts: each cause once, at the dispatch that had it.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use common::watched;
use epoch_pool::{Busy, InlineRuns, Pool};

/// The causes of inline runs, in the order of the fields.
fn causes(inline: InlineRuns) -> [u64; 5] {
    [inline.no_workers, inline.small, inline.nested, inline.busy, inline.forked]
}

#[test]
fn each_inline_run_has_its_cause() {
    watched(|| {
        let alone = Pool::new(0).unwrap();
        alone.run_rows(100, |_| {});
        alone.run(|participant, participants| assert_eq!((participant, participants), (0, 1)));
        assert_eq!(causes(alone.statistics().inline), [2, 0, 0, 0, 0]);

        let pool = Pool::new(2).unwrap();
        pool.run_rows(1, |_| {});
        pool.run_rows_by(1000, 1000, |_| {});
        pool.run_many(&[(0, &|_| {}), (1, &|_| {})]);
        assert_eq!(causes(pool.statistics().inline), [0, 3, 0, 0, 0]);
        pool.run_rows(0, |_| {});
        pool.run_many(&[]);
        assert_eq!(pool.statistics().inline.total(), 3, "nothing to do is no job");

        // From the caller's part and from the workers'.
        pool.run(|_, _| pool.run_rows(10, |_| {}));
        assert_eq!(causes(pool.statistics().inline), [0, 3, 3, 0, 0]);
        assert_eq!(pool.statistics().dispatches, 1);
    });
}

/// While a job runs that does not end before another thread has tried, that one is busy, and its own work runs inline.
#[test]
fn a_pool_with_a_job_of_another_thread_is_busy() {
    watched(|| {
        let pool = Pool::new(1).unwrap();
        thread::scope(|scope| {
            let (running, is_running) = mpsc::channel();
            let (tried, is_tried) = mpsc::channel::<()>();
            let is_tried = std::sync::Mutex::new(is_tried);
            let pool = &pool;
            scope.spawn(move || {
                pool.run(|participant, _| {
                    if participant == 0 {
                        running.send(()).unwrap();
                        is_tried.lock().unwrap().recv().unwrap();
                    }
                });
            });
            is_running.recv().unwrap();
            assert_eq!(pool.try_run(|_, _| panic!("refused")), Err(Busy::Elsewhere));
            assert_eq!(pool.try_run_rows(8, |_| panic!("refused")), Err(Busy::Elsewhere));
            assert_eq!(pool.try_run_rows_by(2, 8, |_| panic!("refused")), Err(Busy::Elsewhere));
            let parts: [epoch_pool::Part<'_>; 1] = [(8, &|_| panic!("refused"))];
            assert_eq!(pool.try_run_many(&parts), Err(Busy::Elsewhere));
            assert_eq!(pool.try_run_many_by(2, &parts), Err(Busy::Elsewhere));
            let rows = AtomicUsize::new(0);
            pool.run_rows(8, |range| _ = rows.fetch_add(range.len(), Ordering::Relaxed));
            assert_eq!(rows.into_inner(), 8);
            // Too small to be shared: not refused, as it would run here in any case.
            assert_eq!(pool.try_run_rows(1, |_| {}), Ok(()));
            tried.send(()).unwrap();
        });
        let statistics = pool.statistics();
        assert_eq!(causes(statistics.inline), [0, 1, 0, 1, 0]);
        assert_eq!((statistics.dispatches, statistics.refused), (1, 5));
        assert_eq!(pool.try_run(|_, _| {}), Ok(()));
        assert_eq!(pool.try_run_rows(8, |_| {}), Ok(()));
        assert_eq!(pool.statistics().dispatches, 3);
    });
}

#[test]
fn a_nested_try_is_told_so() {
    watched(|| {
        let (pool, other) = (Pool::new(2).unwrap(), Pool::new(1).unwrap());
        let calls = AtomicUsize::new(0);
        pool.run(|_, _| {
            assert_eq!(pool.try_run_rows(8, |_| panic!("refused")), Err(Busy::Nested));
            assert_eq!(pool.try_run(|_, _| panic!("refused")), Err(Busy::Nested));
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.into_inner(), 3);
        assert_eq!(pool.statistics().refused, 6);
        // A worker of one pool is nobody to another.
        pool.run(|participant, _| {
            if participant == 1 {
                assert_eq!(other.try_run(|_, _| {}), Ok(()));
            }
        });
    });
}

#[test]
fn invitations_panics_and_wake_ups_are_counted() {
    watched(|| {
        let pool = Pool::with_spin(3, 0).unwrap();
        for _ in 0..10 {
            pool.run(|_, _| {}); // waits for each worker, so none is late
        }
        let statistics = pool.statistics();
        assert_eq!((statistics.dispatches, statistics.invited, statistics.late), (10, 30, 0));
        assert_eq!((statistics.steals, statistics.panics), (0, 0), "pinned chunks are not stolen");

        pool.run_rows(2, |_| {}); // one worker has a home in it
        assert_eq!(pool.statistics().invited, 31);

        let panicking = || pool.run(|_, _| resume_unwind(Box::new(())));
        assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
        assert_eq!(pool.statistics().panics, 1);
        let panicking = || pool.run_rows(1, |_| resume_unwind(Box::new(())));
        assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
        assert_eq!((pool.statistics().panics, pool.statistics().inline.small), (1, 1));

        // Workers without a spin budget park soon, and the next job that needs them wakes them.
        while pool.statistics().parks == 0 {
            thread::yield_now(); // until the watchdog
        }
        assert!(pool.statistics().unparks <= 3 * pool.statistics().dispatches);
        assert!(pool.statistics().timing.is_none(), "nobody has asked");
    });
}

/// Sooner or later somebody is done first and takes from the other.
#[test]
fn steals_are_counted() {
    watched(|| {
        let pool = Pool::new(1).unwrap();
        while pool.statistics().steals == 0 {
            // The worker's half is empty.
            pool.run_rows(1000, |rows| {
                rows.filter(|row| *row < 500).for_each(|row| _ = std::hint::black_box(row));
            });
        }
    });
}

#[test]
fn times_are_measured_for_who_asks() {
    watched(|| {
        let pool = Pool::builder().participants(3).timing(true).build().unwrap();
        for _ in 0..20 {
            pool.run(|_, _| _ = std::hint::black_box((0..1000).sum::<u64>()));
        }
        let timing = pool.statistics().timing.unwrap();
        assert_eq!(timing.wake_latency_ns.count(), 40, "two workers, and none of them late");
        assert!(timing.imbalance_percent.count() <= 20);
        // Of three participants one can have worked three times the mean.
        assert!(timing.imbalance_percent.quantile(1.0).unwrap_or(0) <= 207);
    });
}
