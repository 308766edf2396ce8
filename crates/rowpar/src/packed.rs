//! Matrices whose rows are interleaved, so that a kernel reads them as they come.
//!
//! Tiles of 16 rows; rows that fill no tile stay as they are. In a tile, the fields of a row (a scale, or a word of four bytes
//! of weights) stand beside those of the other rows: byte `at` of a row, if a field begins there, is at `16 * at` of the tile for
//! the first row. A tile is as long as its rows.

#![forbid(unsafe_code)]

use std::ops::Range;

use crate::{Format, Matrix, MatrixError, RowPool, Serial, kernel::TILE_ROWS, pool};

/// How the rows of a tile are moved: from a copy of it to where it is.
type Move = fn(Format, &[u8], &mut [u8]);

impl<'a> Matrix<'a> {
    /// Packs a matrix where it is, in as many bytes, on the threads of a pool, and views it.
    ///
    /// Rows are interleaved in tiles of 16: the same weights, and the same bits of every product. Kernels turn rows into lanes
    /// as they load them, which costs nothing beside main memory; weights that stay in the L2 cache are served up to 1.8 times as
    /// fast if that was done once, when they were loaded. So the matrices of a model can be packed in the one buffer that they were read
    /// into. It has to be writable: a mapped file only if the map is private (copy-on-write), and then every page that is
    /// packed takes memory.
    ///
    /// Other memory is one tile for each range of tiles that a thread is given. One thread of a 2-CPU Sapphire Rapids VM packs 2.5
    /// to 5.8 GB/s, by format and length of the rows. It always goes to the pool, however little there is to do.
    ///
    /// Nothing in the bytes says that they are packed. Whoever packed them views them again with
    /// [`from_packed`](Self::from_packed).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); the bytes are then as they were.
    ///
    /// # Examples
    ///
    /// Two matrices in one buffer:
    ///
    /// ```
    /// use rowpar::{Format, Matrix, Serial};
    ///
    /// let mut weights: Vec<u8> = (0..48 * 4).flat_map(|i| (i as f32).to_le_bytes()).collect();
    /// let x = [1.0, 2.0, 3.0, 4.0];
    /// let mut expected = [0.0; 48];
    /// let rows = Matrix::new(Format::F32, 48, 4, &weights)?;
    /// rowpar::matvec(&Serial, rows, (&x[..]).into(), &mut expected);
    ///
    /// let (first, second) = weights.split_at_mut(32 * 4 * 4);
    /// let first = Matrix::pack_in_place(&Serial, Format::F32, 32, 4, first)?;
    /// let second = Matrix::pack_in_place(&Serial, Format::F32, 16, 4, second)?;
    ///
    /// let mut found = [0.0; 48];
    /// rowpar::matvec(&Serial, first, (&x[..]).into(), &mut found[..32]);
    /// rowpar::matvec(&Serial, second, (&x[..]).into(), &mut found[32..]);
    /// assert_eq!(found, expected);
    /// # Ok::<(), rowpar::MatrixError>(())
    /// ```
    pub fn pack_in_place(
        pool: &(impl RowPool + ?Sized),
        format: Format,
        n_rows: usize,
        n_cols: usize,
        bytes: &'a mut [u8],
    ) -> Result<Self, MatrixError> {
        move_tiles(pool, format, n_rows, n_cols, bytes, interleave_tile)?;
        Self::from_packed(format, n_rows, n_cols, bytes)
    }

    /// A view of bytes that [`pack_in_place`](Self::pack_in_place) left, of the same format and shape.
    ///
    /// Whether they were packed is not checked, and cannot be. Packed bytes taken for rows by [`new`](Self::new), or rows for
    /// packed ones here, are bytes of other weights: products are wrong, and nothing worse happens.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Examples
    ///
    /// ```
    /// use rowpar::{Format, Matrix, Serial};
    ///
    /// let mut bytes = vec![0; 40 * 34];
    /// let packed = Matrix::pack_in_place(&Serial, Format::Q8_0, 40, 32, &mut bytes)?;
    /// assert!(packed.is_packed());
    /// let again = Matrix::from_packed(Format::Q8_0, 40, 32, &bytes)?;
    /// assert!(again.is_packed());
    /// # Ok::<(), rowpar::MatrixError>(())
    /// ```
    pub fn from_packed(
        format: Format,
        n_rows: usize,
        n_cols: usize,
        bytes: &'a [u8],
    ) -> Result<Self, MatrixError> {
        let rows = Self::new(format, n_rows, n_cols, bytes)?;
        Ok(rows.packed(n_rows - n_rows % TILE_ROWS))
    }

