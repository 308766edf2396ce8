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
