//! Libraries that multiply matrices: kernels and threads of their own, set up as their documentation advises for one matrix
//! and few inputs.
//!
//! | Invariant | |
//! |---|---|
//! | **L1** | `multiply` checks that weights, inputs and outputs are as long as the shape says before a library sees a pointer. |

use std::env;

use benches::library::{Library, Weights};
use benches::{Backend, PoolError};

#[cfg(feature = "candle")]
mod candle;
mod gemm;
mod matrixmultiply;
#[cfg(has_openblas)]
mod openblas;
mod original;

/// Sets a library up for `n_threads`, the caller included.
///
/// # Errors
///
/// `backend` is no library, it is one of those [`missing`](crate::missing), it cannot have so many threads, or the environment does
/// not give it as many (see [`environment`](benches::library::environment)).
pub fn open_library(backend: Backend, n_threads: usize) -> Result<Box<dyn Library>, PoolError> {
    let n_threads = n_threads.max(1);
    match backend {
        Backend::Gemm => Ok(Box::new(gemm::Gemm::new(n_threads)?)),
        Backend::Matrixmultiply => Ok(Box::new(matrixmultiply::Matrixmultiply::new(n_threads)?)),
        Backend::OriginalMatvec => Ok(Box::new(original::OriginalMatvec::new(n_threads))),
        #[cfg(has_openblas)]
        Backend::Openblas => Ok(Box::new(openblas::Openblas::new(n_threads)?)),
        #[cfg(feature = "candle")]
        Backend::Candle => Ok(Box::new(candle::Candle::new(n_threads)?)),
        _ => Err(match crate::missing().into_iter().find(|peer| peer.backend == backend) {
            Some(peer) => format!("not built in (try: {})", peer.install).into(),
            None => "not a library".into(),
        }),
    }
}

/// Refuses unless a variable that a library reads its number of threads from has that number.
fn expect_variable(name: &str, n_threads: usize) -> Result<(), PoolError> {
    match env::var(name) {
        Ok(value) if value == n_threads.to_string() => Ok(()),
        _ => Err(format!("{name} has to be {n_threads} in the environment").into()),
    }
}

/// L1: one matrix of floats, some inputs, and room for as many outputs.
struct Operands<'a> {
    w: &'a [f32],
    x: &'a [f32],
    out: &'a mut [f32],
}

impl<'a> Operands<'a> {
    /// # Panics
    ///
    /// If the weights are no floats, there is no such matrix, or `x` or `out` have another length than `n_inputs` need.
    fn new(
        weights: Weights<'a>,
        copy: usize,
        x: &'a [f32],
        n_inputs: usize,
        out: &'a mut [f32],
    ) -> Self {
        let w = weights.floats(copy);
        assert_eq!(w.len(), weights.n_rows * weights.n_cols);
        assert_eq!(x.len(), n_inputs * weights.n_cols);
        assert_eq!(out.len(), n_inputs * weights.n_rows);
        Self { w, x, out }
    }
}
