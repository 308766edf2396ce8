//! The formats that weights are stored in.

#![forbid(unsafe_code)]

use std::{error::Error, fmt, str::FromStr};

/// How the weights of a matrix are stored, named and laid out as in GGUF files.
///
/// Float formats are widened exactly. Block formats store a row as blocks of [`block_len`](Self::block_len) weights that
/// share scales. Rows follow each other without padding, and so a matrix in a file is just its bytes, at any alignment.
///
/// Layouts are those of `ggml-common.h` in ggml; little endian, `f16` is IEEE binary16, a row starts at its first column:
///
/// | format | bytes / weights | layout | weight |
/// |---|---|---|---|
/// | `F32`, `F16`, `Bf16` | 4, 2, 2 / 1 | | as stored |
/// | `Q8_0` | 34 / 32 | f16 d; 32 × i8 q | q·d |
/// | `Q5_0` | 22 / 32 | f16 d; u32 fifth bits; 16 B nibbles: low ones are weights 0–15, high ones 16–31 | (q−16)·d |
/// | `Q5_1` | 24 / 32 | f16 d, m; then as `Q5_0` | q·d + m |
/// | `Q4_0` | 18 / 32 | f16 d; 16 B nibbles | (q−8)·d |
/// | `Q4_1` | 20 / 32 | f16 d, m; 16 B nibbles | q·d + m |
/// | `Q4K` | 144 / 256 | f16 d, dmin; 12 B of eight 6-bit scales and minima; 128 B: each 32 B are two parts of 32 | q·(d·sc) − dmin·mn |
/// | `Q5K` | 176 / 256 | the same with 32 B of fifth bits before the nibbles | q·(d·sc) − dmin·mn |
/// | `Q6K` | 210 / 256 | 128 B low nibbles; 64 B high pairs; 16 × i8 sc; f16 d | (q−32)·(d·sc) |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// 8 bits and a scale for 32 weights.
    Q8_0,
    /// 5 bits and a scale for 32 weights.
    Q5_0,
    /// 5 bits, a scale and a minimum for 32 weights.
    Q5_1,
    /// 4 bits and a scale for 32 weights.
    Q4_0,
    /// 4 bits, a scale and a minimum for 32 weights.
    Q4_1,
    /// 4 bits; 256 weights in eight parts with 6-bit scales and minima.
    Q4K,
    /// 5 bits; 256 weights in eight parts with 6-bit scales and minima.
    Q5K,
    /// 6 bits; 256 weights in sixteen parts with 8-bit scales.
    Q6K,
}

/// Name, GGUF type id, weights and bytes of a block.
type Facts = (&'static str, u32, usize, usize);

impl Format {
    /// Every format.
    pub const ALL: &[Self] = &[
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q8_0,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
    ];

    const fn facts(self) -> Facts {
        match self {
            Self::F32 => ("F32", 0, 1, 4),
            Self::F16 => ("F16", 1, 1, 2),
            Self::Bf16 => ("BF16", 30, 1, 2),
            Self::Q8_0 => ("Q8_0", 8, 32, 34),
            Self::Q5_0 => ("Q5_0", 6, 32, 22),
            Self::Q5_1 => ("Q5_1", 7, 32, 24),
            Self::Q4_0 => ("Q4_0", 2, 32, 18),
            Self::Q4_1 => ("Q4_1", 3, 32, 20),
            Self::Q4K => ("Q4_K", 12, 256, 144),
            Self::Q5K => ("Q5_K", 13, 256, 176),
            Self::Q6K => ("Q6_K", 14, 256, 210),
        }
    }

    /// The name, as GGUF tools print it.
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// The number that stands for this format in a GGUF file (`enum ggml_type`).
    pub const fn gguf_id(self) -> u32 {
        self.facts().1
    }

    /// The format of a GGUF type number; `None` if this crate has no kernels for it.
    pub fn from_gguf_id(id: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.gguf_id() == id)
    }

    /// Weights of a block: a row has a whole number of blocks. 1 for floats.
    pub const fn block_len(self) -> usize {
        self.facts().2
    }

    /// Bytes of a block.
    pub const fn block_bytes(self) -> usize {
        self.facts().3
    }

    /// Whether weights share scales, and an input may be quantized, too.
    pub const fn is_block(self) -> bool {
        self.block_len() > 1
    }

    /// Bytes of a row of `n_cols` weights; `None` if these are no whole blocks, or more bytes than can be counted.
    ///
    /// # Examples
    ///
    /// ```
    /// use rowpar::Format;
    ///
    /// assert_eq!(Format::Q8_0.row_bytes(64), Some(68));
    /// assert_eq!(Format::Q8_0.row_bytes(48), None);
    /// ```
    pub fn row_bytes(self, n_cols: usize) -> Option<usize> {
        let whole = n_cols.is_multiple_of(self.block_len());
        whole.then(|| (n_cols / self.block_len()).checked_mul(self.block_bytes())).flatten()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A string that names no [`Format`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFormatError {
    name: String,
}

impl fmt::Display for ParseFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} names no format of weights; known are", self.name)?;
        for (i, format) in Format::ALL.iter().enumerate() {
            write!(f, "{}{format}", if i == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

impl Error for ParseFormatError {}

impl FromStr for Format {
    type Err = ParseFormatError;

    /// Takes a name in any case, with or without its underscores.
    fn from_str(text: &str) -> Result<Self, ParseFormatError> {
        let plain = |name: &str| name.replace('_', "").to_ascii_uppercase();
        let known = Self::ALL.iter().find(|format| plain(format.name()) == plain(text.trim()));
        known.copied().ok_or_else(|| ParseFormatError { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_lead_back() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(*format));
            assert_eq!(format!("{format:?}").parse(), Ok(*format));
            assert_eq!(Format::from_gguf_id(format.gguf_id()), Some(*format));
        }
        assert_eq!(" q4k\n".parse(), Ok(Format::Q4K));
        assert!("q2_k".parse::<Format>().unwrap_err().to_string().contains("Q6_K"));
        assert_eq!(Format::from_gguf_id(10), None);
    }

    #[test]
    fn rows_are_whole_blocks() {
        assert_eq!(Format::F32.row_bytes(usize::MAX), None);
        assert_eq!(Format::Bf16.row_bytes(3), Some(6));
        assert_eq!(Format::Q6K.row_bytes(512), Some(420));
        assert_eq!(Format::Q6K.row_bytes(0), Some(0));
        assert_eq!(Format::Q6K.row_bytes(128), None);
    }
}
