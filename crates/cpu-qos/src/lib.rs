#![doc = include_str!("../README.md")]

mod apple;
mod class;
mod error;
mod guard;
pub mod linux;
mod sys;
mod thread;
mod windows;

pub use crate::class::{Current, QosClass};
pub use crate::error::Error;
pub use crate::guard::QosGuard;
pub use crate::thread::{
    at_least, current, current_qos_name, main_class, set_current, set_user_interactive_qos,
};
