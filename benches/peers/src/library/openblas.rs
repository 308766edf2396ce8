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

struct Loaded<'a>(Weights<'a>);

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
        c_int::try_from(weights.n_rows)?;
        c_int::try_from(weights.n_cols)?;
        Ok(Box::new(Loaded(weights)))
    }
}

impl Product for Loaded<'_> {
    fn multiply(&mut self, copy: usize, x: &[f32], n_inputs: usize, out: &mut [f32]) {
        let Operands { w, x, out } = Operands::new(self.0, copy, x, n_inputs, out);
        let int = |n: usize| c_int::try_from(n).expect("checked by `load`");
        let (n_rows, n_cols) = (int(self.0.n_rows), int(self.0.n_cols));
        let (w, x, out) = (w.as_ptr(), x.as_ptr(), out.as_mut_ptr());
        if n_inputs == 1 {
            // SAFETY: L1: a matrix, one input and one output of these lengths, of which the output is ours alone.
            unsafe { peer_openblas_sgemv(n_rows, n_cols, w, x, out) }
        } else {
            // SAFETY: L1: the same with as many inputs and outputs as there are said to be.
            unsafe { peer_openblas_sgemm(n_rows, n_cols, int(n_inputs), w, x, out) }
        }
    }
}
