//! Models of the protocol in `dispatch.rs`: loom runs each of them in every order that the memory model allows (up to a
//! number of preemptions). `cargo xtask loom` runs them all.
//!
//! Cells of loom's stand for what jobs read and write, so a missing ordering shows as two threads in one cell. Workers park at
//! once (budget 0), so a lost wake-up shows as a deadlock. Two dispatches each, as reuse is where bugs live.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

use crate::Pool;

/// Runs a model with at most `preemptions` of them, or as few as `LOOM_MAX_PREEMPTIONS` says. Where a thread blocks, loom
/// switches for nothing, so what is listed below with 1 or 2 sees many orders too; each more takes ten times longer.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    let limit = builder.preemption_bound.map_or(preemptions, |limit| limit.min(preemptions));
    builder.preemption_bound = Some(limit);
    builder.check(body);
}

fn pool(n_workers: usize) -> Pool {
    Pool::with_spin(n_workers, 0).unwrap()
}

/// Rows that a job writes: a cell each, so that loom sees who touches which.
struct Rows(Vec<UnsafeCell<u32>>);

// SAFETY: the point of the models: loom reports any access to a cell that is not ordered after the last write.
unsafe impl Sync for Rows {}
// SAFETY: plain data.
unsafe impl Send for Rows {}

impl Rows {
    fn new(n: usize) -> Self {
        Self((0..n).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, rows: Range<usize>, value: u32) {
        for row in rows {
            // SAFETY: checked by loom.
            self.0[row].with_mut(|cell| unsafe { *cell += value });
        }
    }

    fn values(&self) -> Vec<u32> {
        // SAFETY: checked by loom.
        self.0.iter().map(|row| row.with(|cell| unsafe { *cell })).collect()
    }
}

/// Two jobs over the same rows, results read after each by the caller: claims, steals, counting, parking on both sides.
fn two_jobs(n_workers: usize, n_rows: usize) {
    let pool = pool(n_workers);
    let rows = Rows::new(n_rows);
    pool.run_rows(n_rows, |range| rows.add(range, 1));
    assert_eq!(rows.values(), vec![1; n_rows]);
    pool.run_rows(n_rows, |range| rows.add(range, 10));
    assert_eq!(rows.values(), vec![11; n_rows]);
}

#[test]
fn rows_run_once_and_are_seen_by_the_caller() {
    model(2, || two_jobs(1, 2));
}

#[test]
fn a_home_of_two_chunks_is_shared_with_a_thief() {
    model(2, || two_jobs(1, 3));
}

#[test]
fn two_workers_share_a_job() {
    model(1, || {
        let pool = pool(2);
        let rows = Rows::new(3);
        pool.run_rows(3, |range| rows.add(range, 1));
        assert_eq!(rows.values(), [1; 3]);
    });
}

#[test]
fn no_wakeup_is_lost() {
    model(3, || {
        let pool = pool(1);
        for _ in 0..2 {
            let visits = Rows::new(2);
            // Pinned chunks: nobody can stand in for a worker that is not woken.
            pool.run(|participant, participants| {
                assert_eq!(participants, 2);
                visits.add(participant..participant + 1, 1);
            });
            assert_eq!(visits.values(), [1, 1]);
        }
    });
}

#[test]
fn every_worker_takes_part_in_a_run() {
    model(2, || {
        let pool = pool(2);
        let visits = Rows::new(3);
        pool.run(|participant, _| visits.add(participant..participant + 1, 1));
        assert_eq!(visits.values(), [1; 3]);
    });
}

#[test]
fn a_worker_that_is_not_invited_leaves_the_job_alone() {
    model(1, || {
        let pool = pool(2);
        let rows = Rows::new(2);
        pool.run_rows(2, |range| rows.add(range, 1));
        assert_eq!(rows.values(), [1; 2]);
        // The worker that the first job did not invite takes part in this one, and in this one alone.
        let visits = Rows::new(3);
        pool.run(|participant, _| visits.add(participant..participant + 1, 1));
        assert_eq!(visits.values(), [1; 3]);
    });
}

#[test]
fn two_callers_never_share_the_job_slot() {
    model(2, || {
        let pool = Arc::new(pool(1));
        let other = {
            let pool = pool.clone();
            loom::thread::spawn(move || {
                let rows = Rows::new(2);
                pool.run_rows(2, |range| rows.add(range, 1));
                assert_eq!(rows.values(), [1; 2]);
            })
        };
        let rows = Rows::new(2);
        pool.run_rows(2, |range| rows.add(range, 1));
        assert_eq!(rows.values(), [1; 2]);
        other.join().unwrap();
    });
}

#[test]
fn a_nested_job_runs_inline() {
    model(3, || {
        let pool = pool(1);
        let rows = Rows::new(4);
        pool.run_rows(2, |outer| {
            for row in outer {
                pool.run_rows(2, |inner| rows.add(2 * row + inner.start..2 * row + inner.end, 1));
            }
        });
        assert_eq!(rows.values(), [1; 4]);
    });
}

/// A job in which the participants that `panics` names panic; returns what reaches the caller.
fn panicking_run(pool: &Pool, panics: fn(usize) -> bool) -> Option<usize> {
    let visits = Rows::new(2);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        pool.run(|participant, _| {
            visits.add(participant..participant + 1, 1);
            if panics(participant) {
                resume_unwind(Box::new(participant)); // without the noise of the panic hook
            }
        });
    }));
    // Before the caller unwinds, everybody is done with what the job borrows.
    assert_eq!(visits.values(), [1; 2]);
    outcome.err().map(|payload| *payload.downcast::<usize>().unwrap())
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_works_on() {
    model(3, || {
        let pool = pool(1);
        assert_eq!(panicking_run(&pool, |participant| participant == 1), Some(1));
        assert_eq!(panicking_run(&pool, |_| false), None);
    });
    model(3, || {
        let pool = pool(1);
        assert!(panicking_run(&pool, |_| true).is_some());
        assert_eq!(panicking_run(&pool, |participant| participant == 0), Some(0));
    });
}

