//! The environment variables that set the number of threads.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// The variables that set the number of threads, in the order in which they are asked.
///
/// ```
/// assert_eq!(cpu_topology::THREAD_VARIABLES, ["FERROX_CPU_THREADS", "RAYON_NUM_THREADS"]);
/// ```
pub const THREAD_VARIABLES: [&str; 2] = ["FERROX_CPU_THREADS", "RAYON_NUM_THREADS"];

/// A number of threads, where it comes from, and which variables were passed over.
///
/// ```
/// use cpu_topology::{ThreadSource, resolve_cpu_threads_with};
///
/// let variables = |name: &str| (name == "RAYON_NUM_THREADS").then(|| "6".into());
/// let count = resolve_cpu_threads_with(variables, || 16);
/// assert_eq!(count.threads, 6);
/// assert_eq!(count.source, ThreadSource::Variable("RAYON_NUM_THREADS"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadCount {
    /// The number; at least 1.
    pub threads: usize,
    /// Where it comes from.
    pub source: ThreadSource,
    /// Variables that are set to something that is no number above 0, with their values, in the order asked.
    pub ignored: Vec<(&'static str, String)>,
}

/// Where a number of threads comes from.
///
/// ```
/// use cpu_topology::{ThreadSource, resolve_cpu_threads_with};
///
/// assert_eq!(resolve_cpu_threads_with(|_| None, || 4).source, ThreadSource::PerfCores);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadSource {
    /// This environment variable.
    Variable(&'static str),
    /// The performance cores of the machine, within the quota.
    PerfCores,
}

impl fmt::Display for ThreadSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => formatter.pad(name),
            Self::PerfCores => formatter.pad("performance cores"),
        }
    }
}

/// The number of threads as [`resolve_cpu_threads`](crate::resolve_cpu_threads) finds it, from any environment.
///
/// `lookup` gives the value of a variable. The first variable whose value, white space around it aside, is a decimal
/// number above 0 decides; `default` is asked only if none does, and a 0 from it is taken as 1. Variables with anything
/// else in them are listed in [`ThreadCount::ignored`], except empty ones, which count as not set.
///
/// ```
/// use cpu_topology::resolve_cpu_threads_with;
///
/// let variables = |name: &str| (name == "FERROX_CPU_THREADS").then(|| "abc".into());
/// let count = resolve_cpu_threads_with(variables, || 16);
/// assert_eq!(count.threads, 16);
/// assert_eq!(count.ignored, [("FERROX_CPU_THREADS", "abc".to_owned())]);
/// ```
pub fn resolve_cpu_threads_with(
    lookup: impl Fn(&str) -> Option<OsString>,
    default: impl FnOnce() -> usize,
) -> ThreadCount {
    let mut ignored = Vec::new();
    for name in THREAD_VARIABLES {
        let Some(value) = lookup(name) else { continue };
        let value = value.to_string_lossy();
        match parse_count(&value) {
            Some(threads) => {
                return ThreadCount { threads, source: ThreadSource::Variable(name), ignored };
            }
            None if value.trim().is_empty() => {}
            None => ignored.push((name, value.into_owned())),
        }
    }
    ThreadCount { threads: default().max(1), source: ThreadSource::PerfCores, ignored }
}

/// Tells on standard error about variables that were passed over; about each of them once per process.
pub(crate) fn report_ignored(count: &ThreadCount) {
    static REPORTED: [AtomicBool; THREAD_VARIABLES.len()] =
        [const { AtomicBool::new(false) }; THREAD_VARIABLES.len()];
    for (name, value) in &count.ignored {
        let index = THREAD_VARIABLES.iter().position(|variable| variable == name);
        // A variable of rayon's that says 0 asks for the default, which is what it gets.
        let means_default =
            *name == "RAYON_NUM_THREADS" && value.trim().bytes().all(|byte| byte == b'0');
        let first = index.is_some_and(|index| !REPORTED[index].swap(true, Ordering::Relaxed));
        if first && !means_default {
            // Where nobody listens there is nothing to report.
            _ = writeln!(
                std::io::stderr(),
                "cpu-topology: {name} is ignored: {value:?} is not a number of threads"
            );
        }
    }
}

/// A decimal number above 0.
fn parse_count(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: ThreadSource = ThreadSource::Variable("FERROX_CPU_THREADS");
    const RAYON: ThreadSource = ThreadSource::Variable("RAYON_NUM_THREADS");
    const CORES: ThreadSource = ThreadSource::PerfCores;

    #[test]
    fn the_first_variable_with_a_number_above_zero_decides() {
        /// Value of ours, value of rayon's, threads, source, how many are ignored.
        type Case = (Option<&'static str>, Option<&'static str>, usize, ThreadSource, usize);
        const CASES: &[Case] = &[
            (None, None, 16, CORES, 0),
            (Some("3"), None, 3, OURS, 0),
            (Some("3"), Some("5"), 3, OURS, 0),
            (Some(" 3\n"), None, 3, OURS, 0),
            (Some("003"), None, 3, OURS, 0),
            (None, Some("5"), 5, RAYON, 0),
            (Some("abc"), Some("5"), 5, RAYON, 1),
            (Some("0"), Some("5"), 5, RAYON, 1),
            (Some(""), Some("5"), 5, RAYON, 0),
            (Some("-1"), Some("4.5"), 16, CORES, 2),
            (Some("+3"), Some("5"), 3, OURS, 0),
            (Some("++3"), Some("0x4"), 16, CORES, 2),
            (Some("99999999999999999999999"), None, 16, CORES, 1),
            (Some("1000000"), None, 1_000_000, OURS, 0),
            (None, Some("0"), 16, CORES, 1),
            (Some("4,2"), None, 16, CORES, 1),
        ];
        for (ours, rayon, threads, source, ignored) in CASES {
            let lookup = |name: &str| {
                let value = if name == "FERROX_CPU_THREADS" { ours } else { rayon };
                value.map(OsString::from)
            };
            let found = resolve_cpu_threads_with(lookup, || 16);
            assert_eq!((found.threads, found.source), (*threads, *source), "{ours:?}, {rayon:?}");
            assert_eq!(found.ignored.len(), *ignored, "{ours:?}, {rayon:?}");
        }
    }

    #[test]
    fn the_default_is_asked_only_if_needed_and_is_never_zero() {
        assert_eq!(resolve_cpu_threads_with(|_| Some("2".into()), || unreachable!()).threads, 2);
        assert_eq!(resolve_cpu_threads_with(|_| None, || 0).threads, 1);
    }

    #[test]
    #[cfg(unix)]
    fn bytes_that_are_no_text_are_ignored() {
        use std::os::unix::ffi::OsStringExt;
        let found = resolve_cpu_threads_with(|_| Some(OsString::from_vec(vec![0xFF, b'3'])), || 7);
        assert_eq!((found.threads, found.ignored.len()), (7, 2));
    }
}
