//! Windows: records of processors, affinity and job of the process, affinity of the calling thread.

use std::{io, ptr};

use windows_sys::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, GetLastError};
use windows_sys::Win32::System::JobObjects::{
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION, JobObjectCpuRateControlInformation,
    QueryInformationJobObject,
};
use windows_sys::Win32::System::SystemInformation::{
    GROUP_AFFINITY, GetLogicalProcessorInformationEx, LOGICAL_PROCESSOR_RELATIONSHIP, RelationAll,
    RelationNumaNodeEx,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, GetProcessAffinityMask, GetProcessGroupAffinity,
    GetThreadGroupAffinity, SetThreadGroupAffinity,
};

use crate::cpu_set::CpuSet;
use crate::pin::PinError;
use crate::sys::assumed;
use crate::topology::CpuTopology;
use crate::windows::{self, GroupMask, WindowsFacts};

pub(crate) fn detect() -> CpuTopology {
    let topology = windows::read(&WindowsFacts {
        records: [records(RelationAll), records(RelationNumaNodeEx)].concat(),
        is_32_bit: cfg!(target_pointer_width = "32"),
        affinity: process_affinity(),
        cpu_rate: job_cpu_rate(),
    });
    // The standard library counts the processors of one group, so its count is no limit.
    if topology.is_empty() { assumed::topology() } else { topology }
}

pub(crate) fn process_affinity_cpus() -> CpuSet {
    detect().allowed_set().clone()
}

pub(crate) fn thread_affinity() -> Result<CpuSet, PinError> {
    let mut affinity = GROUP_AFFINITY::default();
    // SAFETY: `affinity` is a live exclusive borrow of the type that the callee fills.
    let ok = unsafe { GetThreadGroupAffinity(this_thread(), &raw mut affinity) };
    if ok == 0 {
        return Err(PinError::Refused(io::Error::last_os_error()));
    }
    Ok(GroupMask { group: affinity.Group, mask: affinity.Mask as u64 }.cpus())
}

pub(crate) fn set_thread_affinity(cpus: &CpuSet) -> Result<(), PinError> {
    let (Some(first), Some(last)) = (cpus.first(), cpus.last()) else {
        return Err(PinError::NoCpu);
    };
    let group = first / 64;
    if last / 64 != group {
        return Err(PinError::SeveralGroups);
    }
    let invalid = || PinError::Refused(io::ErrorKind::InvalidInput.into());
    let mask = cpus.iter().fold(0_u64, |mask, cpu| mask | 1 << (cpu % 64));
    let affinity = GROUP_AFFINITY {
        Mask: usize::try_from(mask).map_err(|_| invalid())?,
        Group: u16::try_from(group).map_err(|_| invalid())?,
        Reserved: [0; 3],
    };
    // SAFETY: `affinity` lives past the call, which reads it. The former affinity is not asked for, as the null pointer says.
    let ok = unsafe { SetThreadGroupAffinity(this_thread(), &raw const affinity, ptr::null_mut()) };
    if ok == 0 { Err(PinError::Refused(io::Error::last_os_error())) } else { Ok(()) }
}

fn this_thread() -> windows_sys::Win32::Foundation::HANDLE {
    // SAFETY: the function has no precondition.
    unsafe { GetCurrentThread() }
}

fn this_process() -> windows_sys::Win32::Foundation::HANDLE {
    // SAFETY: the function has no precondition.
    unsafe { GetCurrentProcess() }
}

/// The records of one kind, empty if the system does not know them.
fn records(kind: LOGICAL_PROCESSOR_RELATIONSHIP) -> Vec<u8> {
    // Processors may be added between two calls, so the length asked for may be too small again.
    const TRIES: usize = 8;
    let mut len = 0_u32;
    for _ in 0..TRIES {
        let mut words = vec![0_u64; (len as usize).div_ceil(8)];
        // SAFETY: `words` has room for `len` bytes and the alignment of the records, whose fields have at most 8 bytes; both
        // are live exclusive borrows. The callee writes no more than `len` bytes, and says how many there are.
        let ok = unsafe {
            GetLogicalProcessorInformationEx(kind, words.as_mut_ptr().cast(), &raw mut len)
        };
        if ok != 0 {
            let mut bytes = words.into_iter().flat_map(u64::to_ne_bytes).collect::<Vec<_>>();
            bytes.truncate(len as usize);
            return bytes;
        }
        // SAFETY: the function has no precondition.
        if unsafe { GetLastError() } != ERROR_INSUFFICIENT_BUFFER {
            break;
        }
    }
    Vec::new()
}

/// What the process is restricted to; empty if it is not, or if it spans several groups, where there is no mask to ask for.
fn process_affinity() -> Vec<GroupMask> {
    let (mut process, mut system) = (0_usize, 0_usize);
    // SAFETY: both are live exclusive borrows of the type that the callee fills.
    let ok = unsafe { GetProcessAffinityMask(this_process(), &raw mut process, &raw mut system) };
    if ok == 0 || process == 0 || process == system {
        return Vec::new();
    }
    let mut groups = [0_u16; 64];
    let mut count = groups.len() as u16;
    // SAFETY: `count` is the length of `groups`; both are live exclusive borrows.
    let ok =
        unsafe { GetProcessGroupAffinity(this_process(), &raw mut count, groups.as_mut_ptr()) };
    if ok == 0 || count != 1 {
        return Vec::new();
    }
    vec![GroupMask { group: groups[0], mask: process as u64 }]
}

/// Flags and rate of the job that the process is in, if it is in one.
fn job_cpu_rate() -> Option<(u32, u32)> {
    let mut rate = JOBOBJECT_CPU_RATE_CONTROL_INFORMATION::default();
    // SAFETY: the job is that of this process, as the null handle says. `rate` is a live exclusive borrow of the type that
    // belongs to the class asked for, and the length is its size. The length written is not asked for.
    let ok = unsafe {
        QueryInformationJobObject(
            ptr::null_mut(),
            JobObjectCpuRateControlInformation,
            (&raw mut rate).cast(),
            size_of::<JOBOBJECT_CPU_RATE_CONTROL_INFORMATION>() as u32,
            ptr::null_mut(),
        )
    };
    // SAFETY: all fields of the union are integers, for which any bits are valid, and it was zeroed before it was filled.
    let number = unsafe { rate.Anonymous.CpuRate };
    (ok != 0).then_some((rate.ControlFlags, number))
}
