//! What the platform does, for the calling thread. Each module defines `set_current(QosClass) -> Result<(), Error>`,
//! `current() -> Current`, `main_class() -> Current`, `is_restorable(Current) -> bool` and
//! `restore(Current) -> Result<(), Error>`.
//!
//! Beside them is what Linux and Android have in place of classes: `get_attributes() -> Result<Attributes, Error>` and
//! `set_attributes(&Attributes) -> Result<(), Error>`.

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(target_vendor = "apple")]
use apple as imp;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as imp;

#[cfg(not(any(target_vendor = "apple", windows)))]
mod unsupported;
#[cfg(not(any(target_vendor = "apple", windows)))]
use unsupported as imp;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as attributes;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod no_attributes;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use no_attributes as attributes;

pub(crate) use self::attributes::{get_attributes, set_attributes};
pub(crate) use self::imp::{current, is_restorable, main_class, restore, set_current};
