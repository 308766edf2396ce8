//! Products of bytes, summed in 32 bits: by NEON alone, or by the dot product extension.

use std::arch::{aarch64::*, asm};

use super::Arm;
use crate::kernel::simd::Task;

/// What differs between the sets: how bytes are multiplied and summed.
///
/// A value is a token of a CPU with NEON, and what the type stands for besides (K1).
pub(super) trait Dot: Copy {
    /// Runs `task`, compiled for this instruction set.
    fn enter<T: Task>(self, task: T);
    /// The sum of four neighbouring products, added to each word. Inputs are within ±127.
    fn dot(self, sum: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t;
}

/// Nothing but NEON.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Neon(());

/// NEON and the dot product extension.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Dotprod(());

impl Neon {
    /// A token.
    ///
    /// # Safety
    ///
    /// The CPU must have NEON.
    pub(in crate::kernel) unsafe fn new() -> Self {
        Self(())
    }
}

impl Dotprod {
    /// A token.
    ///
    /// # Safety
    ///
    /// The CPU must have NEON and the dot product extension.
    pub(in crate::kernel) unsafe fn new() -> Self {
        Self(())
    }
}

impl Dot for Neon {
    #[inline]
    fn enter<T: Task>(self, task: T) {
        #[target_feature(enable = "neon")]
        fn inner<T: Task>(simd: Arm<Neon>, task: T) {
            task.run(simd);
        }
        // SAFETY: K1: the token is of a CPU with NEON.
        unsafe { inner(Arm(self), task) }
    }

    #[inline(always)]
    fn dot(self, sum: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
        // SAFETY: K1, as above.
        unsafe { dot(sum, w, x) }
    }
}

/// Products fit 16 bits, and sums of two as well: 128 · 127, twice.
#[inline]
#[target_feature(enable = "neon")]
fn dot(sum: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    let low = vmull_s8(vget_low_s8(w), vget_low_s8(x));
    vpadalq_s16(sum, vpaddq_s16(low, vmull_high_s8(w, x)))
}

impl Dot for Dotprod {
    #[inline]
    fn enter<T: Task>(self, task: T) {
        #[target_feature(enable = "neon,dotprod")]
        fn inner<T: Task>(simd: Arm<Dotprod>, task: T) {
            task.run(simd);
        }
        // SAFETY: K1: the token is of a CPU with both.
        unsafe { inner(Arm(self), task) }
    }

    #[inline(always)]
    fn dot(self, sum: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
        #[inline]
        #[target_feature(enable = "neon,dotprod")]
        fn inner(mut sum: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
            // The intrinsic is not stable in the oldest Rust that this crate supports.
            // SAFETY: reads and writes the named registers alone.
            unsafe {
                asm!(
                    "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
                    inout(vreg) sum, in(vreg) w, in(vreg) x,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            sum
        }
        // SAFETY: K1, as above.
        unsafe { inner(sum, w, x) }
    }
}
