//! What depends on the operating system or the CPU, each with a fallback that does nothing.

#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri), not(all(test, loom))))]
mod affinity;
mod float;
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
mod forks;
mod prefetch;

pub(crate) use self::float::DefaultFloats;
pub(crate) use self::imp::{cpus_of, current_cpu, leave, thread_id};
pub(crate) use self::prefetch::prefetch;

/// From now on a fork counts in the child, where we can be told of it.
pub(crate) fn watch_forks() {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    forks::watch();
}

/// Where threads are, if the operating system tells.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri), not(all(test, loom))))]
mod imp {
    use super::affinity;

    /// The CPU that this thread runs on at this moment.
    pub(crate) fn current_cpu() -> Option<u32> {
        affinity::current_cpu()
    }

    /// The number by which [`cpus_of`] knows this thread.
    pub(crate) fn thread_id() -> u64 {
        affinity::thread_id()
    }

    /// The number of CPUs on which at least one of these threads may run, a CPU given beside them included.
    pub(crate) fn cpus_of(threads: impl Iterator<Item = u64>, and: Option<u32>) -> Option<usize> {
        Some(affinity::cpus_of(threads, and))
    }

    /// Moves this thread off the CPU `here`, to none that is `taken` if there is one, and gives it back its mask.
    pub(crate) fn leave(here: u32, taken: impl Iterator<Item = u32>) -> bool {
        affinity::leave(here, taken)
    }
}

/// It does not; nor in a model, which is to run the same way wherever it runs.
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(miri), not(all(test, loom)))))]
mod imp {
    pub(crate) fn current_cpu() -> Option<u32> {
        None
    }

    pub(crate) fn thread_id() -> u64 {
        0
    }

    pub(crate) fn cpus_of(_threads: impl Iterator<Item = u64>, _and: Option<u32>) -> Option<usize> {
        None
    }

    pub(crate) fn leave(_here: u32, _taken: impl Iterator<Item = u32>) -> bool {
        false
    }
}
