//! FreeBSD: the affinity mask of the process, and the scheduler's groups.

use std::io;

use crate::apple::integer;
use crate::cpu_set::CpuSet;
use crate::freebsd;
use crate::pin::PinError;
use crate::sys::sysctl::System;
use crate::sys::{assumed, assumed_cpus, mask};
use crate::topology::CpuTopology;

pub(crate) fn detect() -> CpuTopology {
    let topology = freebsd::read(&System, process_mask().as_ref());
    if topology.is_empty() { assumed::topology() } else { topology }
}

pub(crate) fn process_affinity_cpus() -> CpuSet {
    process_mask().filter(|mask| !mask.is_empty()).unwrap_or_else(assumed_cpus)
}

pub(crate) fn thread_affinity() -> Result<CpuSet, PinError> {
    Err(PinError::Unsupported)
}

pub(crate) fn set_thread_affinity(_cpus: &CpuSet) -> Result<(), PinError> {
    Err(PinError::Unsupported)
}

/// The mask of this process, as an id of -1 says; `None` if the kernel does not tell.
fn process_mask() -> Option<CpuSet> {
    // The kernel's own width, in bytes. Up to version 13 no other is taken; later ones take any that holds all its CPUs.
    let own =
        integer(&System, "kern.sched.cpusetsize").and_then(|bytes| usize::try_from(bytes).ok());
    let widths = own.and_then(|bytes| bytes.checked_mul(8)).into_iter().chain(mask::growing(128));
    mask::of_any_width(libc::ERANGE, widths, |words| {
        // SAFETY: the pointer and the length in bytes are those of one live exclusive slice of longs, of which `cpuset_t` is an
        // array, so alignment is right as well. The callee writes at most that many bytes, any of which are valid there.
        let result = unsafe {
            libc::cpuset_getaffinity(
                libc::CPU_LEVEL_WHICH,
                libc::CPU_WHICH_PID,
                -1,
                size_of_val(words),
                words.as_mut_ptr().cast::<libc::cpuset_t>(),
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error().raw_os_error().unwrap_or(0))
        } else {
            Ok(())
        }
    })
}
