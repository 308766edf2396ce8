//! Packed copies of matrices in one stretch of memory, as an engine packs the weights that it has read.

#![forbid(unsafe_code)]

use rowpar::{Matrix, RowPool, for_each_range_mut};

/// Bytes that are copied together: some pages, so that each of them is first touched by the thread that copies it.
const COPY_BYTES: usize = 1 << 16;

/// The bytes of packed copies, one matrix behind the other, made by all threads of a pool. What is packed already is copied.
pub(crate) fn packed_copies<'w>(
    pool: &dyn RowPool,
    matrices: impl IntoIterator<Item = Matrix<'w>>,
) -> Vec<u8> {
    let matrices: Vec<Matrix<'w>> = matrices.into_iter().collect();
    let mut memory = vec![0; matrices.iter().map(|w| w.bytes().len()).sum()];
    let mut rest = &mut memory[..];
    for w in matrices {
        let (bytes, behind) = rest.split_at_mut(w.bytes().len());
        rest = behind;
        for_each_range_mut(pool, bytes, COPY_BYTES, |range, part| {
            part.copy_from_slice(&w.bytes()[range]);
        });
        if !w.is_packed() {
            Matrix::pack_in_place(pool, w.format(), w.n_rows(), w.n_cols(), bytes)
                .expect("as many bytes as the matrix has");
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use rowpar::{Format, PackedMatrix, Serial};

    use super::*;

    #[test]
    fn copies_are_those_that_own_their_bytes() {
        let bytes: Vec<u8> = (0..40 * 68).map(|i| (i * i % 251) as u8).collect();
        let w =
            |n_rows: usize| Matrix::new(Format::Q8_0, n_rows, 64, &bytes[..n_rows * 68]).unwrap();
        let owned = [40, 3, 32].map(|n_rows| PackedMatrix::new(w(n_rows)));
        let expected = owned.each_ref().map(|packed| packed.as_matrix().bytes()).concat();
        let pool = epoch_pool::Pool::new(2).unwrap();
        for pool in [&Serial as &dyn RowPool, &pool] {
            assert!(packed_copies(pool, [w(40), w(3), w(32)]) == expected);
            let again = owned.each_ref().map(PackedMatrix::as_matrix);
            assert!(packed_copies(pool, again) == expected);
            assert!(packed_copies(pool, []).is_empty());
        }
    }
}
