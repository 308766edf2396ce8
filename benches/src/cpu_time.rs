//! The CPU time of this process: what work costs, and what waiting in a loop costs.

#![forbid(unsafe_code)]

use std::time::Duration;

/// CPU time that all threads of this process have taken so far, those that run this moment included; `None` where the system has
/// no such clock.
///
/// ```
/// let before = benches::cpu_time::now();
/// benches::work::spin_work(1_000_000);
/// assert!(benches::cpu_time::now() > before || before.is_none());
/// ```
pub fn now() -> Option<Duration> {
    #[cfg(unix)]
    {
        use rustix::time::{ClockId, clock_gettime};
        // POSIX: unlike the times of `getrusage`, not rounded to ticks of the scheduler.
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u64::try_from(time.tv_sec).ok()?;
        Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
    }
    #[cfg(not(unix))]
    None
}
