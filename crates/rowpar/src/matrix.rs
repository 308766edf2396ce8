//! A matrix as its bytes lie in memory or in a mapped file.

#![forbid(unsafe_code)]

use std::{error::Error, fmt, ops::Range};

#[cfg(target_endian = "little")]
use crate::kernel::bytes;
use crate::{
    Format,
    kernel::{NextRows, RowRange, TILE_ROWS},
    oracle,
    packed::unpacked_row,
};

/// A view of a row-major matrix: a format, a shape, and the bytes as they lie in a file, at any alignment; or
/// [packed](Self::pack_in_place).
///
/// Sizes are checked here, once.
///
/// # Examples
///
/// ```
/// use rowpar::{Format, Matrix};
///
/// let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let matrix = Matrix::from_f32(&values, 2, 3)?;
/// assert_eq!((matrix.format(), matrix.n_rows(), matrix.n_cols()), (Format::F32, 2, 3));
///
/// let error = Matrix::new(Format::Q8_0, 2, 64, &[0; 100]).unwrap_err();
/// assert_eq!(error.to_string(), "2 rows of 64 columns of Q8_0 are 136 bytes, not 100");
/// # Ok::<(), rowpar::MatrixError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    format: Format,
    n_rows: usize,
    n_cols: usize,
    row_bytes: usize,
    /// Rows that are in packed tiles: whole tiles, from the first row on.
    n_packed: usize,
    bytes: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// Without rows.
    pub(crate) const EMPTY: Self =
        Self { format: Format::F32, n_rows: 0, n_cols: 0, row_bytes: 0, n_packed: 0, bytes: &[] };

    /// `n_rows` rows of `n_cols` weights of a format.
    ///
    /// # Errors
    ///
    /// If a row has no whole number of blocks, or `bytes` is not exactly as long as the rows are.
    pub fn new(
        format: Format,
        n_rows: usize,
        n_cols: usize,
        bytes: &'a [u8],
    ) -> Result<Self, MatrixError> {
        let shape = MatrixError::Blocks { format, n_cols };
        let row_bytes = format.row_bytes(n_cols).ok_or(shape)?;
        let expected = row_bytes.checked_mul(n_rows);
        if expected != Some(bytes.len()) {
            let found = bytes.len();
            return Err(MatrixError::Length { format, n_rows, n_cols, expected, found });
        }
        Ok(Self { format, n_rows, n_cols, row_bytes, n_packed: 0, bytes })
    }

    /// A tensor of a GGUF file, whose format is given as a number. Its first dimension is `n_cols`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if `type_id` is no format that there are kernels for.
    pub fn from_gguf(
        type_id: u32,
        n_rows: usize,
        n_cols: usize,
        bytes: &'a [u8],
    ) -> Result<Self, MatrixError> {
        let format = Format::from_gguf_id(type_id).ok_or(MatrixError::Type { type_id })?;
        Self::new(format, n_rows, n_cols, bytes)
    }

    /// Values of this machine's memory. On a big-endian machine, where they are not as in a file, use
    /// [`new`](Self::new) with their little-endian bytes.
    ///
    /// # Errors
    ///
    /// If there are not `n_rows * n_cols` values.
    #[cfg(target_endian = "little")]
    pub fn from_f32(values: &'a [f32], n_rows: usize, n_cols: usize) -> Result<Self, MatrixError> {
        Self::new(Format::F32, n_rows, n_cols, bytes::of_f32(values))
    }

    /// binary16 values of this machine's memory.
    ///
    /// # Errors
    ///
    /// If there are not `n_rows * n_cols` values.
    #[cfg(target_endian = "little")]
    pub fn from_f16_bits(
        values: &'a [u16],
        n_rows: usize,
        n_cols: usize,
    ) -> Result<Self, MatrixError> {
        Self::new(Format::F16, n_rows, n_cols, bytes::of_u16(values))
    }

    /// Upper halves of binary32 values of this machine's memory.
    ///
    /// # Errors
    ///
    /// If there are not `n_rows * n_cols` values.
    #[cfg(target_endian = "little")]
    pub fn from_bf16_bits(
        values: &'a [u16],
        n_rows: usize,
        n_cols: usize,
    ) -> Result<Self, MatrixError> {
        Self::new(Format::Bf16, n_rows, n_cols, bytes::of_u16(values))
    }

    /// The format of the weights.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The number of columns, which is the length of an input.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Whether there are [packed](Self::pack_in_place) rows. Fewer than 16 are the same packed or not, and so they are not.
    pub fn is_packed(&self) -> bool {
        self.n_packed > 0
    }

    /// The bytes of all rows, as they lie: packed if they [are](Self::is_packed).
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Some of the rows.
    ///
    /// # Panics
    ///
    /// If `rows` is not within the rows of the matrix, or cuts a tile of 16 packed rows.
    pub fn rows(&self, rows: Range<usize>) -> Matrix<'a> {
        let Range { start, end } = rows;
        assert!(start <= end && end <= self.n_rows, "rows {rows:?} of {}", self.n_rows);
        let in_tile = |row: usize| row < self.n_packed && !row.is_multiple_of(TILE_ROWS);
        assert!(!in_tile(start) && !in_tile(end), "rows {rows:?} cut a tile of {TILE_ROWS} rows");
        let bytes = &self.bytes[start * self.row_bytes..end * self.row_bytes];
        let n_packed = self.n_packed.clamp(start, end) - start;
        Self { n_rows: end - start, n_packed, bytes, ..*self }
    }

    /// Writes the weights of a row, such as the embedding of a token, as [`oracle::row_to_f32`] has them.
    ///
    /// # Panics
    ///
    /// If there is no such row, or `out` has not `n_cols` values.
    pub fn row_to_f32(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.n_rows, "row {row} of {}", self.n_rows);
        if row < self.n_packed {
            let first = row - row % TILE_ROWS;
            let tile = self.rows(first..first + TILE_ROWS).bytes;
            oracle::row_to_f32(self.format, &unpacked_row(self.format, tile, row - first), out);
        } else {
            let bytes = &self.bytes[row * self.row_bytes..][..self.row_bytes];
            oracle::row_to_f32(self.format, bytes, out);
        }
    }

    /// The same matrix with its first `n_packed` rows in packed tiles.
    pub(crate) fn packed(self, n_packed: usize) -> Self {
        Self { n_packed, ..self }
    }

    /// The rows of a range, as kernels take them, and those that the thread is most likely to have next.
    pub(crate) fn row_range(&self, rows: Range<usize>, next: Matrix<'a>) -> RowRange<'a> {
        let Self { format, row_bytes, n_packed, bytes, .. } = self.rows(rows);
        let (next_bytes, packed) = (next.bytes, next.n_packed > 0);
        let next = NextRows { bytes: next_bytes, row_bytes: next.row_bytes, packed };
        RowRange { format, row_bytes, n_packed, bytes, next }
    }
}

