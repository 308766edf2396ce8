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

/// Jobs published by all pools of the process: a plain statistic that orders nothing. Never a loom atomic, as those cannot
/// live in a static.
static DISPATCHES: crossbeam_utils::CachePadded<std::sync::atomic::AtomicU64> =
    crossbeam_utils::CachePadded::new(std::sync::atomic::AtomicU64::new(0));

pub(crate) fn count_dispatch() {
    DISPATCHES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

pub(crate) fn dispatches() -> u64 {
    DISPATCHES.load(std::sync::atomic::Ordering::Relaxed)
}

/// CPUs that this process can keep busy: its affinity mask and its cgroup quota, as the standard library counts them.
pub(crate) fn available_parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How long so many spin hints take, of the real kind even in a model. Only where there are threads is there a clock.
pub(crate) fn time_spin_hints(n_hints: u32) -> std::time::Duration {
    let start = std::time::Instant::now();
    (0..n_hints).for_each(|_| std::hint::spin_loop());
    start.elapsed()
}

/// Forks between the first pool of the process's ancestors and this process: what tells a child from its parent.
static FORKS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Where `sys` can watch forks.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn count_fork() {
    FORKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

pub(crate) fn forks() -> usize {
    FORKS.load(std::sync::atomic::Ordering::Relaxed)
}
