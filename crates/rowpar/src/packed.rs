//! Matrices whose rows are interleaved, so that a kernel reads them as they come.
//!
//! Tiles of 16 rows; rows that fill no tile stay as they are. In a tile, the fields of a row (a scale, or a word of four bytes
//! of weights) stand beside those of the other rows: byte `at` of a row, if a field begins there, is at `16 * at` of the tile for
//! the first row. A tile is as long as its rows.

#![forbid(unsafe_code)]

use std::ops::Range;

use crate::{Format, Matrix, MatrixError, kernel::TILE_ROWS};

/// A matrix whose rows are interleaved in tiles of 16: the same weights, the same bits of every product, in the same
/// memory.
///
/// Kernels turn rows into lanes as they load them, which costs nothing beside main memory. Weights that stay in a cache are
/// served faster if that was done once, when they were loaded. A packed matrix has as many bytes as before, and is packed in
/// place, by way of one tile of scratch memory. What cannot be done is to use a mapped file as it is.
///
/// # Examples
///
/// ```
/// use rowpar::{Format, Matrix, PackedMatrix, Serial};
///
/// let bytes: Vec<u8> = (0..32 * 4).flat_map(|i| (i as f32).to_le_bytes()).collect();
/// let plain = Matrix::new(Format::F32, 32, 4, &bytes)?;
/// let packed = PackedMatrix::new(plain);
///
/// let (mut expected, mut found) = ([0.0; 32], [0.0; 32]);
/// let x = [1.0, 2.0, 3.0, 4.0];
/// rowpar::matvec(&Serial, plain, (&x[..]).into(), &mut expected);
/// rowpar::matvec(&Serial, packed.as_matrix(), (&x[..]).into(), &mut found);
/// assert_eq!(found, expected);
/// # Ok::<(), rowpar::MatrixError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    format: Format,
    n_rows: usize,
    n_cols: usize,
    bytes: Vec<u8>,
}

impl PackedMatrix {
    /// A packed copy. Of a matrix that is packed, a copy.
    pub fn new(matrix: Matrix<'_>) -> Self {
        let (format, n_rows, n_cols) = (matrix.format(), matrix.n_rows(), matrix.n_cols());
        let mut packed = Self { format, n_rows, n_cols, bytes: matrix.bytes().to_vec() };
        if !matrix.is_packed() {
            packed.interleave(interleave_tile);
        }
        packed
    }

    /// Packs in place: no memory beside a tile of 16 rows is needed.
    ///
    /// # Errors
    ///
    /// As [`Matrix::new`].
    pub fn from_vec(
        format: Format,
        n_rows: usize,
        n_cols: usize,
        bytes: Vec<u8>,
    ) -> Result<Self, MatrixError> {
        Matrix::new(format, n_rows, n_cols, &bytes)?;
        let mut packed = Self { format, n_rows, n_cols, bytes };
        packed.interleave(interleave_tile);
        Ok(packed)
    }

    /// The bytes as they were before.
    pub fn into_unpacked(mut self) -> Vec<u8> {
        self.interleave(separate_tile);
        self.bytes
    }

    /// The matrix, to multiply with.
    pub fn as_matrix(&self) -> Matrix<'_> {
        Matrix::new(self.format, self.n_rows, self.n_cols, &self.bytes)
            .expect("checked when it was packed")
            .packed(self.n_rows - self.n_rows % TILE_ROWS)
    }

    fn interleave(&mut self, tile: fn(Format, &[u8], &mut [u8])) {
        let row_bytes = self.format.row_bytes(self.n_cols).expect("checked when it was made");
        if row_bytes == 0 {
            return;
        }
        let mut scratch = vec![0; TILE_ROWS * row_bytes];
        for bytes in self.bytes.chunks_exact_mut(TILE_ROWS * row_bytes) {
            scratch.copy_from_slice(bytes);
            tile(self.format, &scratch, bytes);
        }
    }
}

fn interleave_tile(format: Format, rows: &[u8], tile: &mut [u8]) {
    let row_bytes = rows.len() / TILE_ROWS;
    for (row, bytes) in rows.chunks_exact(row_bytes).enumerate() {
        for_each_field(format, row_bytes, |field| {
            tile[in_tile(&field, row)].copy_from_slice(&bytes[field]);
        });
    }
}

fn separate_tile(format: Format, tile: &[u8], rows: &mut [u8]) {
    let row_bytes = rows.len() / TILE_ROWS;
    for (row, bytes) in rows.chunks_exact_mut(row_bytes).enumerate() {
        bytes.copy_from_slice(&unpacked_row(format, tile, row));
    }
}

/// The bytes of a row of a tile.
pub(crate) fn unpacked_row(format: Format, tile: &[u8], row: usize) -> Vec<u8> {
    let mut bytes = vec![0; tile.len() / TILE_ROWS];
    for_each_field(format, bytes.len(), |field| {
        bytes[field.clone()].copy_from_slice(&tile[in_tile(&field, row)]);
    });
    bytes
}

/// Where a field of a row is in a tile.
fn in_tile(field: &Range<usize>, row: usize) -> Range<usize> {
    let start = TILE_ROWS * field.start + row * field.len();
    start..start + field.len()
}

/// The fields of a row: in each block the halves that it begins with, words, and a half if one is left.
fn for_each_field(format: Format, row_bytes: usize, mut f: impl FnMut(Range<usize>)) {
    let (block_bytes, n_halves) = match format {
        Format::Q8_0 | Format::Q4_0 | Format::Q5_0 => (format.block_bytes(), 1),
        Format::Q4_1 | Format::Q5_1 => (format.block_bytes(), 2),
        Format::Q4K | Format::Q5K | Format::Q6K => (format.block_bytes(), 0),
        Format::F32 | Format::F16 | Format::Bf16 => (row_bytes, 0),
    };
    let mut at = 0;
    while at < row_bytes {
        let (words, end) = (at + 2 * n_halves, at + block_bytes);
        while at < end {
            let n_bytes = if at < words || end - at < 4 { 2 } else { 4 };
            f(at..at + n_bytes);
            at += n_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_cover_a_row_once() {
        for format in Format::ALL {
            for n_blocks in 1..4 {
                let row_bytes = format.row_bytes(n_blocks * format.block_len()).unwrap();
                let mut at = 0;
                for_each_field(*format, row_bytes, |field| {
                    assert_eq!(field.start, at, "{format}");
                    at = field.end;
                });
                assert_eq!(at, row_bytes, "{format}");
            }
        }
    }

    #[test]
    fn packing_can_be_undone() {
        for format in Format::ALL {
            let n_cols = 3 * format.block_len();
            let row_bytes = format.row_bytes(n_cols).unwrap();
            for n_rows in [0, 1, 15, 16, 17, 47, 48] {
                let bytes: Vec<u8> = (0..n_rows * row_bytes).map(|i| (i * i % 251) as u8).collect();
                let packed =
                    PackedMatrix::from_vec(*format, n_rows, n_cols, bytes.clone()).unwrap();
                let copy = PackedMatrix::new(Matrix::new(*format, n_rows, n_cols, &bytes).unwrap());
                assert_eq!(packed.bytes, copy.bytes);
                assert_eq!(packed.bytes != bytes, n_rows >= TILE_ROWS, "{format}, {n_rows} rows");
                assert_eq!(packed.into_unpacked(), bytes, "{format}, {n_rows} rows");
            }
        }
    }
}
