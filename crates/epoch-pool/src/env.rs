//! The two variables that size a pool.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io::Write;

use crate::pool::Pool;
use crate::sync::available_parallelism;

const THREADS: &str = "CMF_THREADS";
const SPIN: &str = "CMF_POOL_SPIN";

/// Workers of a pool that nobody has sized, at most.
const DEFAULT_WORKERS: usize = 8;

/// What the environment says of a pool; [`Pool::from_env`] builds it.
///
/// ```
/// let settings = epoch_pool::Settings::from_env();
/// for variable in &settings.ignored {
///     println!("{variable}"); // "CMF_THREADS is ignored: \"many\" is not a number that …"
/// }
/// let pool = epoch_pool::Pool::with_spin(settings.n_workers, settings.spin_iterations)?;
/// assert_eq!(pool.n_workers(), settings.n_workers);
/// # Ok::<(), epoch_pool::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Threads to spawn, the caller not counted; 0 is serial work.
    pub n_workers: usize,
    /// Turns, of about 40 ns, before a waiter parks.
    pub spin_iterations: u32,
    /// Variables with junk in them, which count as unset.
    pub ignored: Vec<IgnoredVariable>,
}

/// A variable whose value is no number in its range; it counts as unset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IgnoredVariable {
    /// The name of the variable.
    pub name: &'static str,
    /// Its value.
    pub value: OsString,
}

impl fmt::Display for IgnoredVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is ignored: {:?} is not a number that it could hold", self.name, self.value)
    }
}

impl Settings {
    /// Reads `CMF_THREADS` and `CMF_POOL_SPIN`, as [`Pool::from_env`] describes them.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var_os(name), available_parallelism())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>, n_cpus: usize) -> Self {
        let mut ignored = Vec::new();
        let max_workers = Pool::MAX_WORKERS as u64;
        let threads: Option<usize> = parse(THREADS, max_workers, &variable, &mut ignored);
        let spin: Option<u32> = parse(SPIN, u64::from(u32::MAX), &variable, &mut ignored);
        let n_workers = match threads {
            Some(0 | 1) => 0,
            Some(n) => n,
            None => n_cpus.saturating_sub(1).min(DEFAULT_WORKERS),
        };
        Self { n_workers, spin_iterations: spin.unwrap_or(Pool::DEFAULT_SPIN), ignored }
    }

    /// Says once per process and variable on standard error what is ignored.
    pub(crate) fn report_ignored(&self) {
        static REPORTED: std::sync::Mutex<BTreeSet<&str>> = std::sync::Mutex::new(BTreeSet::new());
        let mut reported = REPORTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for variable in &self.ignored {
            if reported.insert(variable.name) {
                // Where nobody listens there is nothing to report.
                _ = writeln!(std::io::stderr(), "epoch-pool: {variable}");
            }
        }
    }
}

/// A number that fits; blanks around it are allowed.
fn parse<N: TryFrom<u64>>(
    name: &'static str,
    max: u64,
    variable: impl Fn(&str) -> Option<OsString>,
    ignored: &mut Vec<IgnoredVariable>,
) -> Option<N> {
    let value = variable(name).filter(|value| !value.is_empty())?;
    let number = value.to_str().and_then(|text| text.trim().parse::<u64>().ok());
    let number = number.filter(|number| *number <= max).and_then(|number| N::try_from(number).ok());
    if number.is_none() {
        ignored.push(IgnoredVariable { name, value });
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `CMF_THREADS`, `CMF_POOL_SPIN`, CPUs; workers, spin iterations, ignored variables.
    type Case =
        (Option<&'static str>, Option<&'static str>, usize, usize, u32, &'static [&'static str]);

    const CASES: &[Case] = &[
        (None, None, 1, 0, 4000, &[]),
        (None, None, 2, 1, 4000, &[]),
        (None, None, 9, 8, 4000, &[]),
        (None, None, 64, 8, 4000, &[]),
        (Some("0"), None, 64, 0, 4000, &[]),
        (Some("1"), None, 64, 0, 4000, &[]),
        (Some("2"), Some("0"), 64, 2, 0, &[]),
        (Some(" 12\n"), Some("200000"), 2, 12, 200_000, &[]),
        (Some("many"), Some("-1"), 4, 3, 4000, &[THREADS, SPIN]),
        (Some(""), Some(""), 4, 3, 4000, &[]),
        (Some(" "), Some("4e3"), 4, 3, 4000, &[THREADS, SPIN]),
        (Some("1048575"), Some("4294967295"), 4, 1_048_575, u32::MAX, &[]),
        (Some("1048576"), None, 4, 3, 4000, &[THREADS]),
        (Some("-1"), Some("4294967296"), 4, 3, 4000, &[THREADS, SPIN]),
        (Some("99999999999999999999"), None, 4, 3, 4000, &[THREADS]),
    ];

    #[test]
    fn variables_mean_what_is_documented() {
        for &(threads, spin, n_cpus, n_workers, spin_iterations, ignored) in CASES {
            let variable = |name: &str| {
                let value = if name == THREADS { threads } else { spin };
                value.map(OsString::from)
            };
            let settings = Settings::from_variables(variable, n_cpus);
            let names: Vec<&str> = settings.ignored.iter().map(|variable| variable.name).collect();
            assert_eq!(
                (settings.n_workers, settings.spin_iterations, names.as_slice()),
                (n_workers, spin_iterations, ignored),
                "{threads:?} {spin:?} {n_cpus}"
            );
        }
    }
}
