//! Pinning the calling thread, with the result read back, and a guard that undoes it.
#![forbid(unsafe_code)]

use std::marker::PhantomData;
use std::{fmt, io};

use crate::cpu_set::CpuSet;
use crate::sys;

/// Why a thread could not be pinned, or its CPUs not be read.
///
/// ```
/// use cpu_topology::{CpuSet, PinError, pin_current_thread};
///
/// match pin_current_thread(&CpuSet::new()) {
///     Err(PinError::NoCpu) => {} // a thread has to run somewhere
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum PinError {
    /// The set of CPUs is empty.
    NoCpu,
    /// This system has no call for it. Apple's, most of all: see the quality of service of a thread there.
    Unsupported,
    /// Windows pins a thread within one processor group, and these CPUs are of several.
    SeveralGroups,
    /// The system refused: none of the CPUs is online and allowed, or a sandbox forbids the call.
    Refused(io::Error),
    /// The system reported success, and the thread may run on other CPUs all the same.
    NotHonoured {
        /// What was asked for.
        asked: CpuSet,
        /// Where the thread may run.
        found: CpuSet,
    },
}

impl fmt::Display for PinError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCpu => formatter.write_str("no CPU to pin the thread to"),
            Self::Unsupported => formatter.write_str("this system cannot pin threads"),
            Self::SeveralGroups => formatter.write_str("the CPUs are of several processor groups"),
            Self::Refused(error) => write!(formatter, "refused by the system: {error}"),
            Self::NotHonoured { asked, found } => {
                write!(formatter, "pinned to CPUs {asked}, and found on CPUs {found}")
            }
        }
    }
}

impl std::error::Error for PinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }
}

/// The logical CPUs that the calling thread may run on.
///
/// This is the thread's own set, which a runtime may have narrowed; a pool is sized by
/// [`process_affinity_cpus`](crate::process_affinity_cpus). On Windows it is that of the thread's main processor group.
///
/// ```
/// match cpu_topology::current_thread_affinity() {
///     Ok(cpus) => println!("this thread runs on CPUs {cpus}"),
///     Err(error) => println!("{error}"),
/// }
/// ```
///
/// # Errors
///
/// [`PinError::Unsupported`] on systems other than Linux, Android and Windows; [`PinError::Refused`].
pub fn current_thread_affinity() -> Result<CpuSet, PinError> {
    sys::thread_affinity()
}

/// Restricts the calling thread to these CPUs until the guard is dropped. No other thread is affected; on Linux and Android
/// threads that it starts meanwhile inherit the restriction.
///
/// The system leaves out CPUs that are offline or that the process may not use; [`PinGuard::cpus`] tells what is left. The
/// result is read back, as some systems report success and do nothing.
///
/// ```
/// use cpu_topology::{PinError, pin_current_thread, plan_cpu_pool};
///
/// let plan = plan_cpu_pool(0, false);
/// std::thread::scope(|scope| {
///     for cpu in plan.core_ids {
///         scope.spawn(move || match pin_current_thread(&[cpu].into_iter().collect()) {
///             Ok(guard) => println!("pinned to CPU {}", guard.cpus()),
///             Err(error) => println!("runs unpinned: {error}"),
///         });
///     }
/// });
/// ```
///
/// # Errors
///
/// Any [`PinError`]. The thread then runs where it ran before, except after [`PinError::NotHonoured`], where the system did
/// as it liked; restoring what was before is tried then as well.
pub fn pin_current_thread(cpus: &CpuSet) -> Result<PinGuard, PinError> {
    if cpus.is_empty() {
        return Err(PinError::NoCpu);
    }
    let former = sys::thread_affinity()?;
    sys::set_thread_affinity(cpus)?;
    let mut guard = PinGuard { former, cpus: CpuSet::new(), is_kept: false, not_send: PhantomData };
    guard.cpus = sys::thread_affinity()?;
    if guard.cpus.is_empty() || !guard.cpus.is_subset(cpus) {
        return Err(PinError::NotHonoured { asked: cpus.clone(), found: guard.cpus.clone() });
    }
    Ok(guard)
}

/// A restriction of the thread that it was made on, which cannot leave that thread. Dropping it lets the thread run where
/// it ran before, as far as the system tells where that was:
///
/// * CPUs that were offline when the guard was made are not in [`former`](Self::former) on Linux and Android. The thread does not
///   get them back should they come online meanwhile. If all of `former` has gone offline, restoring is refused.
/// * On Windows `former` is in one processor group. Since Windows 11 and Server 2022 a thread that nobody has pinned runs in all
///   groups, which no restriction can say: on a machine with several, it stays in its group after the guard. Pin threads there that
///   do nothing else, such as those of a pool.
///
/// ```
/// use cpu_topology::{pin_current_thread, process_affinity_cpus};
///
/// let cpu = process_affinity_cpus()[0];
/// if let Ok(guard) = pin_current_thread(&[cpu].into_iter().collect()) {
///     assert!(guard.former().contains(cpu));
///     guard.restore().expect("the CPUs of before");
/// }
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard at once undoes the pin"]
pub struct PinGuard {
    former: CpuSet,
    cpus: CpuSet,
    is_kept: bool,
    not_send: PhantomData<*const ()>,
}

impl PinGuard {
    /// The CPUs that the thread was found to be restricted to: those asked for, without any that it cannot use.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// The CPUs that it could run on before.
    pub fn former(&self) -> &CpuSet {
        &self.former
    }

    /// Leaves the thread pinned.
    pub fn keep(mut self) {
        self.is_kept = true;
    }

    /// Lets the thread run where it ran before, and tells if that fails, where dropping the guard would not.
    ///
    /// # Errors
    ///
    /// [`PinError::Refused`], such as when all of those CPUs have gone offline since.
    pub fn restore(self) -> Result<(), PinError> {
        let result = sys::set_thread_affinity(&self.former);
        self.keep();
        result
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing can be done about an error here; `restore` reports it.
            _ = sys::set_thread_affinity(&self.former);
        }
    }
}
