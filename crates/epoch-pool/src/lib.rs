#![doc = include_str!("../README.md")]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("epoch-pool needs atomic words of 64 bits, which this target does not have");

mod builder;
mod counters;
mod dispatch;
mod env;
mod error;
mod gate;
mod histogram;
mod home;
mod hot;
mod job;
mod places;
mod pool;
mod presence;
mod session;
mod split;
mod statistics;
mod sync;
mod sys;
mod thrift;
mod timing;
mod try_run;
mod unwind;
mod wait;
mod work;
mod worker;

#[cfg(doctest)]
mod compile_fail;
#[cfg(test)]
mod tests;

pub use crate::builder::{Builder, FloatEnvironment};
pub use crate::env::{IgnoredVariable, Settings};
pub use crate::error::{Busy, Error};
pub use crate::histogram::Histogram;
pub use crate::hot::Hot;
pub use crate::pool::{Part, Pool, dispatch_count};
pub use crate::session::Session;
pub use crate::statistics::{InlineRuns, Statistics, Timing};
