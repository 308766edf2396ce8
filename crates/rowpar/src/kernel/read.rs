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
    /// Reads all of `w` on this thread and returns the exclusive or of its words of four bytes, little endian, the last
    /// one filled up with zeros.
    ///
    /// No matvec over `w` can be faster than its bytes can be read: bench a kernel against the fastest
    /// pattern, in the same process, over the same bytes. Patterns other than the linear one exist on AVX2 and
    /// what builds on it; on other sets all are linear, which may be slower than the kernels are.
    ///
    /// # Examples
    ///
    /// ```
    /// use rowpar::{Kernels, ReadPattern};
    ///
    /// let w = vec![1; 40_000];
    /// for pattern in ReadPattern::ALL {
    ///     let start = std::time::Instant::now();
    ///     std::hint::black_box(Kernels::best().read_range(&w, *pattern));
    ///     println!("{pattern:?}: {:.1} GB/s", 40_000.0 / start.elapsed().as_nanos() as f64);
    /// }
    /// ```
    pub fn read_range(self, w: &[u8], pattern: ReadPattern) -> u32 {
        match (self.isa(), pattern) {
            #[cfg(target_arch = "x86_64")]
            (super::Isa::Avx2 | super::Isa::AvxVnni | super::Isa::Avx512, pattern) => {
                // SAFETY: K1: this set of kernels exists, so the CPU has AVX2.
                unsafe { avx2::fold(w, pattern) }
            }
            _ => fold(w),
        }
    }
}

fn fold(w: &[u8]) -> u32 {
    let (words, rest) = w.as_chunks();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().fold(u32::from_le_bytes(last), |folded, word| folded ^ u32::from_le_bytes(*word))
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::ReadPattern;
    use crate::kernel::prefetch::prefetch_l2;

    /// Bytes that are folded at once: four cache lines, in eight registers.
    const BLOCK: usize = 256;
    /// A line; as many bytes are read at once from each of eight streams: the same, in another order.
    const LINE: usize = 64;
    /// Bytes of a stream, before it goes on behind the others.
    const STREAM: usize = 16 * 1024;
    const AHEAD: usize = 32 * 1024;
    const STREAM_AHEAD: usize = 768;

    #[target_feature(enable = "avx2")]
    pub(super) fn fold(w: &[u8], pattern: ReadPattern) -> u32 {
        let end = w.as_ptr_range().end.addr();
        let mut acc = [_mm256_setzero_si256(); 8];
        let in_streams = if pattern == ReadPattern::Streams { w.len() / (8 * STREAM) } else { 0 };
        let (streamed, rest) = w.split_at(in_streams * 8 * STREAM);
        for group in streamed.as_chunks::<{ 8 * STREAM }>().0 {
            fold_streams(group, end, &mut acc);
        }
        let (blocks, rest) = rest.as_chunks::<BLOCK>();
        for block in blocks {
            let next = block.as_ptr().wrapping_add(AHEAD);
            if pattern == ReadPattern::Prefetched && next.addr() < end {
                for line in 0..BLOCK / LINE {
                    prefetch_l2(next.wrapping_add(LINE * line));
                }
            }
            for (acc, bytes) in acc.iter_mut().zip(block.as_chunks().0) {
                *acc = _mm256_xor_si256(*acc, load(bytes));
            }
        }
        let mut lanes = [0; BLOCK];
        for (lanes, acc) in lanes.as_chunks_mut::<32>().0.iter_mut().zip(acc) {
            // SAFETY: `lanes` has room for 32 bytes, and the store needs no alignment.
            unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), acc) };
        }
        super::fold(rest) ^ super::fold(&lanes)
    }

    /// A line of each of eight streams in turn.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn fold_streams(group: &[u8; 8 * STREAM], end: usize, acc: &mut [__m256i; 8]) {
        let (streams, _) = group.as_chunks::<STREAM>();
        for line in 0..STREAM / LINE {
            let ahead = LINE * line + STREAM_AHEAD;
            let offset = if ahead < STREAM { ahead } else { ahead + 7 * STREAM };
            for (stream, acc) in streams.iter().zip(acc.iter_mut()) {
                let next = stream.as_ptr().wrapping_add(offset);
                if next.addr() < end {
                    prefetch_l2(next);
                }
                let halves = stream.as_chunks::<LINE>().0[line].as_chunks().0;
                *acc = _mm256_xor_si256(*acc, _mm256_xor_si256(load(&halves[0]), load(&halves[1])));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; 32]) -> __m256i {
        // SAFETY: 32 bytes are valid, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read_once() {
        for len in [0, 1, 255, 256, 257, 800, 131_072, 400_003] {
            let w: Vec<u8> = (0..len).map(|i| 1 << (i * 7 / 4 % 8)).collect();
            let mut expected = [0; 4];
            w.iter().enumerate().for_each(|(i, byte)| expected[i % 4] ^= byte);
            for kernels in Kernels::supported() {
                for pattern in ReadPattern::ALL {
                    let context = format!("{len} bytes, {pattern:?}, {}", kernels.isa());
                    let folded = kernels.read_range(&w, *pattern);
                    assert_eq!(folded, u32::from_le_bytes(expected), "{context}");
                }
            }
        }
    }
}