#[test]
fn a_panic_discards_chunks_of_its_own_job_only() {
    model(2, || {
        let pool = pool(1);
        let calls = AtomicUsize::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run_rows(3, |_range| {
                calls.fetch_add(1, Ordering::Relaxed);
                resume_unwind(Box::new(()));
            });
        }));
        assert!(outcome.is_err());
        assert!((1..=3).contains(&calls.load(Ordering::Relaxed)));
        let rows = Rows::new(3);
        pool.run_rows(3, |range| rows.add(range, 1));
        assert_eq!(rows.values(), [1; 3]);
    });
}

#[test]
fn an_unused_pool_can_be_dropped() {
    model(3, || drop(pool(2)));
}

/// Jobs inside and outside of hot phases, which begin and end while the worker parks, wakes and works.
#[test]
fn a_hot_phase_loses_no_job() {
    model(1, || {
        let pool = pool(1);
        let rows = Rows::new(2);
        let hot = pool.hot();
        pool.run_rows(2, |range| rows.add(range, 1));
        drop(hot);
        pool.run_rows(2, |range| rows.add(range, 10));
        assert_eq!(rows.values(), [11; 2]);
    });
}

#[test]
fn a_hot_phase_of_two_workers_ends() {
    model(1, || {
        let pool = pool(2);
        for _ in 0..2 {
            let visits = Rows::new(3);
            let hot = pool.hot();
            // Pinned chunks: nobody can stand in for a worker that is not woken.
            pool.run(|participant, _| visits.add(participant..participant + 1, 1));
            drop(hot);
            assert_eq!(visits.values(), [1; 3]);
        }
    });
}

/// The right to dispatch goes from an exclusive session to `busy` and back.
#[test]
fn a_session_and_others_take_turns() {
    model(1, || {
        let mut pool = pool(1);
        let rows = Rows::new(2);
        let mut session = pool.session();
        session.run_rows(2, |range| rows.add(range, 1));
        session.run_rows(2, |range| rows.add(range, 10));
        drop(session);
        pool.run_rows(2, |range| rows.add(range, 100));
        assert_eq!(rows.values(), [111; 2]);
    });
}

/// Of two callers each either has the pool, or is told that it has not, and has run nothing.
#[test]
fn a_busy_pool_refuses_or_runs() {
    model(1, || {
        let pool = Arc::new(pool(1));
        let work = |pool: &Pool| {
            let rows = Rows::new(2);
            let is_run = pool.try_run_rows(2, |range| rows.add(range, 1)).is_ok();
            assert_eq!(rows.values(), [u32::from(is_run); 2]);
        };
        let other = {
            let pool = pool.clone();
            loom::thread::spawn(move || work(&pool))
        };
        work(&pool);
        other.join().unwrap();
        work(&pool);
    });
}

/// Jobs that are too small to wake the worker for, which comes by all the same, or parks meanwhile.
#[test]
fn a_small_job_leaves_its_worker_asleep() {
    model(2, || {
        let pool = Pool::builder().workers(1).spin_budget(0).worth_a_wake_up_ns(u64::MAX);
        let pool = pool.build().unwrap();
        let rows = Rows::new(2);
        pool.run_rows(2, |range| rows.add(range, 1)); // wakes it, as nothing is known of such jobs
        pool.run_rows(2, |range| rows.add(range, 10));
        assert_eq!(rows.values(), [11; 2]);
    });
}
