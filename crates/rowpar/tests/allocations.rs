//! A product allocates nothing, whatever its shape: counted by an allocator that knows its thread.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
};

use rowpar::{
    Kernels, Matrix, Matvec, RowPool, Serial, matvec_many, matvec_many_with, matvec_rows,
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
    count(run)
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
