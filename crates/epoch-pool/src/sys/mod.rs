//! Forks: a child has its parent's pools, and none of their workers. Each module defines `watch_forks()` and nothing else.

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
mod unix;
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
use unix as imp;

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
mod unsupported;
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
use unsupported as imp;

pub(crate) use self::imp::watch_forks;
