//! Every public way to run a job: each row once, on pools of every width, reused, nested, shared, dropped.

mod common;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use common::watched;
use epoch_pool::{Error, Part, Pool};

const WIDTHS: [usize; 5] = [0, 1, 2, 3, 8];
const ROWS: [usize; 12] = [0, 1, 2, 3, 7, 8, 31, 32, 33, 127, 1000, 49_152];

fn pools() -> impl Iterator<Item = Pool> {
    WIDTHS.into_iter().flat_map(|n| [0, 100, Pool::DEFAULT_SPIN].map(|spin| (n, spin))).map(
        |(n, spin)| {
            let pool = Pool::with_spin(n, spin).unwrap();
            assert_eq!((pool.n_workers(), pool.participants()), (n, n + 1));
            pool
        },
    )
}

/// How often each row has been handed out.
struct Visits(Vec<AtomicUsize>);

impl Visits {
    fn new(rows: usize) -> Self {
        Self((0..rows).map(|_| AtomicUsize::new(0)).collect())
    }

    fn add(&self, rows: Range<usize>) {
        assert!(!rows.is_empty(), "a job is never called for nothing");
        for row in rows {
            self.0[row].fetch_add(1, Ordering::Relaxed);
        }
    }

    #[track_caller]
    fn assert_all(&self, times: usize) {
        for (row, visits) in self.0.iter().enumerate() {
            assert_eq!(visits.load(Ordering::Relaxed), times, "row {row}");
        }
    }
}

#[test]
fn each_row_runs_once() {
    watched(|| {
        for pool in pools() {
            for rows in ROWS {
                let visits = Visits::new(rows);
                for round in 1..=3 {
                    pool.run_rows(rows, |range| visits.add(range));
                    visits.assert_all(round);
                }
            }
        }
    });
}

#[test]
fn ranges_start_at_multiples_of_the_grain() {
    watched(|| {
        for pool in pools() {
            for grain in [0, 1, 7, 16, 1000, usize::MAX] {
                let visits = Visits::new(777);
                pool.run_rows_by(grain, 777, |range| {
                    assert_eq!(range.start % grain.max(1), 0);
                    visits.add(range);
                });
                visits.assert_all(1);
            }
        }
    });
}

#[test]
fn each_part_sees_its_own_rows_once() {
    let shapes: [&[usize]; 6] =
        [&[], &[0], &[0, 0, 5], &[576, 192, 192], &[1, 1, 1], &[1, 4000, 0, 3]];
    watched(move || {
        for pool in pools() {
            for shape in shapes {
                for grain in [1, 16] {
                    let visits: Vec<Visits> = shape.iter().map(|&rows| Visits::new(rows)).collect();
                    let jobs: Vec<_> = visits
                        .iter()
                        .map(|visits| {
                            move |range: Range<usize>| {
                                assert_eq!(range.start % grain, 0);
                                visits.add(range);
                            }
                        })
                        .collect();
                    let parts: Vec<Part<'_>> =
                        shape.iter().zip(&jobs).map(|(&rows, job)| (rows, job as _)).collect();
                    pool.run_many_by(grain, &parts);
                    if grain == 1 {
                        pool.run_many(&parts);
                    }
                    visits.iter().for_each(|part| part.assert_all(if grain == 1 { 2 } else { 1 }));
                }
            }
        }
    });
}

#[test]
fn run_calls_every_participant_on_a_thread_of_its_own() {
    watched(|| {
        for pool in pools() {
            for _ in 0..20 {
                let seen = Mutex::new(Vec::new());
                pool.run(|participant, participants| {
                    assert_eq!(participants, pool.participants());
                    seen.lock().unwrap().push((participant, thread::current().id()));
                });
                let mut seen = seen.into_inner().unwrap();
                seen.sort_by_key(|&(participant, _)| participant);
                let participants: Vec<usize> =
                    seen.iter().map(|&(participant, _)| participant).collect();
                assert_eq!(participants, (0..pool.participants()).collect::<Vec<_>>());
                assert_eq!(seen[0].1, thread::current().id(), "participant 0 is the caller");
                let threads: HashSet<_> = seen.iter().map(|&(_, thread)| thread).collect();
                assert_eq!(threads.len(), pool.participants());
            }
        }
    });
}

#[test]
fn workers_are_spawned_once() {
    watched(|| {
        let pool = Pool::new(3).unwrap();
        let threads = || {
            let seen = Mutex::new(vec![None; 4]);
            pool.run(|participant, _| {
                seen.lock().unwrap()[participant] = Some(thread::current().id())
            });
            seen.into_inner().unwrap()
        };
        let first = threads();
        for _ in 0..100 {
            assert_eq!(threads(), first);
        }
    });
}

