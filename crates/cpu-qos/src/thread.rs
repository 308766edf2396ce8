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
/// assert_eq!(result.is_ok(), cfg!(target_vendor = "apple"));
/// ```
///
/// # Errors
///
/// [`Error::Unsupported`] off Apple platforms, where nothing is changed; [`Error::OptedOut`] if the thread has left
/// the classes through `pthread_setschedparam`; [`Error::Os`] with any other number that
/// `pthread_set_qos_class_self_np` returned.
pub fn set_current(class: QosClass) -> Result<(), Error> {
    sys::set_current(class)
}

/// The class that the calling thread asked for.
///
/// Never fails: where there are no classes it is [`Current::Unsupported`].
///
/// ```
/// use cpu_qos::{Current, current};
///
/// assert_eq!(current() == Current::Unsupported, !cfg!(target_vendor = "apple"));
/// ```
pub fn current() -> Current {
    sys::current()
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
    current().name()
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
/// Those of [`set_current`]. Off Apple platforms this does nothing and says so with [`Error::Unsupported`], so that
/// "set" and "there is nothing to set here" stay two answers.
pub fn set_user_interactive_qos() -> Result<(), Error> {
    set_current(QosClass::UserInteractive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(target_vendor = "apple"))]
    fn elsewhere_nothing_is_set_and_nothing_is_claimed() {
        for class in QosClass::ALL {
            assert_eq!(set_current(class), Err(Error::Unsupported));
        }
        assert_eq!(set_user_interactive_qos(), Err(Error::Unsupported));
        assert_eq!(current(), Current::Unsupported);
        assert_eq!(current_qos_name(), None);
    }

    #[test]
    #[cfg(target_vendor = "apple")]
    fn a_class_that_was_set_is_read_back() {
        std::thread::spawn(|| {
            for class in QosClass::ALL {
                assert_eq!(set_current(class), Ok(()));
                assert_eq!(current(), Current::Class { class, relative_priority: 0 });
                assert_eq!(current_qos_name(), Some(class.name()));
            }
            assert_eq!(set_user_interactive_qos(), Ok(()));
            assert_eq!(current_qos_name(), Some("user-interactive"));
        })
        .join()
        .unwrap();
    }
}
