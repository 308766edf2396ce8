//! Why a thread could not be put into a class.
#![forbid(unsafe_code)]

use std::fmt;

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
    /// This platform has no quality-of-service classes. Nothing was changed.
    Unsupported,
    /// The thread has left the classes for good: `pthread_setschedparam` was called on it (`EPERM`).
    OptedOut,
    /// The call failed with this error number.
    Os(i32),
}

/// `EPERM` of Apple's `<sys/errno.h>`, spelled out so that the mapping is the same wherever it is tested.
#[cfg(any(test, target_vendor = "apple"))]
const EPERM: i32 = 1;

impl Error {
    /// What a return value of `pthread_set_qos_class_self_np` says. The function returns the error number and
    /// leaves `errno` alone.
    #[cfg(any(test, target_vendor = "apple"))]
    pub(crate) const fn from_return_value(value: i32) -> Result<(), Self> {
        match value {
            0 => Ok(()),
            EPERM => Err(Self::OptedOut),
            code => Err(Self::Os(code)),
        }
    }

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
                "the thread left the quality-of-service classes through pthread_setschedparam",
            ),
            Self::Os(code) => {
                let source = std::io::Error::from_raw_os_error(*code);
                write!(formatter, "the quality-of-service class was not set: {source}")
            }
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_values_are_errors_by_number() {
        const CASES: &[(i32, Result<(), Error>)] = &[
            (0, Ok(())),
            (1, Err(Error::OptedOut)),
            (22, Err(Error::Os(22))),
            (-1, Err(Error::Os(-1))),
            (i32::MAX, Err(Error::Os(i32::MAX))),
        ];
        for (value, expected) in CASES {
            assert_eq!(Error::from_return_value(*value), *expected, "return value {value}");
        }
    }

    #[test]
    fn every_error_says_something() {
        for error in [Error::Unsupported, Error::OptedOut, Error::Os(22)] {
            assert!(!error.to_string().is_empty());
            assert_eq!(error.is_unsupported(), error == Error::Unsupported);
        }
    }
}