#[test]
fn two_threads_dispatch_on_one_pool() {
    watched(|| {
        for n_workers in [0, 1, 3] {
            let pool = Arc::new(Pool::with_spin(n_workers, 100).unwrap());
            let callers: Vec<_> = (0..2)
                .map(|_| {
                    let pool = pool.clone();
                    thread::spawn(move || {
                        for _ in 0..2000 {
                            let visits = Visits::new(40);
                            pool.run_rows(40, |range| visits.add(range));
                            visits.assert_all(1);
                            // A job of every worker: all of them, or inline, as the only participant.
                            let calls = AtomicUsize::new(0);
                            let expected = AtomicUsize::new(0);
                            pool.run(|_, participants| {
                                calls.fetch_add(1, Ordering::Relaxed);
                                expected.store(participants, Ordering::Relaxed);
                            });
                            assert_eq!(calls.into_inner(), expected.into_inner());
                        }
                    })
                })
                .collect();
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        }
    });
}

#[test]
fn a_job_dispatches_on_its_own_pool() {
    watched(|| {
        for pool in pools() {
            let visits = Visits::new(16 * 10);
            let runs = AtomicUsize::new(0);
            pool.run_rows(16, |outer| {
                for row in outer {
                    let base = 10 * row;
                    pool.run_rows(10, |inner| visits.add(base + inner.start..base + inner.end));
                    pool.run(|participant, participants| {
                        if pool.n_workers() > 0 {
                            assert_eq!((participant, participants), (0, 1), "inline");
                        }
                        runs.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
            visits.assert_all(1);
            assert_eq!(runs.into_inner(), 16);
        }
    });
}

#[test]
fn two_pools_are_built_used_and_dropped_at_once() {
    watched(|| {
        let builders: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(|| {
                    for _ in 0..50 {
                        let pool = Pool::with_spin(2, 10).unwrap();
                        let visits = Visits::new(100);
                        pool.run_rows(100, |range| visits.add(range));
                        visits.assert_all(1);
                    }
                })
            })
            .collect();
        builders.into_iter().for_each(|builder| builder.join().unwrap());
    });
}

#[test]
fn one_pool_works_inside_a_job_of_another() {
    watched(|| {
        let outer = Pool::new(2).unwrap();
        let inner = Pool::new(2).unwrap();
        let visits = Visits::new(300);
        outer.run(|participant, _| {
            inner.run_rows(100, |range| {
                visits.add(100 * participant + range.start..100 * participant + range.end);
            });
        });
        visits.assert_all(1);
    });
}

#[test]
fn a_parked_pool_is_woken_and_dropped() {
    watched(|| {
        for _ in 0..200 {
            let pool = Pool::with_spin(3, 0).unwrap();
            let calls = AtomicUsize::new(0);
            pool.run(|_, _| _ = calls.fetch_add(1, Ordering::Relaxed));
            assert_eq!(calls.into_inner(), 4);
        }
        for _ in 0..200 {
            drop(Pool::with_spin(3, 0).unwrap());
        }
    });
}

#[test]
fn too_many_workers_are_an_error() {
    for requested in [Pool::MAX_WORKERS + 1, usize::MAX] {
        let error = Pool::new(requested).unwrap_err();
        assert!(
            matches!(error, Error::TooManyWorkers { requested: r, max } if r == requested && max == Pool::MAX_WORKERS)
        );
    }
}

#[test]
fn start_hooks_run_on_each_worker_before_any_job() {
    watched(|| {
        let started = Arc::new(Mutex::new(Vec::new()));
        let record = started.clone();
        let pool = Pool::builder()
            .workers(3)
            .thread_name(|worker| format!("unit-{worker}\0rest"))
            .on_worker_start(move |worker| {
                let name = thread::current().name().map(str::to_owned);
                record.lock().unwrap().push((worker, name, thread::current().id()));
            })
            .build()
            .unwrap();
        let mut started = started.lock().unwrap().clone();
        started.sort_by_key(|&(worker, ..)| worker);
        assert_eq!(started.len(), 3);
        pool.run(|participant, _| {
            if participant > 0 {
                let (worker, name, thread) = &started[participant - 1];
                assert_eq!(*worker, participant);
                assert_eq!(name.as_deref(), Some(format!("unit-{participant}").as_str()));
                assert_eq!(*thread, thread::current().id());
            }
        });
    });
}

#[test]
fn a_start_hook_that_panics_reaches_the_builder() {
    watched(|| {
        let outcome = std::panic::catch_unwind(|| {
            Pool::builder()
                .workers(2)
                .on_worker_start(|worker| {
                    if worker == 2 {
                        std::panic::resume_unwind(Box::new("hook"));
                    }
                })
                .build()
        });
        assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"hook"));
    });
}
