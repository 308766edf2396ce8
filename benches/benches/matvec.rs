//! Shapes x formats x kernels x backends: bytes of weights per second of one matvec.
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
use rowpar::{Activation, Format, Kernels, Matrix, Q8Activation, matvec};

/// Under `cargo test` the code only has to run, and in a debug build.
const TINY: MatrixShape = MatrixShape { role: "tiny", n_rows: 64, n_cols: 64 };
const FORMATS: [Format; 4] = [Format::F32, Format::Bf16, Format::Q8_0, Format::Q4_0];

fn matvecs(criterion: &mut Criterion) {
    let matrices = if std::env::args().any(|argument| argument == "--bench") {
        ModelShape::ALL[0].fused().to_vec()
    } else {
        vec![TINY]
    };
    for matrix in matrices {
        for format in FORMATS {
            let mut group = criterion.benchmark_group(format!("{matrix}-{format}"));
            group.throughput(Throughput::Bytes(matrix.n_bytes(format) as u64));
            one_matrix(&mut group, matrix, format);
            group.finish();
        }
    }
}

fn one_matrix(group: &mut BenchmarkGroup<'_, WallTime>, matrix: MatrixShape, format: Format) {
    let n_threads = cpu_topology::resolve_cpu_threads();
    let MatrixShape { n_rows, n_cols, .. } = matrix;
    let n_bytes = matrix.n_bytes(format);
    let mut weights = vec![0.0; n_bytes.div_ceil(size_of::<f32>())];
    data::fill_noise(&mut weights, 1, n_threads);
    let bytes = &data::as_bytes(&weights)[..n_bytes];
    let w = Matrix::new(format, n_rows, n_cols, bytes).expect("bytes of the shape");
    let mut x = Q8Activation::new();
    x.quantize(&data::uniform(n_cols, 2, 1.0, 1));
    let x = Activation::Q8(&x);
    let mut out = vec![0.0; n_rows];
    for kernels in Kernels::supported() {
        group.bench_function(format!("kernels/{}", kernels.isa()), |bencher| {
            bencher.iter(|| kernels.matvec(w, &[x], black_box(&mut out)));
        });
    }
    for &backend in Backend::DEFAULT {
        let pool = backend.pool(n_threads).expect("a pool for the backend");
        group.bench_function(format!("pools/{backend}"), |bencher| {
            bencher.iter(|| matvec(&*pool, w, x, black_box(&mut out)));
        });
    }
}

criterion_group! {
    name = all;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = matvecs
}
criterion_main!(all);
