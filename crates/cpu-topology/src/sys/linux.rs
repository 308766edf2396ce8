//! Linux and Android: the affinity mask, whatever its width; everything else is in files.

use std::io;

use crate::cpu_list::MAX_CPU_ID;
use crate::cpu_set::CpuSet;
use crate::linux::{read_running, running_process_cpus};
use crate::pin::PinError;
use crate::sys::{assumed_cpus, available_parallelism, mask};
use crate::topology::CpuTopology;

/// The calling thread, for `sched_getaffinity`.
const THIS_THREAD: libc::pid_t = 0;

pub(crate) fn detect() -> CpuTopology {
    let mask = || affinity(process());
    let mut topology = read_running(mask, assumed_cpus);
    // The standard library counts for the calling thread. Where that thread is pinned to a part of what the process
    // has, its count says nothing about a pool.
    let same = mask().is_some_and(|mask| Some(mask) == affinity(THIS_THREAD));
    topology.parallelism = same.then(available_parallelism);
    topology
}

pub(crate) fn process_affinity_cpus() -> CpuSet {
    running_process_cpus(affinity(process()), assumed_cpus)
}

pub(crate) fn thread_affinity() -> Result<CpuSet, PinError> {
    affinity(THIS_THREAD).ok_or_else(|| PinError::Refused(io::Error::last_os_error()))
}

pub(crate) fn set_thread_affinity(cpus: &CpuSet) -> Result<(), PinError> {
    let believed = cpus.last().is_none_or(|last| last <= MAX_CPU_ID);
    if !believed {
        return Err(PinError::Refused(io::ErrorKind::InvalidInput.into()));
    }
    let words = mask::words(cpus);
    // SAFETY: pointer and length in bytes are those of a live slice of `c_ulong`, of which `cpu_set_t` is an array in the C
    // libraries; the callee reads no more than that.
    let result = unsafe {
        libc::sched_setaffinity(
            THIS_THREAD,
            size_of_val(words.as_slice()),
            words.as_ptr().cast::<libc::cpu_set_t>(),
        )
    };
    if result < 0 { Err(PinError::Refused(io::Error::last_os_error())) } else { Ok(()) }
}

/// The first thread of the process, which stands for it: threads started later may have been pinned.
fn process() -> libc::pid_t {
    // SAFETY: the function has no precondition.
    unsafe { libc::getpid() }
}

/// The affinity mask of a thread; `None` if the kernel does not tell.
fn affinity(thread: libc::pid_t) -> Option<CpuSet> {
    // The C libraries' own sets have 1,024 bits, and few kernels wider ones.
    mask::of_any_width(libc::EINVAL, mask::growing(1024), |words| {
        // SAFETY: the pointer and the length in bytes are those of one live exclusive slice of `c_ulong`, of which
        // `cpu_set_t` is an array in the C libraries, so alignment is right as well. The callee writes at most that
        // many bytes, any of which are valid in a `c_ulong`.
        let result = unsafe {
            libc::sched_getaffinity(
                thread,
                size_of_val(words),
                words.as_mut_ptr().cast::<libc::cpu_set_t>(),
            )
        };
        if result < 0 {
            Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
        } else {
            Ok(())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_of_zeros_is_no_information() {
        assert!(!running_process_cpus(Some(CpuSet::new()), assumed_cpus).is_empty());
    }

    #[test]
    fn the_mask_of_this_process_names_a_cpu() {
        assert!(affinity(process()).is_none_or(|mask| !mask.is_empty()));
        assert!(!process_affinity_cpus().is_empty());
    }

    #[test]
    fn pinning_a_thread_does_not_narrow_the_process() {
        let before = process_affinity_cpus();
        let cores = detect().cores;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let cpu = before.first().expect("a CPU");
                let pinned = set_thread_affinity(&[cpu].into_iter().collect());
                let topology = detect();
                assert_eq!(process_affinity_cpus(), before);
                assert_eq!(topology.cores, cores);
                // What the standard library counts is of this thread, and no limit of the process.
                assert!(pinned.is_err() || before.len() == 1 || topology.parallelism.is_none());
            });
        });
    }
}
