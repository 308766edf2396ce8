//! The crate gemm, on threads of rayon's global pool.

use benches::PoolError;
use benches::library::{Library, Product, Weights};
use gemm::Parallelism;

use super::{Operands, expect_variable};

pub(super) struct Gemm {
    parallelism: Parallelism,
}

struct Loaded<'a> {
    weights: Weights<'a>,
    parallelism: Parallelism,
}

impl Gemm {
    pub(super) fn new(n_threads: usize) -> Result<Self, PoolError> {
        expect_variable("RAYON_NUM_THREADS", n_threads)?;
        let parallelism = match n_threads {
            1 => Parallelism::None,
            _ => Parallelism::Rayon(n_threads),
        };
        Ok(Self { parallelism })
    }
}

impl Library for Gemm {
    fn load<'a>(&'a self, weights: Weights<'a>) -> Result<Box<dyn Product + 'a>, PoolError> {
        Ok(Box::new(Loaded { weights, parallelism: self.parallelism }))
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
        let (n_rows, n_cols) = (self.weights.n_rows, self.weights.n_cols);
        let Operands { w, x, out } = Operands::new(self.weights, copy, x, n_inputs, out);
        let (w, x, out) = (w.as_ptr(), x.as_ptr(), out.as_mut_ptr());
        let (row, column) = (n_cols as isize, n_rows as isize);
        // SAFETY: L1: rows of the weights follow each other, and so do inputs and outputs, which are the columns of the other two
        // matrices; the output is ours alone, and is not read.
        unsafe {
            gemm::gemm(
                n_rows,
                n_inputs,
                n_cols,
                out,
                column,
                1,
                false,
                w,
                1,
                row,
                x,
                row,
                1,
                0.0,
                1.0,
                false,
                false,
                false,
                self.parallelism,
            );
        }
        Ok(())
    }
}
