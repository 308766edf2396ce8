//! Job sizes x backends: the time of one job, its ideal beside it.
//!
//! Every backend has the process to itself for the time of its group: the pool before is dropped first.
//! For numbers to compare, run `cargo xtask bench dispatch`: there each backend has its own process.

#![expect(missing_docs, reason = "criterion's macros make public items")]

use std::time::Duration;

use benches::Backend;
use benches::dispatch::DispatchCase;
use benches::work::{Calibration, spin_work};
use criterion::{Criterion, criterion_group, criterion_main};

fn dispatch(criterion: &mut Criterion) {
    let n_threads = cpu_topology::resolve_cpu_threads();
    let calibration = Calibration::measure(50);
    let cases = DispatchCase::all(n_threads);
    // Gaps belong to the suite of `cargo xtask bench`; here jobs follow each other at once.
    for case in cases.iter().filter(|case| case.gap_ns < 1e6) {
        let links = calibration.links_for(case.chunk_ns);
        let mut group = criterion.benchmark_group(case.name());
        group.bench_function("ideal", |bencher| {
            let n_chunks = case.n_chunks.div_ceil(n_threads);
            bencher.iter(|| (0..n_chunks).for_each(|_| spin_work(links)));
        });
        for &backend in Backend::DEFAULT {
            let pool = backend.pool(n_threads).expect("a pool for the backend");
            group.bench_function(backend.name(), |bencher| {
                bencher.iter(|| {
                    pool.for_each_range(case.n_chunks, 1, &|chunks| {
                        chunks.for_each(|_| spin_work(links));
                    });
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = all;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(30);
    targets = dispatch
}
criterion_main!(all);
