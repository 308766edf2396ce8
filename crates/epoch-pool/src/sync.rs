//! Every atomic, cell, fence, spin hint, lock and thread call of this crate, so that the models can swap them for loom's.
//! `cargo xtask tidy` rejects them elsewhere in `src/`.

#[cfg(all(test, loom))]
#[path = "sync/model.rs"]
mod imp;
#[cfg(not(all(test, loom)))]
#[path = "sync/real.rs"]
mod imp;

pub(crate) use imp::*;

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
