//! Apple platforms: `sysctlbyname`.

use std::ffi::CString;
use std::ptr;

use crate::apple::{self, SysctlSource};
use crate::cpu_set::CpuSet;
use crate::pin::PinError;
use crate::sys::{assumed, assumed_cpus, available_parallelism};
use crate::topology::CpuTopology;

/// The values of the running system.
struct System;

impl SysctlSource for System {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let name = CString::new(name).ok()?;
        // Room for any integer and for the name of a level.
        let mut bytes = vec![0_u8; 256];
        let mut len = bytes.len();
        // SAFETY: `name` ends with a NUL and lives past the call. `bytes` and `len` are live exclusive borrows, and
        // `len` is the length of `bytes`, so the callee writes inside of it. The new value is absent, as a null pointer
        // with a length of 0 says.
        let result = unsafe {
            libc::sysctlbyname(
                name.as_ptr(),
                bytes.as_mut_ptr().cast(),
                &raw mut len,
                ptr::null_mut(),
                0,
            )
        };
        bytes.truncate(len);
        (result == 0).then_some(bytes)
    }
}

pub(crate) fn detect() -> CpuTopology {
    let mut topology = apple::read(&System);
    if topology.is_empty() {
        return assumed::topology();
    }
    topology.parallelism = Some(available_parallelism());
    topology
}

pub(crate) fn process_affinity_cpus() -> CpuSet {
    assumed_cpus()
}

pub(crate) fn thread_affinity() -> Result<CpuSet, PinError> {
    Err(PinError::Unsupported)
}

pub(crate) fn set_thread_affinity(_cpus: &CpuSet) -> Result<(), PinError> {
    Err(PinError::Unsupported)
}
