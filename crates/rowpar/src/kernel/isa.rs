//! Names of instruction sets, and the variable that forces one.

use std::{
    env,
    error::Error,
    fmt,
    io::{self, Write},
    str::FromStr,
};

/// The environment variable that forces an instruction set: `scalar`, `avx2` or `neon`.
pub const ISA_VARIABLE: &str = "ROWPAR_ISA";

/// An instruction set that there are kernels for, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust, on every CPU.
    Scalar,
    /// x86-64 with AVX2: 8 rows in the 8 lanes of a register.
    Avx2,
    /// aarch64 with NEON: 8 rows in the lanes of two registers.
    Neon,
}

impl Isa {
    /// Every instruction set, whether this build has it or not.
    pub const ALL: &[Self] = &[Self::Scalar, Self::Avx2, Self::Neon];

    /// The name, as `ROWPAR_ISA` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Neon => "neon",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A string that names no [`Isa`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseIsaError {
    name: String,
}

impl fmt::Display for ParseIsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} names no instruction set; known are", self.name)?;
        for (i, isa) in Isa::ALL.iter().enumerate() {
            write!(f, "{}{isa}", if i == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

impl Error for ParseIsaError {}

impl FromStr for Isa {
    type Err = ParseIsaError;

    /// Takes a name in any case, with blanks around it.
    fn from_str(text: &str) -> Result<Self, ParseIsaError> {
        let name = text.trim();
        let known = Self::ALL.iter().find(|isa| name.eq_ignore_ascii_case(isa.name()));
        known.copied().ok_or_else(|| ParseIsaError { name: name.to_owned() })
    }
}

/// Says on stderr why the variable is ignored. Where nobody listens there is nothing to report.
pub(super) fn report(why: fmt::Arguments<'_>) {
    _ = writeln!(io::stderr(), "rowpar: {ISA_VARIABLE} ignored: {why}");
}

/// What the environment asks for. Reports junk on stderr; set but empty means unset.
pub(super) fn forced() -> Option<Isa> {
    let value = env::var_os(ISA_VARIABLE)?;
    let value = value.to_string_lossy();
    if value.trim().is_empty() {
        return None;
    }
    value.parse().map_err(|error| report(format_args!("{error}"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_printed() {
        const CASES: &[(&str, Option<Isa>)] = &[
            ("scalar", Some(Isa::Scalar)),
            ("avx2", Some(Isa::Avx2)),
            (" AVX2\n", Some(Isa::Avx2)),
            ("Neon", Some(Isa::Neon)),
            ("", None),
            ("avx", None),
            ("avx2,scalar", None),
            ("\u{212a}elvin", None),
        ];
        for (text, expected) in CASES {
            assert_eq!(text.parse::<Isa>().ok(), *expected, "{text:?}");
        }
        for isa in Isa::ALL {
            assert_eq!(isa.to_string().parse(), Ok(*isa));
        }
    }
}
