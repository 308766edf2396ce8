//! Why a thread could not be put into a class.
#![forbid(unsafe_code)]

use std::fmt;

use crate::class::Current;

/// Why a thread could not be put into a class.
///
/// ```
/// use cpu_qos::{Error, QosClass, set_current};
///
/// match set_current(QosClass::UserInitiated) {
///     Ok(()) => println!("the scheduler knows what we are doing"),
///     Err(Error::Unsupported) => println!("this platform has no such classes; nothing was changed"),
///     Err(error) => eprintln!("still in the old class: {error}"),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// This platform has nothing of the kind, or its version is too old. Nothing was changed.
    Unsupported,
    /// The thread has left the classes for good: `pthread_setschedparam` was called on it (`EPERM` on Apple platforms). For
    /// [`linux::set_policy`](crate::linux::set_policy): it is scheduled in real time, or in another way that has nothing to do
    /// with classes.
    OptedOut,
    /// The former state cannot be asked for, only found: "unspecified" on Apple platforms, a class without a public name,
    /// or one that could not be read. The thread stays in its present class.
    NotRestorable(Current),
    /// The call failed with this error number: `errno`, or Windows' `GetLastError`.
    Os(i32),
}

impl Error {
    /// Whether the platform has no classes at all, which most callers want to pass over in silence.
    pub const fn is_unsupported(self) -> bool {
        matches!(self, Self::Unsupported)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => {
                formatter.write_str("this platform has no quality-of-service classes")
            }
            Self::OptedOut => formatter.write_str(
                "the thread has a scheduling policy of its own, and left the quality-of-service classes",
            ),
            Self::NotRestorable(former) => {
                let name = former.name().unwrap_or("unknown");
                write!(formatter, "the thread cannot be put back: its former class was {name}")
            }
            Self::Os(code) => {
                let source = std::io::Error::from_raw_os_error(*code);
                write!(formatter, "the quality of service was not set: {source}")
            }
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_something() {
        for error in [
            Error::Unsupported,
            Error::OptedOut,
            Error::NotRestorable(Current::Unspecified),
            Error::Os(22),
        ] {
            assert!(!error.to_string().is_empty());
            assert_eq!(error.is_unsupported(), error == Error::Unsupported);
        }
    }
}
