//! Bytes into the lanes of a register of 256 bits, and back.

use std::arch::{asm, x86_64::*};

use crate::kernel::simd::{LANES, word_of};

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes are valid, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn to_array(values: __m256) -> [f32; LANES] {
    let mut array = [0.0; LANES];
    // SAFETY: `array` has room for 8 values, and the store needs no alignment.
    unsafe { _mm256_storeu_ps(array.as_mut_ptr(), values) };
    array
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn keep(mut acc: __m256) -> __m256 {
    // SAFETY: does nothing; the register comes out as it went in.
    unsafe { asm!("/* {0} */", inout(ymm_reg) acc, options(nomem, nostack, preserves_flags)) };
    acc
}

/// `words`, computed after those of an earlier call.
///
/// Left alone, the compiler loads all rows first, and keeps them until it comes to multiply them: 8 % slower.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn keep_words(mut words: __m256i) -> __m256i {
    // SAFETY: does nothing; the register comes out as it went in.
    unsafe { asm!("/* {0} */", inout(ymm_reg) words, options(nomem, nostack, preserves_flags)) };
    words
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn setr(words: [u32; LANES]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = words;
    let two = |low: u32, high: u32| join(u64::from(low), u64::from(high)).cast_signed();
    _mm256_setr_epi64x(two(a, b), two(c, d), two(e, f), two(g, h))
}

/// Halves in a register of 128 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(halves: [u16; LANES]) -> __m128i {
    let [a, b, c, d, e, f, g, h] = halves;
    let two = |low: u16, high: u16| u64::from(low) | u64::from(high) << 16;
    let low = join(two(a, b), two(c, d));
    let high = join(two(e, f), two(g, h));
    _mm_set_epi64x(high.cast_signed(), low.cast_signed())
}

/// A word, and another one above it.
///
/// In a general register, and kept from being taken apart: the compiler would rather put every number into its lane by
/// itself, in the unit that is busy with turning words.
#[inline(always)]
fn join(low: u64, high: u64) -> u64 {
    let mut both = low | high << 32;
    // SAFETY: does nothing; the register comes out as it went in.
    unsafe { asm!("/* {0} */", inout(reg) both, options(pure, nomem, nostack, preserves_flags)) };
    both
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn widen_halves(values: [u16; LANES]) -> __m256i {
    _mm256_cvtepu16_epi32(halves(values))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn f16_halves(values: [u16; LANES]) -> __m256 {
    _mm256_cvtph_ps(halves(values))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn f16(words: __m256i) -> __m256 {
    let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(words, words));
    _mm256_cvtph_ps(_mm256_castsi256_si128(packed))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn f16_pair(words: __m256i) -> [__m256; 2] {
    let low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
    let packed = _mm256_packus_epi32(low, _mm256_srli_epi32::<16>(words));
    // Low halves of rows 0–3, high ones of 0–3, low ones of 4–7, high ones of 4–7.
    let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
    let high = _mm256_extracti128_si256::<1>(packed);
    [_mm256_cvtph_ps(_mm256_castsi256_si128(packed)), _mm256_cvtph_ps(high)]
}

/// A byte of the bits goes to all bytes of a word, where each tests its own bit.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn fifth_bits(bits: __m256i) -> [__m256i; 8] {
    let own = [_mm256_set1_epi32(0x0804_0201), _mm256_set1_epi32(0x8040_2010_u32.cast_signed())];
    // The first byte of each lane, four times.
    let lanes = _mm_setr_epi32(0, 0x0404_0404, 0x0808_0808, 0x0c0c_0c0c);
    let first = _mm256_broadcastsi128_si256(lanes);
    let mut words = [bits; 8];
    for (k, word) in words.iter_mut().enumerate() {
        let byte = _mm256_add_epi8(first, _mm256_set1_epi8((k / 2) as i8));
        *word = tested(_mm256_shuffle_epi8(bits, byte), own[k % 2]);
    }
    words
}

/// The same: a byte of a lane goes to eight bytes, and the one above it to the eight after them.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn fifth_bits_straight(bits: __m256i) -> [__m256i; 8] {
    let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    let first = _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0, 0x0101_0101, 0x0101_0101));
    let mut words = [bits; 8];
    for (k, word) in words.iter_mut().enumerate() {
        let byte = _mm256_add_epi8(first, _mm256_set1_epi8((k % 4 * 4 + k / 4 * 2) as i8));
        *word = tested(_mm256_shuffle_epi8(bits, byte), own);
    }
    words
}

/// 16 in each byte that has its own bit.
#[inline]
#[target_feature(enable = "avx2")]
fn tested(bytes: __m256i, own: __m256i) -> __m256i {
    let set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, own), own);
    _mm256_and_si256(set, _mm256_set1_epi8(0x10))
}

/// Sixteen bytes of 8 rows: row k in the low half of vector k, row k + 4 in the high half.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_straight(rows: [&[u8; 16]; LANES]) -> [__m256i; 4] {
    let mut halves = [_mm256_setzero_si256(); 4];
    for (k, both) in halves.iter_mut().enumerate() {
        // SAFETY: 16 bytes are valid, and the load needs no alignment.
        let low = unsafe { _mm_loadu_si128(rows[k].as_ptr().cast()) };
        // SAFETY: the same.
        let high = unsafe { _mm_loadu_si128(rows[k + 4].as_ptr().cast()) };
        *both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
    }
    halves
}

/// Four bytes in every lane.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn splat_bytes(x: [i8; 4]) -> __m256i {
    _mm256_set1_epi32(word_of(x).cast_signed())
}

/// Sixteen bytes in both halves of a register.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn splat_16(x: &[i8; 16]) -> __m256i {
    // SAFETY: 16 bytes are valid, and the load needs no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(x.as_ptr().cast()) })
}

/// Sums of the four words in each half of four vectors: of row k from the low half of vector k, of row k + 4 from the high half.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn gather([a, b, c, d]: [__m256i; 4]) -> __m256i {
    add_neighbours(add_neighbours(a, b), add_neighbours(c, d))
}

/// In each half, `[a0 + a1, a2 + a3, b0 + b1, b2 + b3]`.
#[inline]
#[target_feature(enable = "avx2")]
fn add_neighbours(a: __m256i, b: __m256i) -> __m256i {
    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    let even = _mm256_shuffle_ps::<0b10_00_10_00>(a, b);
    let odd = _mm256_shuffle_ps::<0b11_01_11_01>(a, b);
    _mm256_add_epi32(_mm256_castps_si256(even), _mm256_castps_si256(odd))
}

/// Four words of 8 rows, one vector each.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_rows(rows: [&[u8; 16]; LANES]) -> [__m256i; 4] {
    // A 4 × 4 transpose in each half.
    let [a, b, c, d] = load_straight(rows).map(|both| _mm256_castsi256_ps(both));
    let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    [
        _mm256_castps_si256(_mm256_shuffle_ps::<0b01_00_01_00>(ab_low, cd_low)),
        _mm256_castps_si256(_mm256_shuffle_ps::<0b11_10_11_10>(ab_low, cd_low)),
        _mm256_castps_si256(_mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high)),
        _mm256_castps_si256(_mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high)),
    ]
}
