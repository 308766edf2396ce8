//! Names of instruction sets, and the variable that forces one.

use std::{
    env,
    error::Error,
    fmt,
    io::{self, Write},
    str::FromStr,
};

/// The environment variable that forces an instruction set, by its name.
pub const ISA_VARIABLE: &str = "ROWPAR_ISA";

/// An instruction set that there are kernels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust, on every CPU.
    Scalar,
    /// x86-64: 8 rows in the lanes of two registers.
    Sse2,
    /// x86-64 with AVX2 and F16C: 8 rows in the 8 lanes of a register.
    Avx2,
    /// The same with AVX-VNNI, which multiplies bytes and sums them at once.
    AvxVnni,
    /// The same with AVX-512 F, BW, VL and VNNI, in registers of 256 bits.
    Avx512,
    /// aarch64 with NEON: 8 rows in the lanes of two registers.
    Neon,
    /// The same with the dot product extension, which multiplies bytes and sums them at once.
    Dotprod,
    /// wasm32 with `simd128`: 8 rows in the lanes of two registers.
    Simd128,
}

impl Isa {
    /// Every instruction set, whether this build has it or not; of those that a CPU has, slower ones come first.
    pub const ALL: &[Self] = &[
        Self::Scalar,
        Self::Sse2,
        Self::Avx2,
        Self::AvxVnni,
        Self::Avx512,
        Self::Neon,
        Self::Dotprod,
        Self::Simd128,
    ];

    /// The name, as `ROWPAR_ISA` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avxvnni",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
            Self::Dotprod => "dotprod",
            Self::Simd128 => "simd128",
        }
    }

    /// Whether this build has kernels for it, and this CPU can run them.
    pub(super) fn detected(self) -> bool {
        if cfg!(miri) {
            return self == Self::Scalar; // there is inline assembly in the others
        }
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => has_avx2(),
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => has_avx2() && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                // To the compiler AVX-512 has FMA in it, which a hypervisor may hide.
                has_avx2()
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Dotprod => {
                std::arch::is_aarch64_feature_detected!("neon")
                    && std::arch::is_aarch64_feature_detected!("dotprod")
            }
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128 => true,
            _ => false,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")
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
