//! Setting and reading the class of the calling thread, over whatever the platform answers.
#![forbid(unsafe_code)]

use crate::class::{Current, QosClass};
use crate::error::Error;
use crate::sys;

/// Puts the calling thread into `class`, at the top of it (relative priority 0).
///
/// Only the calling thread can be changed, and threads it starts do not inherit the class: a pool calls this at the
/// start of each of its workers.
///
/// ```
/// use cpu_qos::{QosClass, set_current};
///
/// let result = set_current(QosClass::UserInitiated);
/// assert_eq!(result.is_ok(), cfg!(any(target_vendor = "apple", windows)));
/// ```
///
/// On Windows the two user classes are HighQoS, background is EcoQoS, and the two in between leave it to the system. EcoQoS
/// means efficient cores from Windows 11 on.
///
/// # Errors
///
/// [`Error::Unsupported`] on other platforms, and on Windows before 10 version 1709: nothing is changed; [`Error::OptedOut`] if
/// the thread has left the classes through `pthread_setschedparam`; [`Error::Os`] with any other number that
/// `pthread_set_qos_class_self_np` or `SetThreadInformation` failed with.
pub fn set_current(class: QosClass) -> Result<(), Error> {
    sys::set_current(class)
}

/// Puts the calling thread into `class`, unless it is in that class or a higher one: never lowers it.
///
/// A thread without a class ([`Current::Unspecified`]) counts as one in the default class, which is how systems treat it. In a
/// pool this is what a worker calls, so that it does not undo what somebody has set on purpose.
///
/// ```
/// use cpu_qos::{QosClass, at_least, current, set_current};
///
/// std::thread::spawn(|| {
///     _ = set_current(QosClass::UserInteractive);
///     let before = current();
///     _ = at_least(QosClass::UserInitiated);
///     assert_eq!(current(), before);
/// })
/// .join()
/// .unwrap();
/// ```
///
/// # Errors
///
/// Those of [`set_current`].
pub fn at_least(class: QosClass) -> Result<(), Error> {
    if is_below(current(), class) { set_current(class) } else { Ok(()) }
}

/// Whether a thread found so has to be raised to be in `class`.
pub(crate) fn is_below(found: Current, class: QosClass) -> bool {
    match found {
        Current::Class { class: found, .. } => found < class,
        Current::Other(raw) => raw < class.raw(),
        Current::Unspecified => class > QosClass::Default,
        Current::Unsupported => true,
    }
}

/// The class that the calling thread asked for.
///
/// Never fails: where there are no classes it is [`Current::Unsupported`]. Windows has fewer levels than there are classes: a
/// class set by this crate is remembered for its thread, and what others have set reads as user-initiated (HighQoS), background
/// (EcoQoS) or unspecified (the system decides).
///
/// ```
/// use cpu_qos::{Current, QosClass, current, set_current};
///
/// std::thread::spawn(|| match set_current(QosClass::Utility) {
///     Ok(()) => assert_eq!(current().class(), Some(QosClass::Utility)),
///     Err(_) => assert_eq!(current(), Current::Unsupported),
/// })
/// .join()
/// .unwrap();
/// ```
pub fn current() -> Current {
    sys::current()
}

/// The class of the main thread on Apple platforms, with relative priority 0; [`Current::Unsupported`] elsewhere.
///
/// It tells what kind of process this is: user-interactive in an application, and background in a daemon that `launchd` holds
/// down, where workers may ask for more and will not get it.
///
/// ```
/// use cpu_qos::{QosClass, main_class};
///
/// if main_class().class() == Some(QosClass::Background) {
///     eprintln!("this process was started for the background");
/// }
/// ```
pub fn main_class() -> Current {
    sys::main_class()
}

/// The name of the calling thread's class on Apple platforms, `None` elsewhere.
///
/// One of `user-interactive`, `user-initiated`, `default`, `utility`, `background` and `unspecified`; `other` for a
/// number that the public headers do not name.
///
/// ```
/// assert_eq!(cpu_qos::current_qos_name().is_some(), cfg!(target_vendor = "apple"));
/// ```
pub fn current_qos_name() -> Option<&'static str> {
    if cfg!(target_vendor = "apple") { current().name() } else { None }
}

/// Puts the calling thread into the class that a worker needs whose caller waits for it: user-interactive.
///
/// A fork-join pool moves at the pace of its slowest worker, so all of them belong into one class that is not below
/// the caller's; a lower one lets the scheduler move single workers to efficiency cores.
///
/// ```
/// use cpu_qos::{Error, set_user_interactive_qos};
///
/// std::thread::spawn(|| {
///     // In a worker, before its first job.
///     match set_user_interactive_qos() {
///         Ok(()) | Err(Error::Unsupported) => {}
///         Err(error) => eprintln!("worker runs in its old class: {error}"),
///     }
/// })
/// .join()
/// .unwrap();
/// ```
///
/// # Errors
///
/// Those of [`set_current`]. Off Apple platforms this does nothing, also where [`set_current`] would do something, and says so
/// with [`Error::Unsupported`]: "set" and "there is nothing to set here" stay two answers.
pub fn set_user_interactive_qos() -> Result<(), Error> {
    if cfg!(target_vendor = "apple") {
        set_current(QosClass::UserInteractive)
    } else {
        Err(Error::Unsupported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_below_is_raised() {
        use QosClass::{Background, Default, UserInitiated, UserInteractive, Utility};
        let class = |class| Current::Class { class, relative_priority: -15 };
        for (place, found) in QosClass::ALL.into_iter().enumerate() {
            for (asked_place, asked) in QosClass::ALL.into_iter().enumerate() {
                assert_eq!(is_below(class(found), asked), place < asked_place, "{found} {asked}");
            }
        }
        let raises = |found| QosClass::ALL.map(|asked| is_below(found, asked));
        assert_eq!(QosClass::ALL, [Background, Utility, Default, UserInitiated, UserInteractive]);
        assert_eq!(raises(Current::Unspecified), [false, false, false, true, true]);
        assert_eq!(raises(Current::Other(0x05)), [true; 5]);
        assert_eq!(raises(Current::Other(0x17)), [false, false, false, true, true]);
        assert_eq!(raises(Current::Unsupported), [true; 5]);
    }
}
