//! Random use of the pool for minutes on end: sizes, callers, panics, hot phases, sessions, pools built and dropped, forks,
//! threads that are moved and held up. Every dispatch is checked, row by row, and a hang ends the process with what everybody was at.
//!
//! All choices follow from the seed; when threads run does not.

mod account;
mod checks;
mod choices;
mod counts;
mod disturbances;
mod doors;
mod options;
mod oracle;
mod own;
mod perform;
mod planned;
mod soak;
mod sys;
mod watchdog;

pub use crate::options::Options;
pub use crate::soak::run;