    /// Undoes [`pack_in_place`](Self::pack_in_place): gives the rows, and leaves their bytes as they were before.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Examples
    ///
    /// ```
    /// use rowpar::{Format, Matrix, Serial};
    ///
    /// let bytes: Vec<u8> = (0..40 * 34).map(|i| i as u8).collect();
    /// let mut packed = bytes.clone();
    /// Matrix::pack_in_place(&Serial, Format::Q8_0, 40, 32, &mut packed)?;
    /// let rows = Matrix::unpack_in_place(&Serial, Format::Q8_0, 40, 32, &mut packed)?;
    /// assert!(rows.bytes() == bytes);
    /// # Ok::<(), rowpar::MatrixError>(())
    /// ```
    pub fn unpack_in_place(
        pool: &(impl RowPool + ?Sized),
        format: Format,
        n_rows: usize,
        n_cols: usize,
        bytes: &'a mut [u8],
    ) -> Result<Self, MatrixError> {
        move_tiles(pool, format, n_rows, n_cols, bytes, separate_tile)?;
        Self::new(format, n_rows, n_cols, bytes)
    }
}

/// A packed matrix that owns its bytes. [`Matrix::pack_in_place`] packs in memory of others, and says what is gained.
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
        let bytes = matrix.bytes().to_vec();
        if matrix.is_packed() {
            return Self { format, n_rows, n_cols, bytes };
        }
        Self::from_vec(format, n_rows, n_cols, bytes).expect("the bytes of a matrix")
    }

    /// Packs in place, on the calling thread.
    ///
    /// # Errors
    ///
    /// As [`Matrix::new`].
    pub fn from_vec(
        format: Format,
        n_rows: usize,
        n_cols: usize,
        mut bytes: Vec<u8>,
    ) -> Result<Self, MatrixError> {
        Matrix::pack_in_place(&Serial, format, n_rows, n_cols, &mut bytes)?;
        Ok(Self { format, n_rows, n_cols, bytes })
    }

    /// The bytes as they were before.
    pub fn into_unpacked(self) -> Vec<u8> {
        let Self { format, n_rows, n_cols, mut bytes } = self;
        Matrix::unpack_in_place(&Serial, format, n_rows, n_cols, &mut bytes)
            .expect("checked when it was packed");
        bytes
    }

    /// The matrix, to multiply with.
    pub fn as_matrix(&self) -> Matrix<'_> {
        Matrix::from_packed(self.format, self.n_rows, self.n_cols, &self.bytes)
            .expect("checked when it was packed")
    }
}

/// Moves the rows of every tile, by way of a copy of it.
fn move_tiles(
    pool: &(impl RowPool + ?Sized),
    format: Format,
    n_rows: usize,
    n_cols: usize,
    bytes: &mut [u8],
    move_tile: Move,
) -> Result<(), MatrixError> {
    let row_bytes = Matrix::new(format, n_rows, n_cols, bytes)?.row_bytes();
    // Without rows they may be of any length.
    let tile_bytes = row_bytes.saturating_mul(TILE_ROWS);
    if bytes.len() < tile_bytes || tile_bytes == 0 {
        return Ok(());
    }
    pool::for_each_chunk_range(pool, bytes, tile_bytes, 1, |_, tiles| {
        let mut scratch = vec![0; tile_bytes];
        for tile in tiles.chunks_exact_mut(tile_bytes) {
            scratch.copy_from_slice(tile);
            move_tile(format, &scratch, tile);
        }
    });
    Ok(())
}

fn interleave_tile(format: Format, rows: &[u8], tile: &mut [u8]) {
    fn gather<const N: usize>(rows: &[u8], row_bytes: usize, at: usize, tile: &mut [u8]) {
        let fields = tile[TILE_ROWS * at..][..TILE_ROWS * N].as_chunks_mut().0;
        for (row, field) in rows.chunks_exact(row_bytes).zip(fields) {
            *field = *row[at..].first_chunk::<N>().expect("within a row");
        }
    }
    let row_bytes = rows.len() / TILE_ROWS;
    for_each_field(format, row_bytes, |field| match field.len() {
        2 => gather::<2>(rows, row_bytes, field.start, tile),
        _ => gather::<4>(rows, row_bytes, field.start, tile),
    });
}

fn separate_tile(format: Format, tile: &[u8], rows: &mut [u8]) {
    fn scatter<const N: usize>(tile: &[u8], row_bytes: usize, at: usize, rows: &mut [u8]) {
        let fields = tile[TILE_ROWS * at..][..TILE_ROWS * N].as_chunks().0;
        for (row, field) in rows.chunks_exact_mut(row_bytes).zip(fields) {
            *row[at..].first_chunk_mut::<N>().expect("within a row") = *field;
        }
    }
    let row_bytes = rows.len() / TILE_ROWS;
    for_each_field(format, row_bytes, |field| match field.len() {
        2 => scatter::<2>(tile, row_bytes, field.start, rows),
        _ => scatter::<4>(tile, row_bytes, field.start, rows),
    });
}

/// The bytes of a row of a tile.
pub(crate) fn unpacked_row(format: Format, tile: &[u8], row: usize) -> Vec<u8> {
    let mut bytes = vec![0; tile.len() / TILE_ROWS];
    for_each_field(format, bytes.len(), |field| {
        let at = TILE_ROWS * field.start + row * field.len();
        bytes[field.clone()].copy_from_slice(&tile[at..at + field.len()]);
    });
    bytes
}

/// The fields of a row, of two or four bytes: in each block the halves that it begins with, words, and a half if one is left.
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
                    assert!([2, 4].contains(&field.len()), "{format}");
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
