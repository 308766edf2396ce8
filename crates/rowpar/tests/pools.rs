//! What the pool trait promises, of every pool: each row once, multiples of the grain, panics that come back.

mod common;

use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use common::pools;
use rowpar::{Part, RowPool, Serial, for_each_range_mut};

const ROWS: &[usize] = &[0, 1, 2, 7, 8, 9, 31, 32, 33, 97, 1000];
const GRAINS: &[usize] = &[0, 1, 2, 7, 8, 16, 100, usize::MAX];

/// Panics unless the ranges cover `0..rows`, each row once, and start at multiples of the grain.
#[track_caller]
fn check_cover(mut ranges: Vec<Range<usize>>, rows: usize, grain: usize, context: &str) {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    let mut next = 0;
    for range in ranges {
        assert_eq!(range.start, next, "{context}");
        assert!(range.start.is_multiple_of(grain.max(1)), "{context}: {range:?}");
        next = range.end;
    }
    assert_eq!(next, rows, "{context}");
}

#[test]
fn each_row_is_handed_out_once() {
    for (name, pool) in pools() {
        assert!(pool.participants() >= 1, "{name}");
        for &rows in ROWS {
            for &grain in GRAINS {
                let ranges = Mutex::new(Vec::new());
                pool.for_each_range(rows, grain, &|range| ranges.lock().unwrap().push(range));
                let context = format!("{rows} rows, grain {grain}, {name}");
                check_cover(ranges.into_inner().unwrap(), rows, grain, &context);
            }
        }
    }
}

#[test]
fn each_part_has_its_own_rows() {
    const SETS: &[&[usize]] =
        &[&[], &[0], &[5], &[0, 0], &[1, 1, 1], &[64, 8, 8], &[0, 33, 0, 1000, 7, 0]];
    for (name, pool) in pools() {
        for set in SETS {
            for &grain in GRAINS {
                let ranges: Vec<_> = set.iter().map(|_| Mutex::new(Vec::new())).collect();
                let closures: Vec<_> = ranges
                    .iter()
                    .map(|ranges| move |range: Range<usize>| ranges.lock().unwrap().push(range))
                    .collect();
                let parts: Vec<Part<'_>> =
                    set.iter().zip(&closures).map(|(rows, f)| (*rows, f as _)).collect();
                pool.for_each_range_many(grain, &parts);
                for (ranges, &rows) in ranges.into_iter().zip(*set) {
                    let context = format!("{rows} of {set:?} rows, grain {grain}, {name}");
                    check_cover(ranges.into_inner().unwrap(), rows, grain, &context);
                }
            }
        }
    }
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
    for (name, pool) in pools() {
        for bad_row in [0, 50, 99] {
            let running = AtomicUsize::new(0);
            let dispatch = || {
                pool.for_each_range(100, 1, &|range| {
                    running.fetch_add(1, Ordering::Relaxed);
                    let bad = range.contains(&bad_row);
                    if !bad {
                        (0..100).for_each(|_| std::thread::yield_now()); // for others to panic meanwhile
                    }
                    running.fetch_sub(1, Ordering::Relaxed);
                    assert!(!bad, "row {bad_row}");
                });
            };
            if name == "shuffled" {
                continue; // its lock would be poisoned
            }
            assert!(catch_unwind(AssertUnwindSafe(dispatch)).is_err(), "{bad_row}, {name}");
            assert_eq!(running.load(Ordering::Relaxed), 0, "{name} unwound while a call ran");
        }
        let mut out = vec![0; 100];
        for_each_range_mut(&pool, &mut out, 1, |rows, out| {
            rows.zip(out).for_each(|(row, value)| *value = row);
        });
        assert!(out.iter().copied().eq(0..100), "{name}");
    }
}

#[test]
fn several_threads_may_dispatch_on_one_pool() {
    for (name, pool) in pools() {
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (name, pool) = (&name, &pool);
                scope.spawn(move || {
                    for round in 0..20 {
                        let mut out = vec![0; 50 + round];
                        for_each_range_mut(pool, &mut out, 3, |rows, out| {
                            rows.zip(out).for_each(|(row, value)| *value = row * thread);
                        });
                        assert!(
                            out.iter().copied().eq((0..50 + round).map(|row| row * thread)),
                            "{name}"
                        );
                    }
                });
            }
        });
    }
}

/// Says which of its methods was called.
struct Witness(Mutex<Vec<&'static str>>);

// SAFETY: as `Serial`.
unsafe impl RowPool for Witness {
    fn participants(&self) -> usize {
        42
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        self.0.lock().unwrap().push("single");
        Serial.for_each_range(rows, grain, f);
    }

    fn for_each_range_many(&self, grain: usize, parts: &[Part<'_>]) {
        self.0.lock().unwrap().push("many");
        Serial.for_each_range_many(grain, parts);
    }
}

#[test]
fn wrappers_pass_every_method_on() {
    fn use_all(pool: impl RowPool) {
        assert_eq!(pool.participants(), 42);
        pool.for_each_range(1, 1, &|_| ());
        pool.for_each_range_many(1, &[(1, &|_| ())]);
    }

    let witness = Arc::new(Witness(Mutex::default()));
    use_all(&*witness);
    let reference = &&*witness;
    use_all(reference);
    use_all(Box::new(&*witness));
    use_all(Box::new(&*witness) as Box<dyn RowPool + '_>);
    use_all(Arc::clone(&witness));
    use_all(Some(&*witness));
    assert_eq!(*witness.0.lock().unwrap(), ["single", "many"].repeat(6));

    let none: Option<&Witness> = None;
    assert_eq!(none.participants(), 1);
    none.for_each_range(5, 2, &|range| assert_eq!(range, 0..5));
}

#[cfg(feature = "rayon")]
#[test]
fn a_job_of_a_rayon_pool_may_dispatch_on_it() {
    let pool = common::rayon_pool(2);
    let sum = AtomicUsize::new(0);
    pool.for_each_range(4, 1, &|outer| {
        for _ in outer {
            pool.for_each_range(10, 1, &|inner| _ = sum.fetch_add(inner.len(), Ordering::Relaxed));
            rowpar::RayonGlobal
                .for_each_range(10, 1, &|inner| _ = sum.fetch_add(inner.len(), Ordering::Relaxed));
        }
    });
    assert_eq!(sum.into_inner(), 80);
    // Within a job the current pool is the one the job runs on.
    assert_eq!(pool.install(|| rowpar::RayonGlobal.participants()), 2);
}
