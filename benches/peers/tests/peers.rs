//! Every peer keeps the promise of `RowPool`: each row once, whatever the job, and the bits of the serial loop.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use benches::{Backend, Decode, ModelShape, data};
use rowpar::{Part, RowPool, Serial};

/// The peers that are built in.
fn peers() -> Vec<Backend> {
    let missing: Vec<Backend> = peers::missing().iter().map(|peer| peer.backend).collect();
    let is_here = |backend: &Backend| {
        backend.is_peer() && !backend.is_library() && !missing.contains(backend)
    };
    Backend::ALL.iter().copied().filter(is_here).collect()
}

fn on_each(n_threads: usize, test: impl Fn(Backend, &dyn RowPool) + Sync) {
    for backend in peers() {
        peers::with_pool(backend, n_threads, |pool| test(backend, pool)).unwrap();
    }
}

/// How often each row was run, and whether each range began at a multiple of the grain.
struct Rows {
    grain: usize,
    counts: Vec<AtomicUsize>,
}

impl Rows {
    fn new(rows: usize, grain: usize) -> Self {
        Self { grain: grain.max(1), counts: (0..rows).map(|_| AtomicUsize::new(0)).collect() }
    }

    fn run(&self, rows: Range<usize>) {
        assert!(rows.is_empty() || rows.start.is_multiple_of(self.grain), "{rows:?}");
        for count in &self.counts[rows] {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn all_are(&self, expected: usize) -> bool {
        self.counts.iter().all(|count| count.load(Ordering::Relaxed) == expected)
    }
}

#[test]
fn each_row_once_in_two_dispatches_in_a_row() {
    for n_threads in [1, 2, 3, 5] {
        on_each(n_threads, |backend, pool| {
            assert_eq!(pool.participants(), n_threads, "{backend}");
            for rows in [0, 1, 2, 3, 31, 32, 33, 64, 1000, 4099] {
                for grain in [0, 1, 7, 64, 5000, usize::MAX] {
                    let job = Rows::new(rows, grain);
                    for n_dispatches in 1..=2 {
                        pool.for_each_range(rows, grain, &|rows| job.run(rows));
                        assert!(
                            job.all_are(n_dispatches),
                            "{backend}: {rows} rows by {grain} on {n_threads} threads"
                        );
                    }
                }
            }
        });
    }
}

#[test]
fn each_row_of_each_part_once() {
    on_each(3, |backend, pool| {
        for grain in [1, 8, 100] {
            let jobs = [9, 0, 1000, 1, 64].map(|rows| Rows::new(rows, grain));
            let run = jobs.each_ref().map(|job| move |rows: Range<usize>| job.run(rows));
            let parts: Vec<Part<'_>> =
                jobs.iter().zip(&run).map(|(job, run)| (job.counts.len(), run as _)).collect();
            for n_dispatches in 1..=2 {
                pool.for_each_range_many(grain, &parts);
                assert!(jobs.iter().all(|job| job.all_are(n_dispatches)), "{backend} by {grain}");
            }
            pool.for_each_range_many(grain, &[]);
        }
    });
}

#[test]
fn a_matvec_has_the_bits_of_the_serial_one() {
    for (n_rows, n_cols) in [(1, 300), (37, 129), (2000, 200)] {
        let w = data::uniform(n_rows * n_cols, 1, 1.0, 2);
        let x = data::uniform(n_cols, 2, 1.0, 1);
        let matvec = |pool: &dyn RowPool| {
            let mut out = vec![0.0; n_rows];
            rowpar::matvec_rows(pool, &w, &x, &mut out);
            out.iter().map(|value: &f32| value.to_bits()).collect::<Vec<_>>()
        };
        let expected = matvec(&Serial);
        on_each(3, |backend, pool| {
            assert_eq!(matvec(pool), expected, "{backend}: {n_rows} x {n_cols}");
        });
    }
}

#[test]
fn a_decode_has_the_bits_of_the_serial_one() {
    let shape = ModelShape {
        name: "made-up",
        n_layers: 2,
        d_model: 64,
        d_query: 64,
        d_kv: 24,
        d_ff: 4096,
        n_vocab: 4100,
    };
    let decode = |pool: &dyn RowPool, grouped| {
        let mut decode = Decode::new(shape, rowpar::Format::F32, 5, 2);
        (0..2).for_each(|_| _ = decode.token(pool, grouped));
        decode.checksum()
    };
    let expected = decode(&Serial, false);
    on_each(2, |backend, pool| {
        for grouped in [false, true] {
            assert_eq!(decode(pool, grouped), expected, "{backend}, grouped: {grouped}");
        }
    });
}

#[test]
fn the_job_runs_on_several_threads() {
    // Each call waits for one of another thread. chili shares nothing before its first heartbeat, and a job of two halves never.
    for backend in peers().into_iter().filter(|backend| *backend != Backend::Chili) {
        let n_begun = AtomicUsize::new(0);
        let meet = |rows: Range<usize>| {
            n_begun.fetch_add(rows.len(), Ordering::SeqCst);
            while n_begun.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
        };
        peers::with_pool(backend, 2, |pool| pool.for_each_range(2, 1, &meet)).unwrap();
        assert_eq!(n_begun.into_inner(), 2, "{backend}");
    }
}

#[test]
fn a_panic_reaches_the_caller_and_leaves_a_pool_that_works() {
    on_each(3, |backend, pool| {
        for bad in [0, 500, 999] {
            let job = |rows: Range<usize>| assert!(!rows.contains(&bad), "row {bad}");
            let outcome = catch_unwind(AssertUnwindSafe(|| pool.for_each_range(1000, 1, &job)));
            let payload = outcome.expect_err(backend.name());
            let message = payload.downcast_ref::<String>().unwrap();
            assert!(message.contains(&format!("row {bad}")), "{backend}: {message}");
            let rows = Rows::new(1000, 1);
            pool.for_each_range(1000, 1, &|range| rows.run(range));
            assert!(rows.all_are(1), "{backend}");
        }
    });
}

#[test]
fn a_dispatch_from_inside_a_job_and_from_two_threads() {
    on_each(2, |backend, pool| {
        let inner = Rows::new(100, 1);
        pool.for_each_range(4, 1, &|rows| {
            rows.for_each(|_| pool.for_each_range(100, 1, &|range| inner.run(range)));
        });
        assert!(inner.all_are(4), "{backend}, nested");
        let shared = Rows::new(100, 1);
        let dispatch = || {
            (0..50).for_each(|_| pool.for_each_range(100, 1, &|range| shared.run(range)));
        };
        std::thread::scope(|scope| {
            scope.spawn(dispatch);
            dispatch();
        });
        assert!(shared.all_are(100), "{backend}, two threads");
    });
}

#[test]
fn what_is_no_peer_is_refused() {
    for &backend in Backend::ALL.iter().filter(|backend| !peers().contains(backend)) {
        assert!(peers::with_pool(backend, 2, |_| ()).is_err(), "{backend}");
    }
}