impl fmt::Debug for Matrix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({} x {}, {})", self.n_rows, self.n_cols, self.format)
    }
}

/// Bytes that are no matrix of the shape they were said to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatrixError {
    /// A row has no whole number of blocks, or more bytes than can be counted.
    Blocks {
        /// The format.
        format: Format,
        /// The number of columns that was given.
        n_cols: usize,
    },
    /// The bytes are not as many as the shape needs.
    Length {
        /// The format.
        format: Format,
        /// The number of rows.
        n_rows: usize,
        /// The number of columns.
        n_cols: usize,
        /// Bytes that the shape needs; `None` if they cannot be counted.
        expected: Option<usize>,
        /// Bytes that were given.
        found: usize,
    },
    /// A GGUF type that there are no kernels for.
    Type {
        /// The number in the file.
        type_id: u32,
    },
}

impl fmt::Display for MatrixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Blocks { format, n_cols } if n_cols.is_multiple_of(format.block_len()) => {
                write!(f, "rows of {n_cols} columns of {format} are more bytes than can be counted")
            }
            Self::Blocks { format, n_cols } => {
                let block_len = format.block_len();
                write!(f, "{n_cols} columns are no whole number of {format} blocks of {block_len}")
            }
            Self::Length { format, n_rows, n_cols, expected, found } => {
                let expected =
                    expected.map_or("more than can be counted".to_owned(), |n| n.to_string());
                write!(
                    f,
                    "{n_rows} rows of {n_cols} columns of {format} are {expected} bytes, not {found}"
                )
            }
            Self::Type { type_id } => write!(f, "GGUF type {type_id} is no format with kernels"),
        }
    }
}

impl Error for MatrixError {}
