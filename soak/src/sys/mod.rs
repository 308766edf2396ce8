//! What the operating system is asked to do to the pool. `forked` runs a function in a child of this process, `None` where there
//! are no forks; `Affinity` puts threads on CPUs, where it can be found at all.

#[cfg(unix)]
mod fork;
#[cfg(unix)]
pub(crate) use fork::forked;

/// No forks here.
#[cfg(not(unix))]
pub(crate) fn forked(_child: impl FnOnce() -> i32) -> Option<Result<(), String>> {
    None
}

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::Affinity;

#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::Affinity;
