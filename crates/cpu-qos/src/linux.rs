//! What Linux and Android have in place of classes: utilization clamps and scheduling policies, for the calling thread.
//!
//! Neither is a quality-of-service class, so nothing else in this crate touches them: they are used by name, or not at all. The
//! names exist on every system, and elsewhere all calls are [`Error::Unsupported`].
//!
//! What the calling thread is given is inherited by threads and processes that it starts, unlike a class.
//!
//! ## What can be undone
//!
//! | call | undone by | without privileges |
//! |---|---|---|
//! | [`set_clamp`] | [`reset_clamp`], or [`set_clamp`] with what [`clamp`] said | yes |
//! | [`set_policy`] with [`Policy::Batch`] | [`set_policy`] with [`Policy::Other`] | yes |
//! | [`set_policy`] with [`Policy::Idle`] | [`set_policy`] with [`Policy::Other`] | **no**: the kernel wants `CAP_SYS_NICE`, or a limit `RLIMIT_NICE` that covers the nice value, and the usual limit does not |
//!
//! Nice values are left alone for that reason: an unprivileged thread can raise its own and never lower it again.
#![forbid(unsafe_code)]

use crate::class::QosClass;
use crate::error::Error;
use crate::sys;

/// How much of a CPU's full capacity, in 1024ths, the scheduler is to assume that a thread uses at least and at most.
///
/// On machines with cores of several speeds a thread whose `min` is above what the small cores have is placed on larger ones
/// where that can be done, and the frequency follows at once instead of after some milliseconds. It is a hint: only the
/// `schedutil` governor heeds it for frequencies, and the limits of the control group and of `sched_util_clamp_min` apply.
///
/// ```
/// use cpu_qos::QosClass;
/// use cpu_qos::linux::{UtilizationClamp, set_clamp};
///
/// assert!(UtilizationClamp::new(700, 300).is_none());
/// std::thread::spawn(|| {
///     match set_clamp(UtilizationClamp::for_class(QosClass::UserInitiated)) {
///         Ok(()) => println!("this worker belongs on a fast core"),
///         Err(error) => println!("the scheduler decides alone: {error}"),
///     }
/// })
/// .join()
/// .unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UtilizationClamp {
    min: u32,
    max: u32,
}

impl UtilizationClamp {
    /// A CPU of the highest capacity at its highest frequency.
    pub const FULL: u32 = 1024;

    /// No clamp: from nothing to all of a CPU.
    pub const NONE: Self = Self { min: 0, max: Self::FULL };

    /// From `min` to `max`, `None` unless `min <= max <= 1024`.
    pub const fn new(min: u32, max: u32) -> Option<Self> {
        if min <= max && max <= Self::FULL { Some(Self { min, max }) } else { None }
    }

    /// What comes nearest to a class: at least all of a CPU for user-interactive, three quarters for user-initiated, and no
    /// clamp for the classes below, which [`Policy`] can tell apart.
    pub const fn for_class(class: QosClass) -> Self {
        let min = match class {
            QosClass::UserInteractive => Self::FULL,
            QosClass::UserInitiated => Self::FULL / 4 * 3,
            QosClass::Default | QosClass::Utility | QosClass::Background => 0,
        };
        Self { min, max: Self::FULL }
    }

    /// What the thread is assumed to use at least.
    pub const fn min(self) -> u32 {
        self.min
    }

    /// What it is assumed to use at most.
    pub const fn max(self) -> u32 {
        self.max
    }
}

/// How the kernel schedules a thread that is not one of real time.
///
/// ```
/// use cpu_qos::linux::{Policy, policy};
///
/// match policy() {
///     Ok(Some(Policy::Idle)) => println!("runs when nobody else wants the CPU"),
///     Ok(Some(policy)) => println!("one of many: {policy:?}"),
///     Ok(None) => println!("of real time, which is nothing to change from here"),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// `SCHED_OTHER`, what every thread starts with.
    Other,
    /// `SCHED_BATCH`: does not preempt others when it wakes; for work that nobody waits for by the millisecond.
    Batch,
    /// `SCHED_IDLE`: runs when nobody else wants the CPU, below every nice value. Without privileges there is no way back.
    Idle,
}

