//! Reading weights and doing next to nothing with them: the ceiling that a kernel is measured against.

use super::Kernels;

/// The order in which [`Kernels::read_range`] reads. Which is the fastest depends on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadPattern {
    /// As the bytes lie.
    Linear,
    /// As the bytes lie, with a software prefetch ahead.
    Prefetched,
    /// Eight places at a time, each with a software prefetch ahead: as the kernels read.
    Streams,
}

impl ReadPattern {
    /// Every pattern. The ceiling is the fastest one.
    pub const ALL: &[Self] = &[Self::Linear, Self::Prefetched, Self::Streams];
}

impl Kernels {
    /// Reads all of `w` on this thread and returns the exclusive or of its bits.
    ///
    /// No matvec over `w` can be faster than its bytes can be read: bench a kernel against the fastest
    /// pattern, in the same process, over the same bytes. Patterns other than the linear one need software
    /// prefetch, and are linear on instruction sets where this crate has none.
    ///
    /// # Examples
    ///
    /// ```
    /// use rowpar::{Kernels, ReadPattern};
    ///
    /// let w = vec![1.0; 10_000];
    /// for pattern in ReadPattern::ALL {
    ///     let start = std::time::Instant::now();
    ///     std::hint::black_box(Kernels::best().read_range(&w, *pattern));
    ///     println!("{pattern:?}: {:.1} GB/s", 40_000.0 / start.elapsed().as_nanos() as f64);
    /// }
    /// ```
    pub fn read_range(self, w: &[f32], pattern: ReadPattern) -> u32 {
        match (self.isa(), pattern) {
            #[cfg(target_arch = "x86_64")]
            (super::Isa::Avx2, pattern) => {
                // SAFETY: K1: this set of kernels exists, so the CPU has AVX2.
                unsafe { avx2::fold(w, pattern) }
            }
            _ => fold(w),
        }
    }
}

fn fold(w: &[f32]) -> u32 {
    w.iter().fold(0, |folded, value| folded ^ value.to_bits())
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::ReadPattern;
    use crate::kernel::prefetch::prefetch_l2;

    /// Values that are folded at once: four cache lines, in eight registers.
    const BLOCK: usize = 64;
    /// Lines that are read at once from each of eight streams: the same, in another order.
    const LINE: usize = 16;
    /// Values of a stream, before it goes on behind the others: 16 KB.
    const STREAM: usize = 4096;
    const AHEAD_BYTES: usize = 32 * 1024;
    const STREAM_AHEAD: usize = 512;

    #[target_feature(enable = "avx2")]
    pub(super) fn fold(w: &[f32], pattern: ReadPattern) -> u32 {
        let end = w.as_ptr_range().end.addr();
        let mut acc = [_mm256_setzero_ps(); 8];
        let in_streams = if pattern == ReadPattern::Streams { w.len() / (8 * STREAM) } else { 0 };
        let (streamed, rest) = w.split_at(in_streams * 8 * STREAM);
        for group in streamed.as_chunks::<{ 8 * STREAM }>().0 {
            fold_streams(group, end, &mut acc);
        }
        let (blocks, rest) = rest.as_chunks::<BLOCK>();
        for block in blocks {
            let next = block.as_ptr().wrapping_byte_add(AHEAD_BYTES);
            if pattern == ReadPattern::Prefetched && next.addr() < end {
                for line in 0..BLOCK / LINE {
                    prefetch_l2(next.wrapping_add(LINE * line));
                }
            }
            for (acc, values) in acc.iter_mut().zip(block.as_chunks::<8>().0) {
                *acc = _mm256_xor_ps(*acc, load(values));
            }
        }
        let mut lanes = [0.0; BLOCK];
        for (lanes, acc) in lanes.as_chunks_mut::<8>().0.iter_mut().zip(acc) {
            // SAFETY: `lanes` has room for eight floats, and the store needs no alignment.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), acc) };
        }
        super::fold(rest) ^ super::fold(&lanes)
    }

    /// A line of each of eight streams in turn.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn fold_streams(group: &[f32; 8 * STREAM], end: usize, acc: &mut [__m256; 8]) {
        let (streams, _) = group.as_chunks::<STREAM>();
        for line in 0..STREAM / LINE {
            let ahead = LINE * line + STREAM_AHEAD;
            let offset = if ahead < STREAM { ahead } else { ahead + 7 * STREAM };
            for (stream, acc) in streams.iter().zip(acc.iter_mut()) {
                let next = stream.as_ptr().wrapping_add(offset);
                if next.addr() < end {
                    prefetch_l2(next);
                }
                let halves = stream.as_chunks::<LINE>().0[line].as_chunks::<8>().0;
                *acc = _mm256_xor_ps(*acc, _mm256_xor_ps(load(&halves[0]), load(&halves[1])));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(values: &[f32; 8]) -> __m256 {
        // SAFETY: `values` are eight floats, and the load needs no alignment.
        unsafe { _mm256_loadu_ps(values.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_once() {
        for len in [0, 1, 63, 64, 65, 200, 32_768, 100_000] {
            let w: Vec<f32> = (0..len).map(|i| f32::from_bits(1 << (i % 31))).collect();
            let expected = w.iter().fold(0, |folded, value| folded ^ value.to_bits());
            for kernels in Kernels::supported() {
                for pattern in ReadPattern::ALL {
                    let context = format!("{len} values, {pattern:?}, {}", kernels.isa());
                    assert_eq!(kernels.read_range(&w, *pattern), expected, "{context}");
                }
            }
        }
    }
}
