//! Where the threads of a pool run, by name.

#![forbid(unsafe_code)]

use std::{error::Error, fmt, str::FromStr};

/// Which CPUs the workers of a pool are bound to. The thread that builds the pool, and those that call it, stay as they are.
///
/// Binding is for machines that a process has to itself. Where others run too, a bound worker waits behind them on its CPU while
/// others are idle, and a pool waits for its slowest participant.
///
/// ```
/// use rowpar::Placement;
///
/// assert_eq!("one-per-core".parse(), Ok(Placement::OnePerCore));
/// assert_eq!(Placement::default().to_string(), "none");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Placement {
    /// Nowhere: the system decides, on Linux and Android among the CPUs of the thread that builds the pool. Where a library has
    /// narrowed those (OpenMP's do), take `Set`.
    #[default]
    None,
    /// Each to all CPUs of the plan, so that workers move among these and to no other.
    Set,
    /// Worker `i` to the `i`-th CPU of the plan: to a core each, if the plan has no more workers than cores.
    OnePerCore,
}

impl Placement {
    /// Every placement.
    pub const ALL: &[Self] = &[Self::None, Self::Set, Self::OnePerCore];

    /// The name, as settings and command lines have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Set => "set",
            Self::OnePerCore => "one-per-core",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A string that names no [`Placement`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePlacementError {
    name: String,
}

impl fmt::Display for ParsePlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = Placement::ALL.iter().map(|placement| placement.name()).collect();
        write!(f, "{:?} names no placement; known are {}", self.name, known.join(", "))
    }
}

impl Error for ParsePlacementError {}

impl FromStr for Placement {
    type Err = ParsePlacementError;

    /// Takes a name in any case, with blanks around it.
    fn from_str(text: &str) -> Result<Self, ParsePlacementError> {
        let name = text.trim();
        let known = Self::ALL.iter().find(|placement| name.eq_ignore_ascii_case(placement.name()));
        known.copied().ok_or_else(|| ParsePlacementError { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_printed() {
        const CASES: &[(&str, Option<Placement>)] = &[
            ("none", Some(Placement::None)),
            (" Set\n", Some(Placement::Set)),
            ("ONE-PER-CORE", Some(Placement::OnePerCore)),
            ("", None),
            ("one", None),
            ("none,set", None),
        ];
        for (text, expected) in CASES {
            assert_eq!(text.parse::<Placement>().ok(), *expected, "{text:?}");
        }
        for placement in Placement::ALL {
            assert_eq!(placement.to_string().parse(), Ok(*placement));
        }
    }
}
