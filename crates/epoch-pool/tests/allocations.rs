//! A dispatch allocates nothing, on the caller or on a worker; a waiting worker that counts the CPUs again, or moves to another one, does. Alone in its
//! process, as it replaces the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use epoch_pool::{Pool, dispatch_count};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread's allocations count: the test harness makes some of its own.
    static COUNTED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: `System` keeps the contract; counting changes nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTED.get() {
            ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        }
        // SAFETY: the caller's contract, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract, passed on; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_dispatch_allocates_nothing_and_ticks_once() {
    COUNTED.set(true);
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.load(Ordering::SeqCst), 1, "the counter counts");

    let before = ALLOCATIONS.load(Ordering::SeqCst);
    _ = std::thread::available_parallelism();
    // What the standard library needs for a count, and a little for the masks of the threads.
    let per_count = (ALLOCATIONS.load(Ordering::SeqCst) - before) + 8;

    for spin in [0, Pool::DEFAULT_SPIN] {
        let builder = Pool::builder().workers(2).spin_budget(spin);
        let pool = builder.on_worker_start(|_| COUNTED.set(true)).build().unwrap();
        let sum = AtomicUsize::new(0);
        let token = || {
            pool.run_rows(100, |rows| _ = sum.fetch_add(rows.len(), Ordering::Relaxed));
            let part =
                |rows: std::ops::Range<usize>| _ = sum.fetch_add(rows.len(), Ordering::Relaxed);
            pool.run_many(&[(64, &part), (32, &part), (4, &part)]);
            pool.run(|_, _| _ = sum.fetch_add(1, Ordering::Relaxed));
        };
        for _ in 0..10 {
            token(); // the first parking of a thread may allocate its handle
        }
        let counts = pool.statistics().cpu_counts + pool.statistics().moves;
        let (allocations, dispatches) = (ALLOCATIONS.load(Ordering::SeqCst), dispatch_count());
        for _ in 0..1000 {
            token();
        }
        let allocations = ALLOCATIONS.load(Ordering::SeqCst) - allocations;
        // Some may have begun before: one on each worker.
        let counts = pool.statistics().cpu_counts + pool.statistics().moves - counts;
        let counts = counts as usize + pool.n_workers();
        assert!(allocations <= counts * per_count, "{allocations} in {counts} counts");
        assert_eq!(dispatch_count() - dispatches, 3000);
        assert_eq!(sum.into_inner(), 1010 * 203);

        // What runs inline is no dispatch.
        let dispatches = dispatch_count();
        pool.run_rows(0, |_| {});
        pool.run_rows(1, |_| {});
        pool.run_many(&[]);
        pool.run_many(&[(0, &|_| {})]);
        Pool::new(0).unwrap().run_rows(100, |_| {});
        assert_eq!(dispatch_count(), dispatches);
    }
}
