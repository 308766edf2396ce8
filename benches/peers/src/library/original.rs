//! `matvec_rows` and `matvec_rows2` of cortiq-engine, on its own pool.

#![forbid(unsafe_code)]

use benches::PoolError;
use benches::library::{Library, Product, Weights};
use cortiq_engine::pool::{self, Pool};

use super::Operands;

pub(super) struct OriginalMatvec {
    /// None for the calling thread alone.
    pool: Option<Pool>,
}

struct Loaded<'a> {
    weights: Weights<'a>,
    pool: Option<&'a Pool>,
}

impl OriginalMatvec {
    pub(super) fn new(n_threads: usize) -> Self {
        let n_workers = n_threads - 1;
        Self { pool: (n_workers > 0).then(|| crate::pool::original::build(n_workers)) }
    }
}

impl Library for OriginalMatvec {
    fn load<'a>(&'a self, weights: Weights<'a>) -> Result<Box<dyn Product + 'a>, PoolError> {
        Ok(Box::new(Loaded { weights, pool: self.pool.as_ref() }))
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
        for (x, out) in x.chunks(2 * n_cols).zip(out.chunks_mut(2 * n_rows)) {
            if x.len() == n_cols {
                pool::matvec_rows(self.pool, w, x, out);
            } else {
                let ((x1, x2), (out1, out2)) = (x.split_at(n_cols), out.split_at_mut(n_rows));
                pool::matvec_rows2(self.pool, w, x1, x2, out1, out2);
            }
        }
        Ok(())
    }
}
