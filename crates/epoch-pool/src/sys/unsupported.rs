//! No forks, or none that we are told of.
#![forbid(unsafe_code)]

pub(crate) fn watch_forks() {}
