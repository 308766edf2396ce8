//! The crate matrixmultiply: `sgemm` with as many columns as there are inputs.

use benches::PoolError;
use benches::library::{Library, Product, Weights};

use super::{Operands, expect_variable};

pub(super) struct Matrixmultiply;

struct Loaded<'a>(Weights<'a>);

impl Matrixmultiply {
    pub(super) fn new(n_threads: usize) -> Result<Self, PoolError> {
        if !matches!(n_threads, 1 | 2 | 4) {
            return Err(format!("it runs on 1, 2 or 4 threads, and not on {n_threads}").into());
        }
        expect_variable("MATMUL_NUM_THREADS", n_threads)?;
        Ok(Self)
    }
}

impl Library for Matrixmultiply {
    fn load<'a>(&'a self, weights: Weights<'a>) -> Result<Box<dyn Product + 'a>, PoolError> {
        Ok(Box::new(Loaded(weights)))
    }
}

impl Product for Loaded<'_> {
    fn multiply(
        &mut self,
        copy: usize,
        x: &[f32],
        n_inputs: usize,
        out: &mut [f32],
    ) -> Result<(), PoolError> {
        let (n_rows, n_cols) = (self.0.n_rows, self.0.n_cols);
        let Operands { w, x, out } = Operands::new(self.0, copy, x, n_inputs, out);
        let (w, x, out) = (w.as_ptr(), x.as_ptr(), out.as_mut_ptr());
        let (row, column) = (n_cols as isize, n_rows as isize);
        // SAFETY: L1: rows of the weights follow each other, and so do inputs and outputs, which are the columns of the other two
        // matrices; the output is ours alone.
        unsafe {
            matrixmultiply::sgemm(
                n_rows, n_cols, n_inputs, 1.0, w, row, 1, x, 1, row, 0.0, out, 1, column,
            );
        }
        Ok(())
    }
}
