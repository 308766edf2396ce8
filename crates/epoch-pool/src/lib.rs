#![doc = include_str!("../README.md")]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("epoch-pool needs atomic words of 64 bits, which this target does not have");

mod builder;
mod dispatch;
mod env;
mod error;
mod home;
mod job;
mod pool;
mod split;
mod sync;
mod sys;
mod unwind;
mod wait;
mod worker;

#[cfg(doctest)]
mod compile_fail;
#[cfg(test)]
mod tests;

pub use crate::builder::Builder;
pub use crate::env::{IgnoredVariable, Settings};
pub use crate::error::Error;
pub use crate::pool::{Part, Pool, dispatch_count};
