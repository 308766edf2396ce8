//! Kernels by instruction set: what this CPU can run, and which one is taken.
//!
//! A kernel computes a range of rows, given as slices: `w` row-major, one `x` and one `out` for each input.
//! It is called with shapes that were checked here, and under the default floating-point environment.
//!
//! | Invariant | |
//! |---|---|
//! | **K1** | A [`Kernels`] exists only for an instruction set that this CPU was seen to have. |
//! | **K2** | A kernel is called only with `w.len() == out.len() * x.len()`, all inputs of one length, and all outputs of one length. |

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
mod avx2;
mod fp_env;
mod isa;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
mod prefetch;
mod read;
mod scalar;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
mod tiles;

use self::fp_env::DefaultFpEnv;
pub use self::{
    isa::{ISA_VARIABLE, Isa, ParseIsaError},
    read::ReadPattern,
};

/// `B` inputs and outputs that share one pass over the weights.
type MatvecFn<const B: usize> = unsafe fn(&[f32], [&[f32]; B], [&mut [f32]; B]);

/// The kernels of one instruction set. Which set it is changes the speed and nothing else.
///
/// [`matvec_rows`](crate::matvec_rows) and its kin take [`Kernels::best`]. Tests and benches loop over
/// [`Kernels::supported`] and call the `_with` functions, or [`matvec_range`](Self::matvec_range) directly.
///
/// # Examples
///
/// ```
/// use rowpar::Kernels;
///
/// println!("this process uses the {} kernels", Kernels::best().isa());
/// for kernels in Kernels::supported() {
///     let mut out = [0.0; 2];
///     kernels.matvec_range(&[1.0, 2.0, 3.0, 4.0], &[1.0, 1.0], &mut out);
///     assert_eq!(out, [3.0, 7.0]);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    isa: Isa,
    matvec: MatvecFn<1>,
    matvec2: MatvecFn<2>,
}

impl Kernels {
    /// Every set this CPU can run, slowest first. Never empty: the scalar set is always there.
    pub fn supported() -> Vec<Self> {
        Isa::ALL.iter().filter_map(|isa| Self::for_isa(*isa)).collect()
    }

    /// The kernels of `isa`, or `None` if this CPU (or this build) does not have it.
    pub fn for_isa(isa: Isa) -> Option<Self> {
        match isa {
            Isa::Scalar => Some(Self::SCALAR),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if std::arch::is_x86_feature_detected!("avx2") => {
                Some(Self { isa, matvec: avx2::matvec::<1>, matvec2: avx2::matvec::<2> })
            }
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon if std::arch::is_aarch64_feature_detected!("neon") => {
                Some(Self { isa, matvec: neon::matvec::<1>, matvec2: neon::matvec::<2> })
            }
            _ => None,
        }
    }

    const SCALAR: Self =
        Self { isa: Isa::Scalar, matvec: scalar::matvec::<1>, matvec2: scalar::matvec::<2> };

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
            forced.or_else(|| Self::supported().pop()).unwrap_or(Self::SCALAR)
        })
    }

    /// The instruction set, whose name can be printed.
    pub fn isa(self) -> Isa {
        self.isa
    }

    /// `out[i] = Σ_j w[i·n + j]·x[j]` with `n = x.len()`, on this thread, each row as
    /// [`oracle::dot_f32`](crate::oracle::dot_f32) has it.
    ///
    /// `w` and `out` may be the rows of a range of a larger matrix: this is what a pool runs. The default
    /// floating-point environment is set for the duration of the call.
    ///
    /// # Panics
    ///
    /// If `w.len() != out.len() * x.len()`.
    pub fn matvec_range(self, w: &[f32], x: &[f32], out: &mut [f32]) {
        check_matrix(w.len(), out.len(), x.len());
        let _env = DefaultFpEnv::enter();
        // SAFETY: K1: the CPU has what the kernel enables. K2: checked above; one input, one output.
        unsafe { (self.matvec)(w, [x], [out]) }
    }

    /// The same for two inputs, in one pass over `w`; each output as [`matvec_range`](Self::matvec_range)
    /// on that input has it.
    ///
    /// # Panics
    ///
    /// If `w.len() != out1.len() * x1.len()`, or if the inputs or the outputs differ in length.
    pub fn matvec2_range(
        self,
        w: &[f32],
        x1: &[f32],
        x2: &[f32],
        out1: &mut [f32],
        out2: &mut [f32],
    ) {
        check_pair("x", x1.len(), x2.len());
        check_pair("out", out1.len(), out2.len());
        check_matrix(w.len(), out1.len(), x1.len());
        let _env = DefaultFpEnv::enter();
        // SAFETY: K1: the CPU has what the kernel enables. K2: checked above.
        unsafe { (self.matvec2)(w, [x1, x2], [out1, out2]) }
    }
}

/// Panics unless `w` holds exactly `n_rows` rows of `n_cols` values.
#[track_caller]
pub(crate) fn check_matrix(w_len: usize, n_rows: usize, n_cols: usize) {
    let expected = n_rows.checked_mul(n_cols);
    assert!(
        expected == Some(w_len),
        "w has {w_len} values but {n_rows} rows of {n_cols} columns need {}",
        expected.map_or("more than can be counted".to_owned(), |n| n.to_string())
    );
}

/// Panics unless both of a pair of slices are of one length.
#[track_caller]
pub(crate) fn check_pair(name: &str, first: usize, second: usize) {
    assert!(first == second, "{name}1 has {first} values but {name}2 has {second}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scalar_set_is_always_there_and_first() {
        let sets = Kernels::supported();
        assert_eq!(sets[0].isa(), Isa::Scalar);
        assert!(sets.is_sorted_by_key(|kernels| kernels.isa()));
    }

    #[test]
    fn a_shape_that_overflows_is_refused() {
        let overflowing = || check_matrix(0, usize::MAX, 2);
        assert!(std::panic::catch_unwind(overflowing).is_err());
        check_matrix(0, usize::MAX, 0);
        check_matrix(0, 0, usize::MAX);
    }
}
