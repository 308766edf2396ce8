//! Products of bytes, summed in 32 bits: by NEON alone, or by the dot product extension.

use std::arch::{aarch64::*, asm};

use super::{Arm, splat_bytes};
use crate::kernel::simd::{Task, words_in_16_bits};

/// What differs between the sets: how bytes are multiplied and summed.
///
/// # Safety
///
/// A value must be a token of a CPU with NEON, and what the type stands for besides (K1).
pub(in crate::kernel) unsafe trait Dot: Copy {
    /// Runs `task`, compiled for this instruction set.
    fn enter<T: Task>(self, task: T);
    /// The sums of the products of signed bytes within ±`MAX`, or -128 where `MAX` is 128, with others within ±127, which
    /// are the same in each lane.
    fn dot<const N: usize, const MAX: i32>(
        self,
        w: [[uint32x4_t; 2]; N],
        x: &[[i8; 4]; N],
    ) -> [uint32x4_t; 2];
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

// SAFETY: the one constructor asks for such a CPU.
unsafe impl Dot for Neon {
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
    fn dot<const N: usize, const MAX: i32>(
        self,
        w: [[uint32x4_t; 2]; N],
        x: &[[i8; 4]; N],
    ) -> [uint32x4_t; 2] {
        // SAFETY: K1, as above.
        unsafe { widened::<N, MAX>(w, x) }
    }
}

/// Products fit 16 bits. So do sums of neighbours, of as many words as are taken at once.
#[inline]
#[target_feature(enable = "neon")]
fn widened<const N: usize, const MAX: i32>(
    w: [[uint32x4_t; 2]; N],
    x: &[[i8; 4]; N],
) -> [uint32x4_t; 2] {
    let at_once = const { words_in_16_bits(MAX) };
    let mut sums = [vdupq_n_s32(0); 2];
    // Of each half of the lanes, the products of the first and of the last two.
    let mut products = [[vdupq_n_s16(0); 2]; 2];
    // One loop, which is unrolled; two, one in the other, were not.
    for (k, (w, x)) in w.into_iter().zip(x).enumerate() {
        let x = splat_bytes(*x);
        for ([low, high], w) in products.iter_mut().zip(w) {
            let w = vreinterpretq_s8_u32(w);
            *low = vmlal_s8(*low, vget_low_s8(w), vget_low_s8(x));
            *high = vmlal_high_s8(*high, w, x);
        }
        if (k + 1).is_multiple_of(at_once) || k + 1 == N {
            for (sum, [low, high]) in sums.iter_mut().zip(products) {
                *sum = vpadalq_s16(*sum, vpaddq_s16(low, high));
            }
            products = [[vdupq_n_s16(0); 2]; 2];
        }
    }
    [vreinterpretq_u32_s32(sums[0]), vreinterpretq_u32_s32(sums[1])]
}

// SAFETY: the one constructor asks for such a CPU.
unsafe impl Dot for Dotprod {
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
    fn dot<const N: usize, const MAX: i32>(
        self,
        w: [[uint32x4_t; 2]; N],
        x: &[[i8; 4]; N],
    ) -> [uint32x4_t; 2] {
        #[inline]
        #[target_feature(enable = "neon,dotprod")]
        fn inner<const N: usize>(w: [[uint32x4_t; 2]; N], x: &[[i8; 4]; N]) -> [uint32x4_t; 2] {
            // Two sums, as the instruction takes longer than the next one needs to start.
            let mut sums = [[vdupq_n_u32(0); 2]; 2];
            for (k, (w, x)) in w.into_iter().zip(x).enumerate() {
                let x = splat_bytes(*x);
                for (sum, w) in sums[k % 2].iter_mut().zip(w) {
                    *sum = sdot(*sum, w, x);
                }
            }
            let [[a_low, a_high], [b_low, b_high]] = sums;
            [vaddq_u32(a_low, b_low), vaddq_u32(a_high, b_high)]
        }
        // SAFETY: K1, as above.
        unsafe { inner(w, x) }
    }
}

/// Four products for each lane, added to what is there. The intrinsic is not stable in the oldest Rust that this crate is
/// for.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(mut sum: uint32x4_t, w: uint32x4_t, x: int8x16_t) -> uint32x4_t {
    // SAFETY: the function enables the instruction, which reads and writes the named registers alone.
    unsafe {
        asm!(
            "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sum, in(vreg) w, in(vreg) x,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}
