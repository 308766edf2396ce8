//! Platforms without quality-of-service classes.
#![forbid(unsafe_code)]

use crate::class::{Current, QosClass};
use crate::error::Error;

pub(crate) fn set_current(_class: QosClass) -> Result<(), Error> {
    Err(Error::Unsupported)
}

pub(crate) fn current() -> Current {
    Current::Unsupported
}

pub(crate) fn main_class() -> Current {
    Current::Unsupported
}

pub(crate) const fn is_restorable(_former: Current) -> bool {
    false
}

pub(crate) fn restore(former: Current) -> Result<(), Error> {
    Err(Error::NotRestorable(former))
}