impl Policy {
    /// `SCHED_OTHER`, `SCHED_BATCH` and `SCHED_IDLE` of `<linux/sched.h>`.
    const fn raw(self) -> u32 {
        match self {
            Self::Other => 0,
            Self::Batch => 3,
            Self::Idle => 5,
        }
    }

    fn from_raw(raw: u32) -> Option<Self> {
        [Self::Other, Self::Batch, Self::Idle].into_iter().find(|policy| policy.raw() == raw)
    }
}

/// Clamps the calling thread's utilization.
///
/// # Errors
///
/// [`Error::Unsupported`] on other systems, on kernels before 5.3, and on those without `CONFIG_UCLAMP_TASK`; [`Error::Os`] if a
/// sandbox forbids the call.
pub fn set_clamp(clamp: UtilizationClamp) -> Result<(), Error> {
    set_clamp_with(&Kernel, clamp)
}

/// Takes the calling thread's clamp back, so that the defaults of the system apply again. Linux 5.11.
///
/// # Errors
///
/// Those of [`set_clamp`]; [`Error::Os`] on kernels from 5.3 to 5.10, where [`UtilizationClamp::NONE`] comes nearest.
pub fn reset_clamp() -> Result<(), Error> {
    clamp_with(&Kernel, RESET, RESET)
}

/// The calling thread's own clamp; what its control group allows may be less.
///
/// # Errors
///
/// Those of [`set_clamp`]. A clamp to 0 and 0 reads as [`Error::Unsupported`], as it is what kernels without clamps answer.
pub fn clamp() -> Result<UtilizationClamp, Error> {
    read_clamp(&Kernel)
}

/// Puts the calling thread under a policy. Its nice value stays as it is.
///
/// # Errors
///
/// [`Error::Unsupported`] on other systems; [`Error::OptedOut`] if somebody has put the thread under a policy of real time or
/// another one that is not here, which this would take from it; [`Error::Os`] with `EPERM` when an unprivileged thread asks to
/// leave [`Policy::Idle`], or a sandbox forbids the call.
pub fn set_policy(policy: Policy) -> Result<(), Error> {
    set_policy_with(&Kernel, policy)
}

/// The calling thread's policy; `None` if it has one that is not here, as threads of real time have.
///
/// # Errors
///
/// [`Error::Unsupported`] on other systems; [`Error::Os`] if a sandbox forbids the call.
pub fn policy() -> Result<Option<Policy>, Error> {
    policy_with(&Kernel)
}

/// `struct sched_attr` of `<linux/sched/types.h>` as of Linux 5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

impl Attributes {
    pub(crate) const SIZE: u32 = size_of::<Self>() as u32;
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            size: Self::SIZE,
            policy: 0,
            flags: 0,
            nice: 0,
            priority: 0,
            runtime: 0,
            deadline: 0,
            period: 0,
            util_min: 0,
            util_max: 0,
        }
    }
}

const RESET_ON_FORK: u64 = 0x01;
const KEEP_POLICY: u64 = 0x08;
const KEEP_PARAMS: u64 = 0x10;
const UTIL_CLAMP: u64 = 0x20 | 0x40;

/// In place of a clamp: forget what was asked for.
const RESET: u32 = u32::MAX;

/// The two calls, for the calling thread.
trait AttributeCalls {
    fn get(&self) -> Result<Attributes, Error>;
    fn set(&self, attributes: &Attributes) -> Result<(), Error>;
}

struct Kernel;

impl AttributeCalls for Kernel {
    fn get(&self) -> Result<Attributes, Error> {
        sys::get_attributes()
    }

    fn set(&self, attributes: &Attributes) -> Result<(), Error> {
        sys::set_attributes(attributes)
    }
}

/// What an error number of the two calls means. `E2BIG` comes from kernels whose structure ends before the clamps, and
/// `EOPNOTSUPP` from those that are built without them.
#[cfg(any(test, target_os = "linux", target_os = "android"))]
pub(crate) fn error(errno: i32) -> Error {
    const E2BIG: i32 = 7;
    // Of every architecture but MIPS, SPARC, Alpha and PA-RISC, where they come out as `Os`.
    const ENOSYS: i32 = 38;
    const EOPNOTSUPP: i32 = 95;
    match errno {
        E2BIG | ENOSYS | EOPNOTSUPP => Error::Unsupported,
        code => Error::Os(code),
    }
}

