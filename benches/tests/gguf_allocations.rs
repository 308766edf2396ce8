//! What the GGUF reader allocates is less than the file, whatever the file says.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use benches::gguf::Gguf;
use common::{Field, GgufWriter};

thread_local! {
    /// Bytes that this thread holds, and the most that it ever held.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(bytes: isize) {
    // A thread that ends allocates when the cell is gone.
    _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: every call is handed on to the system's allocator as it is; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were held at once while `f` ran, beyond those before.
fn most_held(f: impl FnOnce()) -> usize {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    f();
    (HELD.get().1 - before) as usize
}

#[test]
fn the_counter_counts() {
    assert_eq!(most_held(|| drop(vec![0_u8; 12_345])), 12_345);
}

#[test]
fn parsing_allocates_less_than_the_file() {
    // The smallest entries and the smallest tensors there can be: the most of them in a byte of file.
    let mut dense = GgufWriter::new();
    for n in 0..2000_u32 {
        dense.entry(&format!("{n:x}"), &Field::U8(0));
        dense.info(&format!("{n:x}"), &[], 0, 32 * u64::from(n));
    }
    let mut dense = dense.finish();
    dense.resize(dense.len().next_multiple_of(32) + 32 * 2000, 0);
    let used = most_held(|| _ = Gguf::parse(&dense).unwrap());
    assert!((32_000..dense.len()).contains(&used), "{used} bytes for a file of {}", dense.len());

    // The same, with every word of it replaced by numbers that claim the most.
    for at in (0..dense.len().min(4000)).step_by(4) {
        let mut damaged = dense.clone();
        damaged[at..at + 4].fill(0xff);
        let used = most_held(|| _ = Gguf::parse(&damaged));
        assert!(used < damaged.len(), "{used} bytes, damaged at {at}");
    }
}
