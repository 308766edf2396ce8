//! The running machine. Each module defines `detect() -> CpuTopology` and `process_affinity_cpus() -> CpuSet`, neither
//! of which is ever empty, and `thread_affinity() -> Result<CpuSet, PinError>` and
//! `set_thread_affinity(&CpuSet) -> Result<(), PinError>` for the calling thread.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as imp;

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(target_vendor = "apple")]
use apple as imp;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as imp;

#[cfg(target_os = "freebsd")]
mod freebsd;
#[cfg(target_os = "freebsd")]
use freebsd as imp;

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_vendor = "apple",
    windows
)))]
mod unsupported;
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_vendor = "apple",
    windows
)))]
use unsupported as imp;

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
mod mask;
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
mod sysctl;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod assumed;

use crate::cpu_set::CpuSet;

pub(crate) use self::imp::{detect, process_affinity_cpus, set_thread_affinity, thread_affinity};

/// `std::thread::available_parallelism`, 1 if it is not known.
pub(crate) fn available_parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// As many CPUs as can run at once, numbered from 0.
fn assumed_cpus() -> CpuSet {
    CpuSet::from_ranges(vec![(0, available_parallelism() - 1)])
}
