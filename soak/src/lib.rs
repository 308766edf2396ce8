//! Random use of the pool for minutes on end: sizes, callers, panics, pools built and dropped, forks, threads that are moved and
//! held up. Every dispatch is checked, row by row, and a hang ends the process with what everybody was at.
//!
//! All choices follow from the seed; when threads run does not.

mod choices;
mod counts;
mod disturbances;
mod options;
mod oracle;
mod perform;
mod planned;
mod soak;
mod sys;
mod watchdog;

pub use crate::options::Options;
pub use crate::soak::run;
