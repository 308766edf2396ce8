//! Kernels by instruction set: what this CPU can run, and which one is taken.
//!
//! A kernel computes a range of rows for some inputs at once. It is put together from three parts that know nothing of each
//! other:
//!
//! | part | says | where |
//! |---|---|---|
//! | [`Simd`](simd::Simd) | what eight lanes can do | `portable.rs`, `x86/`, `arm/`, `wasm.rs` |
//! | [`Source`](source::Source) | where the bytes of eight rows lie | `source.rs` |
//! | [`Kernel`](rows::Kernel) | how a format advances eight sums | `floats.rs`, `block/` |
//!
//! `rows.rs` leads a kernel over the rows; `table.rs` picks one by format and input.
//!
//! | Invariant | |
//! |---|---|
//! | **K1** | A [`Kernels`], and a token that implements `Simd`, exists only for an instruction set that this CPU was seen to have. |

use std::sync::OnceLock;

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod arm;
mod block;
#[cfg(target_endian = "little")]
pub(crate) mod bytes;
mod floats;
mod fp_env;
mod isa;
mod portable;
mod prefetch;
mod read;
mod rows;
mod simd;
mod source;
mod table;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use self::{
    fp_env::DefaultFpEnv,
    source::TILE_ROWS,
    table::{NextRows, RowRange},
};
pub use self::{
    fp_env::with_default_floats,
    isa::{ISA_VARIABLE, Isa, ParseIsaError},
    read::ReadPattern,
};
use crate::{Activation, Matrix};

/// The kernels of one instruction set. Which set it is changes the speed and nothing else.
///
/// [`matvec`](crate::matvec) and its kin take [`Kernels::best`]. Tests and benches loop over
/// [`Kernels::supported`] and call the `_with` functions, or [`Kernels::matvec`] directly.
///
/// # Examples
///
/// ```
/// use rowpar::{Kernels, Matrix};
///
/// println!("this process uses the {} kernels", Kernels::best().isa());
/// let w = [1.0, 2.0, 3.0, 4.0];
/// let w = Matrix::from_f32(&w, 2, 2)?;
/// for kernels in Kernels::supported() {
///     let mut out = [0.0; 2];
///     kernels.matvec(w, &[(&[1.0, 1.0][..]).into()], &mut out);
///     assert_eq!(out, [3.0, 7.0]);
/// }
/// # Ok::<(), rowpar::MatrixError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels {
    isa: Isa,
}

impl Kernels {
    /// Every set this CPU can run, slowest first. Never empty: the scalar set is always there.
    pub fn supported() -> Vec<Self> {
        Isa::ALL.iter().filter_map(|isa| Self::for_isa(*isa)).collect()
    }

    /// The kernels of `isa`, or `None` if this CPU (or this build) does not have it.
    pub fn for_isa(isa: Isa) -> Option<Self> {
        isa.detected().then_some(Self { isa })
    }

    /// The fastest set, or the one that the environment variable `ROWPAR_ISA` names.
    ///
    /// Detected at the first call, and the same from then on. A value of the variable that names no set, or
    /// one that this CPU does not have, is reported once on stderr and ignored.
    pub fn best() -> Self {
        static BEST: OnceLock<Kernels> = OnceLock::new();
        *BEST.get_or_init(|| {
            let forced = isa::forced().and_then(|isa| {
                let kernels = Self::for_isa(isa);
                if kernels.is_none() {
                    isa::report(format_args!("this CPU has no {isa} kernels"));
                }
                kernels
            });
            forced.or_else(|| Self::supported().pop()).unwrap_or(Self { isa: Isa::Scalar })
        })
    }

    /// The instruction set, whose name can be printed.
    pub fn isa(self) -> Isa {
        self.isa
    }

    /// [`matvec_batch`](crate::matvec_batch) on the calling thread.
    ///
    /// Several inputs share one pass over the weights: eight, four or two of them at a time. The default floating-point
    /// environment is set for the duration of the call.
    ///
    /// # Panics
    ///
    /// If an input has not `w.n_cols()` values, or `out` has not `x.len() * w.n_rows()`.
    pub fn matvec(self, w: Matrix<'_>, x: &[Activation<'_>], out: &mut [f32]) {
        crate::matvec_batch_with(self, &crate::Serial, w, x, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scalar_set_is_always_there_and_first() {
        let sets = Kernels::supported();
        assert_eq!(sets[0].isa(), Isa::Scalar);
        let order = |kernels: &Kernels| Isa::ALL.iter().position(|isa| *isa == kernels.isa());
        assert!(sets.is_sorted_by_key(order));
    }
}
