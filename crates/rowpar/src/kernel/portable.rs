//! Lanes in plain Rust, on every CPU.

#![forbid(unsafe_code)]

use super::simd::{LANES, Simd, Task};
use crate::oracle::f16_to_f32;

/// Every CPU has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

#[inline(always)]
fn each<T: Copy, U: Copy, V: Copy + Default>(
    a: [T; LANES],
    b: [U; LANES],
    f: impl Fn(T, U) -> V,
) -> [V; LANES] {
    let mut result = [V::default(); LANES];
    for lane in 0..LANES {
        result[lane] = f(a[lane], b[lane]);
    }
    result
}

impl Simd for Portable {
    type F = [f32; LANES];
    type I = [u32; LANES];

    fn enter<T: Task>(self, task: T) {
        task.run(self);
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F {
        [value; LANES]
    }

    #[inline(always)]
    fn splat_word(self, word: u32) -> Self::I {
        [word; LANES]
    }

    #[inline(always)]
    fn words(self, words: [u32; LANES]) -> Self::I {
        words
    }

    #[inline(always)]
    fn halves(self, halves: [u16; LANES]) -> Self::I {
        halves.map(u32::from)
    }

    #[inline(always)]
    fn to_array(self, values: Self::F) -> [f32; LANES] {
        values
    }

    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        each(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        each(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        each(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn as_floats(self, words: Self::I) -> Self::F {
        words.map(f32::from_bits)
    }

    #[inline(always)]
    fn to_float(self, words: Self::I) -> Self::F {
        words.map(|word| word as i32 as f32)
    }

    #[inline(always)]
    fn f16(self, words: Self::I) -> Self::F {
        words.map(|word| f16_to_f32(word as u16))
    }

    #[inline(always)]
    fn and(self, a: Self::I, b: Self::I) -> Self::I {
        each(a, b, |a, b| a & b)
    }

    #[inline(always)]
    fn or(self, a: Self::I, b: Self::I) -> Self::I {
        each(a, b, |a, b| a | b)
    }

    #[inline(always)]
    fn sub_int(self, a: Self::I, b: Self::I) -> Self::I {
        each(a, b, u32::wrapping_sub)
    }

    #[inline(always)]
    fn shl(self, words: Self::I, n_bits: u32) -> Self::I {
        words.map(|word| word << n_bits)
    }

    #[inline(always)]
    fn shr(self, words: Self::I, n_bits: u32) -> Self::I {
        words.map(|word| word >> n_bits)
    }

    #[inline(always)]
    fn sar(self, words: Self::I, n_bits: u32) -> Self::I {
        words.map(|word| (word as i32 >> n_bits) as u32)
    }

    #[inline(always)]
    fn dot_unsigned<const N: usize, const MAX: i32>(
        self,
        w: [Self::I; N],
        x: &[[i8; 4]; N],
    ) -> Self::I {
        dot(w, x, i32::from)
    }

    #[inline(always)]
    fn dot_signed<const N: usize>(self, w: [Self::I; N], x: &[[i8; 4]; N]) -> Self::I {
        dot(w, x, |byte| i32::from(byte as i8))
    }

    #[inline(always)]
    fn load_rows(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4] {
        let mut words = [[0; LANES]; 4];
        for (lane, row) in rows.into_iter().enumerate() {
            for (words, bytes) in words.iter_mut().zip(row.as_chunks().0) {
                words[lane] = u32::from_le_bytes(*bytes);
            }
        }
        words
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 4 * LANES]) -> Self::I {
        let mut words = [0; LANES];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        words
    }
}

#[inline(always)]
fn dot<const N: usize>(
    w: [[u32; LANES]; N],
    x: &[[i8; 4]; N],
    weight: impl Fn(u8) -> i32,
) -> [u32; LANES] {
    let mut sums = [0; LANES];
    for (w, x) in w.iter().zip(x) {
        for (sum, w) in sums.iter_mut().zip(w) {
            for (w, x) in w.to_le_bytes().into_iter().zip(x) {
                *sum += weight(w) * i32::from(*x);
            }
        }
    }
    sums.map(|sum| sum as u32)
}
