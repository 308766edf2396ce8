//! Libraries that multiply matrices with threads of their own: what stands beside pool and kernel together.

#![forbid(unsafe_code)]

use rowpar::Format;

use crate::PoolError;
use crate::data::as_bytes;

/// Matrices of one shape and format, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// Format of the weights.
    pub format: Format,
    /// Rows of each matrix.
    pub n_rows: usize,
    /// Columns of each matrix.
    pub n_cols: usize,
    values: &'a [f32],
    copy_bytes: usize,
}

impl<'a> Weights<'a> {
    /// As many matrices as `values` has room for; whatever their format is, the memory is given as floats.
    ///
    /// `None` if a row is no whole number of blocks, or a matrix has no bytes.
    pub fn new(format: Format, n_rows: usize, n_cols: usize, values: &'a [f32]) -> Option<Self> {
        let copy_bytes = format.row_bytes(n_cols)?.checked_mul(n_rows)?;
        (copy_bytes > 0).then_some(Self { format, n_rows, n_cols, values, copy_bytes })
    }

    /// The number of matrices.
    pub fn n_copies(&self) -> usize {
        size_of_val(self.values) / self.copy_bytes
    }

    /// Bytes of one matrix.
    pub fn copy_bytes(&self) -> usize {
        self.copy_bytes
    }

    /// The bytes of one matrix.
    ///
    /// # Panics
    ///
    /// If there is none of that number.
    pub fn bytes(&self, copy: usize) -> &'a [u8] {
        &self.all_bytes()[copy * self.copy_bytes..][..self.copy_bytes]
    }

    /// The bytes of all matrices.
    pub(crate) fn all_bytes(&self) -> &'a [u8] {
        &as_bytes(self.values)[..self.n_copies() * self.copy_bytes]
    }

    /// The weights of one matrix.
    ///
    /// # Panics
    ///
    /// If they are not `F32`, or there is no matrix of that number.
    pub fn floats(&self, copy: usize) -> &'a [f32] {
        assert!(self.format == Format::F32, "weights in {} are no floats", self.format);
        let n_weights = self.n_rows * self.n_cols;
        &self.values[copy * n_weights..][..n_weights]
    }
}

/// The variables that some libraries read their number of threads from, and nothing else: they have to be set when a measuring
/// process starts.
pub fn environment(n_threads: usize) -> [(&'static str, String); 4] {
    let names =
        ["OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "CANDLE_NUM_THREADS", "MATMUL_NUM_THREADS"];
    names.map(|name| (name, n_threads.to_string()))
}

/// A library, set up for a number of threads.
pub trait Library {
    /// Makes matrices what the library wants them to be. That may be a copy.
    ///
    /// # Errors
    ///
    /// The library refuses them.
    fn load<'a>(&'a self, weights: Weights<'a>) -> Result<Box<dyn Product + 'a>, PoolError>;
}

/// Matrices that a library has loaded.
pub trait Product {
    /// Multiplies the matrix of that number with each of `n_inputs` inputs that follow each other in `x`; the outputs follow
    /// each other in `out`.
    ///
    /// # Errors
    ///
    /// The library cannot count so many inputs, or fails.
    fn multiply(
        &mut self,
        copy: usize,
        x: &[f32],
        n_inputs: usize,
        out: &mut [f32],
    ) -> Result<(), PoolError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_follow_each_other_and_a_rest_is_left_over() {
        let values: Vec<f32> = (0..70).map(|i| i as f32).collect();
        let weights = Weights::new(Format::F32, 4, 5, &values).unwrap();
        assert_eq!((weights.n_copies(), weights.copy_bytes()), (3, 80));
        assert_eq!(weights.floats(2)[0], 40.0);
        assert_eq!(weights.bytes(2)[..4], 40.0_f32.to_le_bytes());
        assert_eq!(weights.bytes(2).len(), 80);
        let weights = Weights::new(Format::Q8_0, 2, 32, &values).unwrap();
        assert_eq!((weights.n_copies(), weights.bytes(3).len()), (4, 68));
        assert!(std::panic::catch_unwind(|| weights.floats(0)).is_err());
        assert!(Weights::new(Format::Q8_0, 2, 33, &values).is_none());
        assert!(Weights::new(Format::F32, 0, 5, &values).is_none());
    }
}
