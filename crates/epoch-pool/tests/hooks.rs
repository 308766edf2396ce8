//! What is called on a worker as it starts and stops, and how many of them there are.

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use common::watched;
use epoch_pool::{Error, Pool};

type Calls = Arc<Mutex<BTreeMap<usize, ThreadId>>>;

fn record(calls: &Calls) -> impl Fn(usize) + Send + Sync + 'static {
    let calls = calls.clone();
    move |worker| {
        let before = calls.lock().unwrap().insert(worker, thread::current().id());
        assert_eq!(before, None, "once");
    }
}

#[test]
fn a_stop_hook_runs_on_each_worker_before_drop_returns() {
    watched(|| {
        for spin in [0, Pool::DEFAULT_SPIN] {
            let (started, stopped) = (Calls::default(), Calls::default());
            let builder = Pool::builder().participants(4).spin_budget(spin);
            let pool = builder
                .on_worker_start(record(&started))
                .on_worker_stop(record(&stopped))
                .build()
                .unwrap();
            pool.run(|_, _| {});
            assert!(stopped.lock().unwrap().is_empty());
            drop(pool);
            assert_eq!(*stopped.lock().unwrap(), *started.lock().unwrap());
            assert_eq!(stopped.lock().unwrap().keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
        }
    });
}

#[test]
fn a_stop_hook_that_panics_does_no_harm() {
    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("again"));
        }
    }
    watched(|| {
        let stopped = Calls::default();
        let record = record(&stopped);
        let pool = Pool::builder()
            .workers(2)
            .on_worker_stop(move |worker| {
                record(worker);
                std::panic::resume_unwind(Box::new(PanicsOnDrop));
            })
            .build()
            .unwrap();
        drop(pool);
        assert_eq!(stopped.lock().unwrap().len(), 2);
    });
}

/// Who has not started does not stop.
#[test]
fn a_worker_whose_start_hook_panics_has_no_stop_hook() {
    watched(|| {
        let stopped = Calls::default();
        let builder = Pool::builder().workers(3).on_worker_stop(record(&stopped));
        let builder = builder.on_worker_start(|worker| {
            if worker == 2 {
                std::panic::resume_unwind(Box::new("hook"));
            }
        });
        assert!(
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.build())).is_err()
        );
        assert_eq!(stopped.lock().unwrap().keys().copied().collect::<Vec<_>>(), [1, 3]);
    });
}

#[test]
fn participants_are_one_more_than_workers() {
    watched(|| {
        for n in 1..5 {
            let pool = Pool::builder().workers(9).participants(n).build().unwrap();
            assert_eq!((pool.participants(), pool.n_workers()), (n, n - 1));
            let pool = Pool::builder().participants(9).workers(n).build().unwrap();
            assert_eq!((pool.participants(), pool.n_workers()), (n + 1, n));
        }
        let error = Pool::builder().participants(0).build().unwrap_err();
        assert!(matches!(error, Error::NoParticipants), "{error}");
        let error = Pool::builder().participants(usize::MAX).build().unwrap_err();
        assert!(matches!(error, Error::TooManyWorkers { .. }), "{error}");
    });
}

#[test]
fn budgets_in_time_are_as_good_as_in_turns() {
    watched(|| {
        for time in [Duration::ZERO, Duration::from_micros(3), Duration::from_secs(1)] {
            let pool = Pool::builder().participants(2).spin_time(time).build().unwrap();
            for _ in 0..100 {
                pool.run(|_, participants| assert_eq!(participants, 2));
            }
        }
    });
}
