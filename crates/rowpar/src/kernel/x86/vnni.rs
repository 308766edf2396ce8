//! Sets with an instruction that multiplies bytes and sums them in 32 bits: AVX-VNNI, and AVX-512 with VNNI.
//!
//! Registers stay at 256 bits. (ARCHITECTURE.md has what wider ones gained.)

use std::arch::x86_64::*;

use super::ymm::{Dot, Ymm};
use crate::kernel::simd::Task;

/// Calls an operation of the set that a token is of.
macro_rules! with {
    ($token:expr, $call:expr) => {{
        let _: Self = $token;
        // SAFETY: K1: the token is of a CPU with all of the set.
        unsafe { $call }
    }};
}

/// A set whose instruction is `$dot`.
macro_rules! vnni {
    ($(#[$doc:meta])* $name:ident, $features:literal, $dot:ident, $needs:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(in crate::kernel) struct $name(());

        impl $name {
            /// A token.
            ///
            /// # Safety
            ///
            #[doc = concat!("The CPU must have ", $needs, ".")]
            pub(in crate::kernel) unsafe fn new() -> Self {
                Self(())
            }
        }

        // SAFETY: the one constructor asks for a CPU with the features.
        unsafe impl Dot for $name {
            const BIAS: u32 = 128;

            #[inline]
            fn enter<T: Task>(self, task: T) {
                #[target_feature(enable = $features)]
                fn inner<T: Task>(simd: Ymm<$name>, task: T) {
                    task.run(simd);
                }
                // SAFETY: K1: the token is of a CPU with all that is enabled.
                unsafe { inner(Ymm(self), task) }
            }

            #[inline(always)]
            fn sums_unsigned<const N: usize, const MAX: i32>(
                self,
                w: [__m256i; N],
                x: [__m256i; N],
            ) -> __m256i {
                let mut sums = [with!(self, _mm256_setzero_si256()); 2];
                for (k, (w, x)) in w.into_iter().zip(x).enumerate() {
                    // Two sums where there are many, as the instruction takes longer than the next one needs to start.
                    let sum = &mut sums[if N > 2 { k % 2 } else { 0 }];
                    *sum = with!(self, $dot(*sum, w, x));
                }
                if N > 2 { with!(self, _mm256_add_epi32(sums[0], sums[1])) } else { sums[0] }
            }

            #[inline(always)]
            fn sums_signed<const N: usize>(self, mut w: [__m256i; N], x: [__m256i; N]) -> __m256i {
                for w in &mut w {
                    // With its highest bit turned over, a byte is 128 more, and unsigned.
                    *w = with!(self, _mm256_xor_si256(*w, _mm256_set1_epi8(i8::MIN)));
                }
                self.sums_unsigned::<N, 255>(w, x)
            }
        }
    };
}

vnni!(
    /// AVX-VNNI beside AVX2 and F16C.
    AvxVnni,
    "avx2,f16c,avxvnni",
    _mm256_dpbusd_avx_epi32,
    "AVX2, F16C and AVX-VNNI"
);

vnni!(
    /// AVX-512 F, BW, VL and VNNI beside AVX2 and F16C: twice the registers, too.
    Avx512,
    "avx2,f16c,avx512f,avx512bw,avx512vl,avx512vnni",
    _mm256_dpbusd_epi32,
    "AVX2, F16C, FMA, and AVX-512 F, BW, VL and VNNI"
);