fn set_clamp_with(calls: &impl AttributeCalls, clamp: UtilizationClamp) -> Result<(), Error> {
    const EINVAL: i32 = 22;
    match clamp_with(calls, clamp.min, clamp.max) {
        // Kernels before 5.3 answer `E2BIG` because of what stands behind the end of their structure. Zeros they pass over, and
        // then do not know the flags. Later ones know the flags, but some of them want a real-time thread's priority as well.
        Err(Error::Os(EINVAL)) if read_clamp(calls) == Err(Error::Unsupported) => {
            Err(Error::Unsupported)
        }
        result => result,
    }
}

fn clamp_with(calls: &impl AttributeCalls, util_min: u32, util_max: u32) -> Result<(), Error> {
    let flags = KEEP_POLICY | KEEP_PARAMS | UTIL_CLAMP;
    calls.set(&Attributes { flags, util_min, util_max, ..Attributes::default() })
}

fn read_clamp(calls: &impl AttributeCalls) -> Result<UtilizationClamp, Error> {
    let Attributes { util_min, util_max, .. } = calls.get()?;
    let clamp = UtilizationClamp::new(util_min, util_max).filter(|clamp| clamp.max > 0);
    clamp.ok_or(Error::Unsupported)
}

fn policy_with(calls: &impl AttributeCalls) -> Result<Option<Policy>, Error> {
    calls.get().map(|found| Policy::from_raw(found.policy))
}

