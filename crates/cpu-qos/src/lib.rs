#![doc = include_str!("../README.md")]

mod class;
mod error;
mod sys;
mod thread;

pub use crate::class::{Current, QosClass};
pub use crate::error::Error;
pub use crate::thread::{current, current_qos_name, set_current, set_user_interactive_qos};
