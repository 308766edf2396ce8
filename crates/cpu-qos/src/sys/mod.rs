//! What the platform does. Each module defines `set_current(QosClass) -> Result<(), Error>` and
//! `current() -> Current`, and nothing else.

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(target_vendor = "apple")]
use apple as imp;

#[cfg(not(target_vendor = "apple"))]
mod unsupported;
#[cfg(not(target_vendor = "apple"))]
use unsupported as imp;

#[cfg(any(test, target_vendor = "apple"))]
mod calls;

pub(crate) use self::imp::{current, set_current};
