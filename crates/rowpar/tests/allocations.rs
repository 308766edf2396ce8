//! A product allocates nothing, whatever its shape: counted by an allocator that knows its thread.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
};

use rowpar::{
    Activation, Format, Kernels, Matrix, Matvec, PackedMatrix, Q8Activation, RowPool, Serial,
    matvec, matvec_batch, matvec_batch_with, matvec_many, matvec_many_with, matvec_rows,
    matvec_rows_with, matvec_rows2, matvec_rows2_with,
};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; the counter does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the contract of this function; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(f: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    f();
    ALLOCATIONS.get() - before
}

fn products_on(pool: &(impl RowPool + ?Sized)) -> usize {
    let (w, x) = (vec![1.0; 300 * 1000], vec![1.0; 1000]);
    let (mut out1, mut out2) = (vec![0.0; 300], vec![0.0; 300]);
    let kernels = Kernels::best();
    let mut run = || {
        matvec_rows(pool, &w, &x, &mut out1);
        matvec_rows2(pool, &w, &x, &x, &mut out1, &mut out2);
        matvec_rows_with(kernels, pool, &w, &x, &mut out1);
        matvec_rows2_with(kernels, pool, &w, &x, &x, &mut out1, &mut out2);
        let input = [(&x[..]).into()];
        let matrix = Matrix::from_f32(&w, 300, 1000).expect("300 rows");
        let mut products = [
            Matvec { w: matrix, x: &input, out: &mut out1 },
            Matvec { w: matrix.rows(3..20), x: &input, out: &mut out2[..17] },
        ];
        matvec_many(pool, &mut products);
        matvec_many_with(kernels, pool, &mut products);
    };
    run(); // the pool may set something up
    count(run) + formats_on(pool)
}

/// Every format, as it lies and packed, for batches of both kinds of input.
fn formats_on(pool: &(impl RowPool + ?Sized)) -> usize {
    let mut n_allocations = 0;
    for format in Format::ALL {
        let n_cols = 2 * format.block_len().max(32);
        let bytes = format.quantize(&vec![0.5; 200 * n_cols]).expect("whole blocks");
        let plain = Matrix::new(*format, 200, n_cols, &bytes).expect("the shape");
        let packed = PackedMatrix::new(plain);
        let x = vec![1.0; n_cols];
        let mut quantized = Q8Activation::new();
        quantized.quantize(&x);
        let (floats, quantized) = (Activation::F32(&x), Activation::Q8(&quantized));
        let batch = [floats, quantized, quantized, floats, floats, floats, floats, floats, floats];
        let mut out = vec![0.0; 200 * batch.len()];
        let mut run = || {
            for w in [plain, packed.as_matrix()] {
                matvec(pool, w, quantized, &mut out[..200]);
                matvec_batch(pool, w, &batch, &mut out);
                for kernels in [Kernels::for_isa(rowpar::Isa::Scalar), Some(Kernels::best())] {
                    matvec_batch_with(kernels.expect("has been seen"), pool, w, &batch, &mut out);
                }
            }
        };
        run(); // the pool may set something up
        n_allocations += count(run);
    }
    n_allocations
}

#[test]
fn inputs_are_quantized_in_the_memory_that_is_there() {
    let x = vec![1.0; 1000];
    let mut quantized = Q8Activation::new();
    assert!(count(|| quantized.quantize(&x)) > 0);
    let again = count(|| {
        for len in [1000, 0, 31, 999, 1000] {
            quantized.quantize(&x[..len]);
        }
    });
    assert_eq!(again, 0);
}

#[test]
fn packing_in_place_takes_a_tile_at_most() {
    for format in Format::ALL {
        let n_cols = format.block_len();
        let bytes = format.quantize(&vec![0.5; 64 * n_cols]).expect("whole blocks");
        let mut arena = bytes.clone();
        let n = count(|| _ = Matrix::pack_in_place(&Serial, *format, 64, n_cols, &mut arena));
        assert!(n <= 1, "{format}: {n}");
        let mut packed = None;
        let n = count(|| packed = PackedMatrix::from_vec(*format, 64, n_cols, bytes).ok());
        assert!(n <= 1 && packed.is_some(), "{format}: {n}");
        assert_eq!(count(|| _ = black_box(packed.as_ref().map(PackedMatrix::as_matrix))), 0);
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(count(|| drop(black_box(Box::new(1)))), 1);
}

#[test]
fn products_do_not_allocate() {
    assert_eq!(products_on(&Serial), 0);
    #[cfg(feature = "epoch-pool")]
    assert_eq!(products_on(&epoch_pool::Pool::new(2).expect("workers can be spawned")), 0);
    #[cfg(feature = "rayon")]
    {
        // On a worker; a caller from outside goes through rayon's queue, which allocates now and then.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("workers");
        assert_eq!(pool.install(|| products_on(&pool)), 0);
    }
}