fn set_policy_with(calls: &impl AttributeCalls, policy: Policy) -> Result<(), Error> {
    let found = calls.get()?;
    Policy::from_raw(found.policy).ok_or(Error::OptedOut)?;
    let flags = found.flags & RESET_ON_FORK;
    calls.set(&Attributes {
        policy: policy.raw(),
        flags,
        nice: found.nice,
        ..Attributes::default()
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A kernel that keeps what it is told, as far as the flags say.
    struct Played {
        thread: Cell<Attributes>,
        answer: Result<(), Error>,
    }

    impl Played {
        fn new(thread: Attributes) -> Self {
            Self { thread: Cell::new(thread), answer: Ok(()) }
        }
    }

    impl AttributeCalls for Played {
        fn get(&self) -> Result<Attributes, Error> {
            Ok(self.thread.get())
        }

        fn set(&self, asked: &Attributes) -> Result<(), Error> {
            self.answer?;
            let mut thread = self.thread.get();
            if asked.flags & KEEP_POLICY == 0 {
                thread.policy = asked.policy;
                thread.flags = asked.flags & RESET_ON_FORK;
            }
            if asked.flags & KEEP_PARAMS == 0 {
                (thread.nice, thread.priority) = (asked.nice, asked.priority);
            }
            if asked.flags & UTIL_CLAMP == UTIL_CLAMP {
                let or = |asked: u32, default| if asked == RESET { default } else { asked };
                thread.util_min = or(asked.util_min, 0);
                thread.util_max = or(asked.util_max, 1024);
            }
            self.thread.set(thread);
            Ok(())
        }
    }

    /// `SCHED_BATCH` at nice 3, reset on fork, no clamp.
    fn batch_thread() -> Attributes {
        let flags = RESET_ON_FORK;
        Attributes { policy: 3, flags, nice: 3, util_max: 1024, ..Attributes::default() }
    }

    #[test]
    fn the_structure_is_that_of_the_kernel() {
        assert_eq!(Attributes::SIZE, 56);
        assert_eq!(std::mem::offset_of!(Attributes, nice), 16);
        assert_eq!(std::mem::offset_of!(Attributes, runtime), 24);
        assert_eq!(std::mem::offset_of!(Attributes, util_min), 48);
    }

    #[test]
    fn a_clamp_changes_nothing_else() {
        let thread = Played::new(batch_thread());
        assert_eq!(clamp_with(&thread, 100, 700), Ok(()));
        assert_eq!(read_clamp(&thread), Ok(UtilizationClamp { min: 100, max: 700 }));
        assert_eq!(clamp_with(&thread, RESET, RESET), Ok(()));
        assert_eq!(read_clamp(&thread), Ok(UtilizationClamp::NONE));
        assert_eq!(thread.thread.get(), batch_thread());
    }

    #[test]
    fn a_policy_changes_nothing_else() {
        let thread = Played::new(batch_thread());
        for policy in [Policy::Idle, Policy::Batch, Policy::Other] {
            assert_eq!(set_policy_with(&thread, policy), Ok(()));
            assert_eq!(thread.thread.get(), Attributes { policy: policy.raw(), ..batch_thread() });
        }
    }

    #[test]
    fn a_thread_of_real_time_keeps_its_policy() {
        for policy in [1, 2, 6, 7] {
            let real_time = Attributes { policy, priority: 5, ..Attributes::default() };
            let thread = Played::new(real_time);
            assert_eq!(policy_with(&thread), Ok(None), "policy {policy}");
            assert_eq!(set_policy_with(&thread, Policy::Other), Err(Error::OptedOut));
            assert_eq!(thread.thread.get(), real_time, "policy {policy}");
        }
    }

    #[test]
    fn a_policy_is_read_back() {
        for policy in [Policy::Other, Policy::Batch, Policy::Idle] {
            let thread = Played::new(Attributes { policy: policy.raw(), ..Attributes::default() });
            assert_eq!(policy_with(&thread), Ok(Some(policy)));
        }
    }

    /// What kernels before 5.3 say: their structure ends before the clamps, and they know none of these flags.
    struct Older;

    impl AttributeCalls for Older {
        fn get(&self) -> Result<Attributes, Error> {
            Ok(Attributes::default())
        }

        fn set(&self, asked: &Attributes) -> Result<(), Error> {
            match (asked.util_min, asked.util_max, asked.flags & !RESET_ON_FORK) {
                (0, 0, 0) => Ok(()),
                (0, 0, _) => Err(error(22)),
                _ => Err(error(7)),
            }
        }
    }

    #[test]
    fn a_kernel_before_clamps_has_none_whatever_is_asked_for() {
        for (min, max) in [(0, 0), (0, 1024), (100, 100)] {
            let clamp = UtilizationClamp { min, max };
            assert_eq!(set_clamp_with(&Older, clamp), Err(Error::Unsupported), "{clamp:?}");
        }
        assert_eq!(set_policy_with(&Older, Policy::Batch), Ok(()));
    }

    #[test]
    fn a_kernel_with_clamps_that_calls_one_invalid_is_believed() {
        let refusing = Played { answer: Err(error(22)), ..Played::new(batch_thread()) };
        let clamp = UtilizationClamp { min: 0, max: 0 };
        assert_eq!(set_clamp_with(&refusing, clamp), Err(Error::Os(22)));
    }

    #[test]
    fn a_kernel_without_clamps_is_no_clamp_of_nothing() {
        let without = Played::new(Attributes::default());
        assert_eq!(read_clamp(&without), Err(Error::Unsupported));
        let refusing = Played { answer: Err(error(95)), ..Played::new(batch_thread()) };
        assert_eq!(clamp_with(&refusing, 0, 512), Err(Error::Unsupported));
        assert_eq!(set_policy_with(&refusing, Policy::Other), Err(Error::Unsupported));
    }

    #[test]
    fn error_numbers() {
        for unknown in [7, 38, 95] {
            assert_eq!(error(unknown), Error::Unsupported);
        }
        for refused in [1, 22, 0] {
            assert_eq!(error(refused), Error::Os(refused));
        }
    }

    #[test]
    fn clamps_are_ordered_and_within_a_cpu() {
        for (min, max, is_valid) in
            [(0, 0, true), (0, 1024, true), (1024, 1024, true), (5, 4, false), (0, 1025, false)]
        {
            assert_eq!(UtilizationClamp::new(min, max).is_some(), is_valid, "{min} to {max}");
        }
        let of_classes = QosClass::ALL.map(|class| UtilizationClamp::for_class(class).min());
        assert_eq!(of_classes, [0, 0, 0, 768, 1024]);
    }
}
