//! A job that panics: on a worker, on the caller, on all; the caller gets the first payload and the pool works on.

mod common;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::watched;
use epoch_pool::Pool;

type Payload = Box<dyn Any + Send>;

#[track_caller]
fn assert_works(pool: &Pool) {
    let sum = AtomicUsize::new(0);
    pool.run_rows(1000, |rows| _ = sum.fetch_add(rows.sum(), Ordering::Relaxed));
    assert_eq!(sum.into_inner(), 499_500);
    let calls = AtomicUsize::new(0);
    pool.run(|_, _| _ = calls.fetch_add(1, Ordering::Relaxed));
    assert_eq!(calls.into_inner(), pool.participants());
}

/// Runs `job` on every participant; every call ends before the caller unwinds, as each borrows from this frame.
fn run_all(pool: &Pool, job: impl Fn(usize) + Sync) -> Result<(), Payload> {
    let (entered, left) = (AtomicUsize::new(0), AtomicUsize::new(0));
    struct Leave<'a>(&'a AtomicUsize);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        pool.run(|participant, _| {
            entered.fetch_add(1, Ordering::SeqCst);
            let _leave = Leave(&left);
            job(participant);
        });
    }));
    assert_eq!(entered.load(Ordering::SeqCst), pool.participants());
    assert_eq!(left.load(Ordering::SeqCst), pool.participants());
    outcome
}

#[test]
fn a_panic_on_a_worker_then_on_the_caller() {
    watched(|| {
        for spin in [0, Pool::DEFAULT_SPIN] {
            let pool = Pool::with_spin(3, spin).unwrap();
            for _ in 0..50 {
                for who in [2, 0, 3, 1] {
                    let outcome = run_all(&pool, |participant| {
                        if participant == who {
                            resume_unwind(Box::new(format!("by {who}")));
                        }
                    });
                    assert_eq!(
                        *outcome.unwrap_err().downcast::<String>().unwrap(),
                        format!("by {who}")
                    );
                    assert_works(&pool);
                }
            }
        }
    });
}

#[test]
fn all_participants_panic() {
    watched(|| {
        let pool = Pool::new(3).unwrap();
        for _ in 0..50 {
            let outcome = run_all(&pool, |participant| resume_unwind(Box::new(participant)));
            assert!(*outcome.unwrap_err().downcast::<usize>().unwrap() < 4);
            assert_works(&pool);
        }
    });
}

#[test]
fn rows_that_nobody_has_started_are_left_out() {
    watched(|| {
        for n_workers in [0, 1, 3] {
            let pool = Pool::new(n_workers).unwrap();
            for culprit in [0, 17, 999] {
                let runs: Vec<_> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    pool.run_rows(1000, |rows| {
                        for row in rows {
                            runs[row].fetch_add(1, Ordering::Relaxed);
                            if row == culprit {
                                resume_unwind(Box::new(row));
                            }
                        }
                    });
                }));
                assert_eq!(*outcome.unwrap_err().downcast::<usize>().unwrap(), culprit);
                assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) <= 1));
                assert_eq!(runs[culprit].load(Ordering::Relaxed), 1);
                assert_works(&pool);
            }
        }
    });
}

#[test]
fn a_panic_in_one_part_of_many() {
    watched(|| {
        let pool = Pool::new(2).unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run_many(&[(100, &|_| {}), (100, &|_| resume_unwind(Box::new("part")))]);
        }));
        assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"part"));
        assert_works(&pool);
    });
}

#[test]
fn a_panic_in_a_nested_job_passes_through_the_outer_one() {
    watched(|| {
        let pool = Pool::new(2).unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run(|_, _| pool.run_rows(10, |_| resume_unwind(Box::new("nested"))));
        }));
        assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"nested"));
        assert_works(&pool);
    });
}

/// A payload that panics when it is dropped, with a payload that does the same.
struct Bomb(Arc<AtomicUsize>, u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        if self.1 > 0 {
            panic_any(Bomb(self.0.clone(), self.1 - 1));
        }
    }
}

#[test]
fn a_payload_that_panics_in_its_drop_does_no_harm() {
    watched(|| {
        std::panic::set_hook(Box::new(|_| {})); // a hundred expected messages say nothing
        let drops = Arc::new(AtomicUsize::new(0));
        let pool = Pool::new(3).unwrap();
        for _ in 0..20 {
            let outcome = run_all(&pool, |_| resume_unwind(Box::new(Bomb(drops.clone(), 3))));
            let payload = outcome.unwrap_err().downcast::<Bomb>().unwrap();
            std::mem::forget(payload);
            assert_works(&pool);
        }
        // Three of four payloads were dropped by the pool, each time.
        assert_eq!(drops.load(Ordering::SeqCst), 60);
        _ = std::panic::take_hook();
    });
}
