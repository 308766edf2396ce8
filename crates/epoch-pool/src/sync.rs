//! Every atomic, cell, fence, spin hint, lock and thread call of this crate, so that the models can swap them for loom's.
//! `cargo xtask tidy` rejects them elsewhere in `src/`.
#![forbid(unsafe_code)]

pub(crate) use imp::*;

/// The standard library's.
#[cfg(not(all(test, loom)))]
mod imp {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
    pub(crate) use std::sync::{Arc, Condvar, Mutex};
    pub(crate) use std::thread::{self, JoinHandle};

    /// `std`'s cell behind loom's closures.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// A pointer to read through. The caller proves that nobody writes meanwhile.
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        /// A pointer to write through. The caller proves that nobody else is there meanwhile.
        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}

/// Loom's, for the models.
#[cfg(all(test, loom))]
mod imp {
    pub(crate) use loom::cell::UnsafeCell; // reports two threads in one cell at once
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex};
    pub(crate) use loom::thread::{self, JoinHandle};
}

/// Jobs published by all pools of the process.
static DISPATCHES: crossbeam_utils::CachePadded<Counter> =
    crossbeam_utils::CachePadded::new(Counter::new());

pub(crate) fn count_dispatch() {
    DISPATCHES.add(1);
}

pub(crate) fn dispatches() -> u64 {
    DISPATCHES.get()
}

/// A number that orders nothing: a statistic, or what the words of the protocol order already. Never a loom atomic, so that
/// models do not grow by it.
#[derive(Debug, Default)]
pub(crate) struct Counter(std::sync::atomic::AtomicU64);

impl Counter {
    pub(crate) const fn new() -> Self {
        Self(std::sync::atomic::AtomicU64::new(0))
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, std::sync::atomic::Ordering::Relaxed);
    }

    /// Adds where one thread at a time does: a load and a store.
    pub(crate) fn bump(&self, n: u64) {
        self.set(self.get().wrapping_add(n));
    }

    /// Adds where several threads may.
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    }

    /// Takes the place of `expected`, if it is still there.
    pub(crate) fn replace(&self, expected: u64, value: u64) -> bool {
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        self.0.compare_exchange(expected, value, relaxed, relaxed).is_ok()
    }
}

/// An address for the cache to fetch. As a [`Counter`], it orders nothing.
#[derive(Debug)]
pub(crate) struct Hint(std::sync::atomic::AtomicPtr<()>);

impl Hint {
    pub(crate) fn new() -> Self {
        Self(std::sync::atomic::AtomicPtr::new(std::ptr::null_mut()))
    }

    pub(crate) fn get(&self) -> *const () {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn set(&self, address: *mut ()) {
        self.0.store(address, std::sync::atomic::Ordering::Relaxed);
    }
}

thread_local! {
    /// Its address tells threads apart, and its value which pool's worker this is, by [`Shared`]'s address; 0 if none's.
    ///
    /// [`Shared`]: crate::dispatch::Shared
    static WORKER_OF: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// This thread is a worker of the pool at that address, from now to its end.
pub(crate) fn become_worker_of(pool: usize) {
    WORKER_OF.set(pool);
}

/// Whether this thread is a worker of the pool at that address.
pub(crate) fn is_worker_of(pool: usize) -> bool {
    // A thread that is being torn down has no such value any more, and is no worker.
    WORKER_OF.try_with(|of| of.get() == pool).unwrap_or(false)
}

/// A number of this thread's own while it lives, never 0 (but in a thread that is being torn down).
pub(crate) fn this_thread() -> u64 {
    WORKER_OF.try_with(|of| std::ptr::from_ref(of).addr() as u64).unwrap_or(0)
}

/// Whether this target has threads. Where it has none, as WebAssembly, there is no clock either.
pub(crate) const HAS_THREADS: bool =
    !cfg!(all(target_family = "wasm", not(target_feature = "atomics")));

/// CPUs that this thread can keep busy with others: its affinity mask and its cgroup quota, as the standard library counts them.
pub(crate) fn available_parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How long so many spin hints take, of the real kind even in a model. Only where there are threads is there a clock.
pub(crate) fn time_spin_hints(n_hints: u32) -> std::time::Duration {
    let start = std::time::Instant::now();
    (0..n_hints).for_each(|_| std::hint::spin_loop());
    start.elapsed()
}

/// Nanoseconds since the first call, for 584 years. Only where there are threads is there a clock.
pub(crate) fn now_ns() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}

/// Forks between the first pool of the process's ancestors and this process: what tells a child from its parent.
static FORKS: Counter = Counter::new();

/// Where `sys` can watch forks. The child has one thread, which this is.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn count_fork() {
    FORKS.bump(1);
}

pub(crate) fn forks() -> u64 {
    FORKS.get()
}
