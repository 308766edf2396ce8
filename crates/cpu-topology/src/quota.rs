//! CPU quota: how much CPU time the process gets, as an exact ratio.
#![forbid(unsafe_code)]

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use crate::cpu_list::{parse_decimal, trim};
use crate::error::ParseError;

/// The kernel's default period, used where a file gives none.
const DEFAULT_PERIOD_US: u64 = 100_000;

/// A limit on CPU time: `quota_us` microseconds of it in every `period_us` microseconds.
///
/// ```
/// use cpu_topology::Quota;
///
/// let quota = Quota::new(765_000, 100_000).unwrap();
/// assert_eq!(quota.cpus(), 7); // one thread more would have the whole pool throttled
/// assert!((quota.ratio() - 7.65).abs() < 1e-9);
/// assert_eq!(Quota::new(25_000, 100_000).unwrap().cpus(), 1); // never none
/// ```
///
/// Two quotas are equal if quota and period are; where they were read does not count. For equal ratios of other periods see
/// [`cmp_ratio`](Self::cmp_ratio).
///
/// ```
/// # use cpu_topology::Quota;
/// let quota = Quota::new(200_000, 100_000).unwrap();
/// assert_eq!(quota.clone().with_path("/sys/fs/cgroup/cpu.max"), quota);
/// assert_ne!(Quota::new(2, 1), Some(quota));
/// ```
#[derive(Clone, Debug)]
pub struct Quota {
    quota_us: u64,
    period_us: u64,
    path: Option<PathBuf>,
}

impl PartialEq for Quota {
    fn eq(&self, other: &Self) -> bool {
        (self.quota_us, self.period_us) == (other.quota_us, other.period_us)
    }
}

impl Eq for Quota {}

impl Quota {
    /// A quota of `quota_us` per `period_us`, or `None` for a period of zero.
    pub const fn new(quota_us: u64, period_us: u64) -> Option<Self> {
        if period_us == 0 { None } else { Some(Self { quota_us, period_us, path: None }) }
    }

    /// The same with the file that it was read from.
    #[must_use]
    pub fn with_path(self, path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    /// CPU time in each period, in microseconds.
    pub const fn quota_us(&self) -> u64 {
        self.quota_us
    }

    /// Length of the period, in microseconds; never zero.
    pub const fn period_us(&self) -> u64 {
        self.period_us
    }

    /// The file it was read from, if it was read from one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// How many threads may run at once without being throttled: the ratio rounded down, at least 1.
    pub fn cpus(&self) -> usize {
        usize::try_from(self.quota_us / self.period_us).unwrap_or(usize::MAX).max(1)
    }

    /// The ratio, for people to read; counts come from [`cpus`](Self::cpus).
    pub fn ratio(&self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }

    /// Compares the ratios, exactly.
    pub fn cmp_ratio(&self, other: &Self) -> Ordering {
        let ours = u128::from(self.quota_us) * u128::from(other.period_us);
        ours.cmp(&(u128::from(other.quota_us) * u128::from(self.period_us)))
    }

    /// `cpu.max` of cgroup v2: `max 100000` or `200000 100000`. `None` is "no limit".
    pub(crate) fn parse_cpu_max(text: &str) -> Result<Option<Self>, ParseError> {
        let mut words = trim(text).split_ascii_whitespace();
        let quota = words.next().ok_or(ParseError::Empty)?;
        let period = words.next().map_or(Ok(DEFAULT_PERIOD_US), number)?;
        if quota == "max" {
            return Ok(None);
        }
        Self::new(number(quota)?, period).map(Some).ok_or(ParseError::ZeroPeriod)
    }

    /// `cpu.cfs_quota_us` and `cpu.cfs_period_us` of cgroup v1. A negative quota is "no limit".
    pub(crate) fn parse_cfs(quota: &str, period: Option<&str>) -> Result<Option<Self>, ParseError> {
        let quota = trim(quota);
        if quota.strip_prefix('-').is_some_and(|digits| parse_decimal(digits).is_some()) {
            return Ok(None);
        }
        let period = period.map_or(Ok(DEFAULT_PERIOD_US), |text| number(trim(text)))?;
        Self::new(number(quota)?, period).map(Some).ok_or(ParseError::ZeroPeriod)
    }
}

fn number(text: &str) -> Result<u64, ParseError> {
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    parse_decimal(text).ok_or_else(|| ParseError::not_a_number(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file says: nothing that can be used, no limit, or quota and period.
    type Expected = Result<Option<(u64, u64)>, ()>;

    fn plain(found: Result<Option<Quota>, ParseError>) -> Expected {
        found.map(|quota| quota.map(|quota| (quota.quota_us, quota.period_us))).map_err(|_| ())
    }

    #[test]
    fn version_two_files() {
        const CASES: &[(&str, Expected)] = &[
            ("max 100000\n", Ok(None)),
            ("max", Ok(None)),
            ("200000 100000\n", Ok(Some((200_000, 100_000)))),
            ("200000 100000\n\0", Ok(Some((200_000, 100_000)))),
            ("200000", Ok(Some((200_000, 100_000)))),
            ("0 100000", Ok(Some((0, 100_000)))),
            ("18446744073709551615 1", Ok(Some((u64::MAX, 1)))),
            ("100000 0", Err(())),
            ("max x", Err(())),
            ("", Err(())),
            ("\n", Err(())),
            ("-1 100000", Err(())),
            ("18446744073709551616 1", Err(())),
            ("2.5 1", Err(())),
        ];
        for (text, expected) in CASES {
            assert_eq!(plain(Quota::parse_cpu_max(text)), *expected, "text {text:?}");
        }
    }

    #[test]
    fn version_one_files() {
        const CASES: &[(&str, Option<&str>, Expected)] = &[
            ("-1\n", Some("100000\n"), Ok(None)),
            ("-1", None, Ok(None)),
            ("765000\n", Some("100000\n"), Ok(Some((765_000, 100_000)))),
            ("50000", None, Ok(Some((50_000, 100_000)))),
            ("50000", Some("0"), Err(())),
            ("50000", Some("x"), Err(())),
            ("", Some("100000"), Err(())),
            ("-", Some("100000"), Err(())),
        ];
        for (quota, period, expected) in CASES {
            assert_eq!(plain(Quota::parse_cfs(quota, *period)), *expected, "text {quota:?}");
        }
    }

    #[test]
    fn counts_are_rounded_down_to_at_least_one() {
        const CASES: &[(u64, u64, usize)] = &[
            (400_000, 100_000, 4),
            (399_999, 100_000, 3),
            (250_000, 100_000, 2),
            (100_000, 100_000, 1),
            (25_000, 100_000, 1),
            (0, 100_000, 1),
            (15, 10, 1),
        ];
        for (quota, period, expected) in CASES {
            assert_eq!(Quota::new(*quota, *period).unwrap().cpus(), *expected);
        }
    }

    #[test]
    fn ratios_compare_exactly() {
        let quota = |quota, period| Quota::new(quota, period).unwrap();
        assert_eq!(quota(100, 50).cmp_ratio(&quota(2, 1)), Ordering::Equal);
        assert_eq!(
            quota(u64::MAX, u64::MAX - 1).cmp_ratio(&quota(u64::MAX - 1, u64::MAX)),
            Ordering::Greater
        );
        assert_eq!(quota(3, 2).cmp_ratio(&quota(200, 100)), Ordering::Less);
    }
}
