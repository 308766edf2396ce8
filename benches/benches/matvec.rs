//! Shapes x kernels x backends: bytes of weights per second of one matvec.
//!
//! The weights of one matrix stay the same from call to call, so a matrix that fits a cache is measured
//! in that cache. `cargo xtask bench matvec` rotates through more memory than that.

#![expect(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::time::Duration;

use benches::{Backend, MatrixShape, ModelShape, data};
use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use rowpar::{Kernels, Serial, matvec_rows, matvec_rows_with};

/// Under `cargo test` the code only has to run, and in a debug build.
const TINY: MatrixShape = MatrixShape { role: "tiny", n_rows: 64, n_cols: 64 };

fn matvec(criterion: &mut Criterion) {
    let matrices = if std::env::args().any(|argument| argument == "--bench") {
        ModelShape::ALL[0].fused().to_vec()
    } else {
        vec![TINY]
    };
    for matrix in matrices {
        let mut group = criterion.benchmark_group(matrix.to_string());
        group.throughput(Throughput::Bytes((size_of::<f32>() * matrix.n_weights()) as u64));
        one_matrix(&mut group, matrix);
        group.finish();
    }
}

fn one_matrix(group: &mut BenchmarkGroup<'_, WallTime>, matrix: MatrixShape) {
    let n_threads = cpu_topology::resolve_cpu_threads();
    let weights = data::uniform(matrix.n_weights(), 1, 1.0, n_threads);
    let x = data::uniform(matrix.n_cols, 2, 1.0, 1);
    let mut out = vec![0.0; matrix.n_rows];
    for kernels in Kernels::supported() {
        group.bench_function(format!("kernels/{}", kernels.isa()), |bencher| {
            bencher.iter(|| matvec_rows_with(kernels, &Serial, &weights, &x, black_box(&mut out)));
        });
    }
    for &backend in Backend::DEFAULT {
        let pool = backend.pool(n_threads).expect("a pool for the backend");
        group.bench_function(format!("pools/{backend}"), |bencher| {
            bencher.iter(|| matvec_rows(&*pool, &weights, &x, black_box(&mut out)));
        });
    }
}

criterion_group! {
    name = all;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = matvec
}
criterion_main!(all);
