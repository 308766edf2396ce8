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
    /// Of the products with vectors as they are: each four numbers whose sum is that of all products of the first halves, and of
    /// the second ones.
    fn partial_sums<const N: usize, const MAX: i32>(
        self,
        w: [[uint32x4_t; 2]; N],
        x: [int8x16_t; N],
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

    /// Products fit 16 bits. So do sums of neighbours, of as many words as are taken at once.
    #[inline(always)]
    fn dot<const N: usize, const MAX: i32>(
        self,
        w: [[uint32x4_t; 2]; N],
        x: &[[i8; 4]; N],
    ) -> [uint32x4_t; 2] {
        let at_once = const { words_in_16_bits(MAX) };
        let zero = neon!(Arm(self), vdupq_n_s16(0));
        let mut sums = [neon!(Arm(self), vdupq_n_s32(0)); 2];
        // The products of the first and of the last two lanes.
        let mut products = [[zero; 2]; 2];
        // One loop, which is unrolled; two, one in the other, were not.
        for (k, (w, x)) in w.into_iter().zip(x).enumerate() {
            let x = neon!(Arm(self), splat_bytes(*x));
            for ([low, high], w) in products.iter_mut().zip(w) {
                *low = neon!(Arm(self), add_low(*low, w, x));
                *high = neon!(Arm(self), add_high(*high, w, x));
            }
            if (k + 1).is_multiple_of(at_once) || k + 1 == N {
                for (sum, [low, high]) in sums.iter_mut().zip(products) {
                    let pairs = neon!(Arm(self), vpaddq_s16(low, high));
                    *sum = neon!(Arm(self), vpadalq_s16(*sum, pairs));
                }
                products = [[zero; 2]; 2];
            }
        }
        neon!(Arm(self), unsigned(sums))
    }

    /// As above: a sum of 16 bits gets two products of a vector, here one from each half.
    #[inline(always)]
    fn partial_sums<const N: usize, const MAX: i32>(
        self,
        w: [[uint32x4_t; 2]; N],
        x: [int8x16_t; N],
    ) -> [uint32x4_t; 2] {
        let at_once = const { words_in_16_bits(MAX) };
        let zero = neon!(Arm(self), vdupq_n_s16(0));
        let mut sums = [neon!(Arm(self), vdupq_n_s32(0)); 2];
        let mut products = [zero; 2];
        for (k, (w, x)) in w.into_iter().zip(x).enumerate() {
            for (products, w) in products.iter_mut().zip(w) {
                *products = neon!(Arm(self), add_low(*products, w, x));
                *products = neon!(Arm(self), add_high(*products, w, x));
            }
            if (k + 1).is_multiple_of(at_once) || k + 1 == N {
                for (sum, products) in sums.iter_mut().zip(products) {
                    *sum = neon!(Arm(self), vpadalq_s16(*sum, products));
                }
                products = [zero; 2];
            }
        }
        neon!(Arm(self), unsigned(sums))
    }
}

/// Eight products of the first eight bytes, added to what is there.
#[inline]
#[target_feature(enable = "neon")]
fn add_low(sums: int16x8_t, w: uint32x4_t, x: int8x16_t) -> int16x8_t {
    vmlal_s8(sums, vget_low_s8(vreinterpretq_s8_u32(w)), vget_low_s8(x))
}

/// The same of the last eight.
#[inline]
#[target_feature(enable = "neon")]
fn add_high(sums: int16x8_t, w: uint32x4_t, x: int8x16_t) -> int16x8_t {
    vmlal_high_s8(sums, vreinterpretq_s8_u32(w), x)
}

#[inline]
#[target_feature(enable = "neon")]
fn unsigned([low, high]: [int32x4_t; 2]) -> [uint32x4_t; 2] {
    [vreinterpretq_u32_s32(low), vreinterpretq_u32_s32(high)]
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
        // Two sums, as the instruction takes longer than the next one needs to start.
        let mut sums = [[neon!(Arm(self), vdupq_n_u32(0)); 2]; 2];
        for (k, (w, x)) in w.into_iter().zip(x).enumerate() {
            let x = neon!(Arm(self), splat_bytes(*x));
            for (sum, w) in sums[k % 2].iter_mut().zip(w) {
                // SAFETY: K1: the token is of a CPU with both.
                *sum = unsafe { sdot(*sum, w, x) };
            }
        }
        let [[a_low, a_high], [b_low, b_high]] = sums;
        [neon!(Arm(self), vaddq_u32(a_low, b_low)), neon!(Arm(self), vaddq_u32(a_high, b_high))]
    }

    #[inline(always)]
    fn partial_sums<const N: usize, const MAX: i32>(
        self,
        w: [[uint32x4_t; 2]; N],
        x: [int8x16_t; N],
    ) -> [uint32x4_t; 2] {
        let mut sums = [neon!(Arm(self), vdupq_n_u32(0)); 2];
        for (w, x) in w.into_iter().zip(x) {
            for (sum, w) in sums.iter_mut().zip(w) {
                // SAFETY: K1: the token is of a CPU with both.
                *sum = unsafe { sdot(*sum, w, x) };
            }
        }
        sums
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
