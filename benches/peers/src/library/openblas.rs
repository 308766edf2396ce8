//! OpenBLAS as Debian has it: `sgemv` for one input, `sgemm` for more.

use std::ffi::c_int;

use benches::PoolError;
use benches::library::{Library, Product, Weights};

use super::Operands;

unsafe extern "C" {
    safe fn peer_openblas_threads(n_threads: c_int) -> c_int;
    fn peer_openblas_sgemv(
        n_rows: c_int,
        n_cols: c_int,
        w: *const f32,
        x: *const f32,
        out: *mut f32,
    );
    fn peer_openblas_sgemm(
        n_rows: c_int,
        n_cols: c_int,
        n_inputs: c_int,
        w: *const f32,
        x: *const f32,
        out: *mut f32,
    );
}

pub(super) struct Openblas;

struct Loaded<'a> {
    weights: Weights<'a>,
    n_rows: c_int,
    n_cols: c_int,
}

impl Openblas {
    pub(super) fn new(n_threads: usize) -> Result<Self, PoolError> {
        match peer_openblas_threads(c_int::try_from(n_threads)?) {
            found if usize::try_from(found) == Ok(n_threads) => Ok(Self),
            found => Err(format!("OpenBLAS takes {found} threads, and not {n_threads}").into()),
        }
    }
}

impl Library for Openblas {
    fn load<'a>(&'a self, weights: Weights<'a>) -> Result<Box<dyn Product + 'a>, PoolError> {
        let (n_rows, n_cols) = (weights.n_rows.try_into()?, weights.n_cols.try_into()?);
        Ok(Box::new(Loaded { weights, n_rows, n_cols }))
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
        let Self { weights, n_rows, n_cols } = *self;
        let Operands { w, x, out } = Operands::new(weights, copy, x, n_inputs, out);
        let n_inputs = c_int::try_from(n_inputs)?;
        let (w, x, out) = (w.as_ptr(), x.as_ptr(), out.as_mut_ptr());
        if n_inputs == 1 {
            // SAFETY: L1: a matrix, one input and one output of these lengths, of which the output is ours alone.
            unsafe { peer_openblas_sgemv(n_rows, n_cols, w, x, out) }
        } else {
            // SAFETY: L1: the same with as many inputs and outputs as there are said to be.
            unsafe { peer_openblas_sgemm(n_rows, n_cols, n_inputs, w, x, out) }
        }
        Ok(())
    }
}
