//! Bytes into lanes and back, and numbers of 16 bits.

use std::arch::{aarch64::*, asm};

use crate::kernel::simd::LANES;

/// Eight words that follow each other.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load(bytes: &[u8; 4 * LANES]) -> [uint32x4_t; 2] {
    let [low, high]: &[[u8; 16]; 2] = bytes.as_chunks().0.try_into().expect("two halves");
    [load_four(low), load_four(high)]
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_four(bytes: &[u8; 16]) -> uint32x4_t {
    // SAFETY: 16 bytes are valid, and the load needs no alignment.
    vreinterpretq_u32_u8(unsafe { vld1q_u8(bytes.as_ptr()) })
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_signed(bytes: &[i8; 16]) -> int8x16_t {
    // SAFETY: 16 bytes are valid, and the load needs no alignment.
    unsafe { vld1q_s8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn words(words: [u32; LANES]) -> [uint32x4_t; 2] {
    let [low, high]: &[[u32; 4]; 2] = words.as_chunks().0.try_into().expect("two halves");
    // SAFETY: four words are valid.
    let low = unsafe { vld1q_u32(low.as_ptr()) };
    // SAFETY: the same.
    let high = unsafe { vld1q_u32(high.as_ptr()) };
    [low, high]
}

#[inline]
#[target_feature(enable = "neon")]
fn eight_halves(halves: [u16; LANES]) -> uint16x8_t {
    // SAFETY: eight halves are valid.
    unsafe { vld1q_u16(halves.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn halves(halves: [u16; LANES]) -> [uint32x4_t; 2] {
    let halves = eight_halves(halves);
    [vmovl_u16(vget_low_u16(halves)), vmovl_high_u16(halves)]
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn to_array([low, high]: [float32x4_t; 2]) -> [f32; LANES] {
    let mut array = [0.0; LANES];
    let (first, last) = array.split_at_mut(LANES / 2);
    // SAFETY: there is room for four values.
    unsafe { vst1q_f32(first.as_mut_ptr(), low) };
    // SAFETY: the same.
    unsafe { vst1q_f32(last.as_mut_ptr(), high) };
    array
}

/// The low halves of the words as binary16.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn f16([low, high]: [uint32x4_t; 2]) -> [float32x4_t; 2] {
    widen(vuzp1q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high)))
}

/// The low and the high halves of the words as binary16.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn f16_pair([low, high]: [uint32x4_t; 2]) -> [[float32x4_t; 2]; 2] {
    let (low, high) = (vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high));
    [widen(vuzp1q_u16(low, high)), widen(vuzp2q_u16(low, high))]
}

/// Eight binary16.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn f16_halves(halves: [u16; LANES]) -> [float32x4_t; 2] {
    widen(eight_halves(halves))
}

/// Exact, subnormals included: FPCR.FZ16 is for arithmetic in 16 bits alone, and FPCR.AHP, which takes infinities for
/// numbers, is cleared while rows are computed.
///
/// The intrinsics are not stable in the oldest Rust that this crate is for.
#[inline]
#[target_feature(enable = "neon")]
fn widen(halves: uint16x8_t) -> [float32x4_t; 2] {
    let (low, high): (float32x4_t, float32x4_t);
    // SAFETY: an instruction of NEON, which reads and writes the named registers alone. Not `preserves_flags`: a signalling
    // NaN sets one.
    unsafe {
        asm!(
            "fcvtl {0:v}.4s, {1:v}.4h",
            out(vreg) low, in(vreg) halves, options(pure, nomem, nostack)
        );
    }
    // SAFETY: the same.
    unsafe {
        asm!(
            "fcvtl2 {0:v}.4s, {1:v}.8h",
            out(vreg) high, in(vreg) halves, options(pure, nomem, nostack)
        );
    }
    [low, high]
}

/// Each word in every lane.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn splats(words: uint32x4_t) -> [uint32x4_t; 4] {
    [
        vdupq_laneq_u32::<0>(words),
        vdupq_laneq_u32::<1>(words),
        vdupq_laneq_u32::<2>(words),
        vdupq_laneq_u32::<3>(words),
    ]
}

/// Indices of bytes, each moved by `n`.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn moved(bytes: &[u8; 16], n: u8) -> uint8x16_t {
    vaddq_u8(vreinterpretq_u8_u32(load_four(bytes)), vdupq_n_u8(n))
}

/// 16 where the byte of this index has the bit that is `own`.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn tested(bits: uint32x4_t, bytes: uint8x16_t, own: uint32x4_t) -> uint32x4_t {
    let spread = vqtbl1q_u8(vreinterpretq_u8_u32(bits), bytes);
    let set = vtstq_u8(spread, vreinterpretq_u8_u32(own));
    vreinterpretq_u32_u8(vandq_u8(set, vdupq_n_u8(0x10)))
}

/// Words 0, and words 2, of two pairs of rows that `vtrn1q_u32` made; or words 1 and 3, of `vtrn2q_u32`.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn join_pairs(ab: uint32x4_t, cd: uint32x4_t) -> [uint32x4_t; 2] {
    let (ab, cd) = (vreinterpretq_u64_u32(ab), vreinterpretq_u64_u32(cd));
    [vreinterpretq_u32_u64(vtrn1q_u64(ab, cd)), vreinterpretq_u32_u64(vtrn2q_u64(ab, cd))]
}
