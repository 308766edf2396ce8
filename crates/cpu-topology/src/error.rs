//! What is wrong with a text that should name CPUs, a limit or the files of a machine.
#![forbid(unsafe_code)]

use std::fmt;

/// What is wrong with a text that should name CPUs, a limit or the files of a machine.
///
/// ```
/// use cpu_topology::{ParseError, parse_cpu_list};
///
/// assert_eq!(parse_cpu_list("3-0"), Err(ParseError::Descending { first: 3, last: 0 }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// This piece of the text is not a number.
    NotANumber(String),
    /// A range that runs downwards names no CPU.
    Descending {
        /// Where the range starts.
        first: usize,
        /// Where it ends.
        last: usize,
    },
    /// A CPU id above [`MAX_CPU_ID`](crate::MAX_CPU_ID), which no kernel hands out.
    IdTooLarge,
    /// A period of zero, in which no CPU time can be given.
    ZeroPeriod,
    /// The file is longer than any of its kind, and was not read to the end.
    TooLong,
    /// There is nothing in it.
    Empty,
    /// This line of a snapshot, counted from 1, is no path and content with a tab between them, or the path is longer
    /// or deeper than any.
    NotAFile {
        /// The line.
        line: usize,
    },
}

impl ParseError {
    /// Keeps enough of a bad piece to recognize it, however long it is.
    pub(crate) fn not_a_number(piece: &str) -> Self {
        Self::NotANumber(piece.chars().take(40).collect())
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(piece) => write!(formatter, "not a number: {piece:?}"),
            Self::Descending { first, last } => {
                write!(formatter, "range runs downwards: {first}-{last}")
            }
            Self::IdTooLarge => formatter.write_str("CPU id too large"),
            Self::ZeroPeriod => formatter.write_str("period of zero"),
            Self::TooLong => formatter.write_str("longer than such a file can be"),
            Self::Empty => formatter.write_str("empty"),
            Self::NotAFile { line } => {
                write!(
                    formatter,
                    "line {line}: not a path below the root, a tab and escaped content"
                )
            }
        }
    }
}

impl std::error::Error for ParseError {}
