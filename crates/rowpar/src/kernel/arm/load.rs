//! Bytes into lanes and back, and numbers of 16 bits.

use std::arch::aarch64::*;

use crate::kernel::simd::LANES;

/// Eight words that follow each other.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load(bytes: &[u8; 4 * LANES]) -> [uint32x4_t; 2] {
    let [low, high] = split(bytes);
    [load_four(low), load_four(high)]
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn words(words: [u32; LANES]) -> [uint32x4_t; 2] {
    let mut bytes = [0; 4 * LANES];
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    load(&bytes)
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn halves(halves: [u16; LANES]) -> [uint32x4_t; 2] {
    let mut words_of = [0; LANES];
    for (word, half) in words_of.iter_mut().zip(halves) {
        *word = u32::from(half);
    }
    words(words_of)
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn to_array(values: [float32x4_t; 2]) -> [f32; LANES] {
    let mut array = [0.0; LANES];
    for (array, values) in array.as_chunks_mut::<4>().0.iter_mut().zip(values) {
        // SAFETY: `array` has room for 4 values, and the store needs no alignment.
        unsafe { vst1q_f32(array.as_mut_ptr(), values) };
    }
    array
}

/// The low halves of the words as binary16.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn f16([low, high]: [uint32x4_t; 2]) -> [float32x4_t; 2] {
    [widen(vmovn_u32(low)), widen(vmovn_u32(high))]
}

/// The low and the high halves of the words as binary16.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn f16_pair([low, high]: [uint32x4_t; 2]) -> [[float32x4_t; 2]; 2] {
    let upper = |words| vshrn_n_u32::<16>(words);
    [f16([low, high]), [widen(upper(low)), widen(upper(high))]]
}

#[inline]
#[target_feature(enable = "neon")]
fn widen(halves: uint16x4_t) -> float32x4_t {
    vcvt_f32_f16(vreinterpret_f16_u16(halves))
}

/// Four words of 8 rows, two vectors each.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_rows(rows: [&[u8; 16]; LANES]) -> [[uint32x4_t; 2]; 4] {
    let [a, b, c, d, e, f, g, h] = rows;
    let low = transpose([a, b, c, d]);
    let high = transpose([e, f, g, h]);
    [[low[0], high[0]], [low[1], high[1]], [low[2], high[2]], [low[3], high[3]]]
}

/// Four words of four rows, one vector each.
#[inline]
#[target_feature(enable = "neon")]
fn transpose([a, b, c, d]: [&[u8; 16]; 4]) -> [uint32x4_t; 4] {
    let [a, b, c, d] = [load_four(a), load_four(b), load_four(c), load_four(d)];
    // Pairs of rows: words 0 and 2, then 1 and 3. Then pairs of pairs.
    let (ab_even, ab_odd) = (vtrn1q_u32(a, b), vtrn2q_u32(a, b));
    let (cd_even, cd_odd) = (vtrn1q_u32(c, d), vtrn2q_u32(c, d));
    let wide = vreinterpretq_u64_u32;
    let first = |ab, cd| vreinterpretq_u32_u64(vtrn1q_u64(wide(ab), wide(cd)));
    let second = |ab, cd| vreinterpretq_u32_u64(vtrn2q_u64(wide(ab), wide(cd)));
    [
        first(ab_even, cd_even),
        first(ab_odd, cd_odd),
        second(ab_even, cd_even),
        second(ab_odd, cd_odd),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn load_four(bytes: &[u8; 16]) -> uint32x4_t {
    // SAFETY: 16 bytes are valid, and the load needs no alignment.
    vreinterpretq_u32_u8(unsafe { vld1q_u8(bytes.as_ptr()) })
}

#[inline(always)]
fn split(bytes: &[u8; 4 * LANES]) -> [&[u8; 16]; 2] {
    let [low, high]: &[[u8; 16]; 2] = bytes.as_chunks().0.try_into().expect("two halves");
    [low, high]
}
