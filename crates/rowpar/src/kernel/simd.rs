//! What a kernel asks of an instruction set: eight lanes, one for each of eight rows.
//!
//! A value of a type that implements [`Simd`] is a token: it exists only if the CPU has what the type stands for (K1), and
//! so its operations are safe to call. Kernels are generic over it, are always inlined, and are entered by
//! [`Simd::enter`], inside of which the compiler may use the instruction set.
//!
//! Every operation is exact, or is one operation of IEEE binary32, rounded to nearest even: two implementations differ in
//! speed alone.

/// Rows that are computed side by side.
pub(super) const LANES: usize = 8;

/// Something to do with an instruction set.
pub(super) trait Task {
    /// Does it. Implementations are `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S);
}

/// Eight lanes of binary32, or of 32 bits. A word of four bytes has its first byte in the lowest bits.
pub(super) trait Simd: Copy {
    /// What [`dot_signed`](Self::dot_signed) adds to every weight: an instruction may want them unsigned.
    const BIAS: u32 = 0;
    /// A binary32 in each lane.
    type F: Copy;
    /// A word in each lane: an integer of 32 bits, or four of 8.
    type I: Copy;

    /// Runs `task`, compiled for this instruction set.
    fn enter<T: Task>(self, task: T);

    /// One number in every lane.
    fn splat(self, value: f32) -> Self::F;
    /// One word in every lane.
    fn splat_word(self, word: u32) -> Self::I;
    /// Eight words.
    fn words(self, words: [u32; LANES]) -> Self::I;
    /// Eight numbers of 16 bits, widened with zeros.
    fn halves(self, halves: [u16; LANES]) -> Self::I;
    /// The lanes.
    fn to_array(self, values: Self::F) -> [f32; LANES];

    /// The sums.
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// The differences.
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// The products.
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// `acc`, after a point that the compiler moves no computation of `acc` across.
    ///
    /// Left alone, it does many columns for one input, keeps them on the stack, and does them again for the next input.
    #[inline(always)]
    fn keep(self, acc: Self::F) -> Self::F {
        acc
    }

    /// Words as the numbers whose bits they are.
    fn as_floats(self, words: Self::I) -> Self::F;
    /// Signed integers below 2²⁴ as numbers.
    fn to_float(self, words: Self::I) -> Self::F;
    /// The low halves of the words, whose high halves are zero, as binary16.
    fn f16(self, words: Self::I) -> Self::F;
    /// The low and the high halves of the words as binary16.
    #[inline(always)]
    fn f16_pair(self, words: Self::I) -> [Self::F; 2] {
        let low = self.and(words, self.splat_word(0xffff));
        [self.f16(low), self.f16(self.shr(words, 16))]
    }
    /// Eight binary16.
    #[inline(always)]
    fn f16_halves(self, halves: [u16; LANES]) -> Self::F {
        self.f16(self.halves(halves))
    }

    /// Bits that are set in both.
    fn and(self, a: Self::I, b: Self::I) -> Self::I;
    /// Bits that are set in one of them.
    fn or(self, a: Self::I, b: Self::I) -> Self::I;
    /// Differences of integers of 32 bits.
    fn sub_int(self, a: Self::I, b: Self::I) -> Self::I;
    /// Words moved to the left by less than 32 bits.
    fn shl(self, words: Self::I, n_bits: u32) -> Self::I;
    /// Words moved to the right by less than 32 bits; zeros come in.
    fn shr(self, words: Self::I, n_bits: u32) -> Self::I;
    /// Words moved to the right by less than 32 bits; the sign comes in.
    fn sar(self, words: Self::I, n_bits: u32) -> Self::I;

    /// For word k of eight, bits 4k to 4k + 3 of each lane, as bit 4 of its four bytes.
    #[inline(always)]
    fn fifth_bits(self, bits: Self::I) -> [Self::I; 8] {
        let mut words = [bits; 8];
        for (k, word) in words.iter_mut().enumerate() {
            let bits = self.shr(bits, 4 * k as u32);
            let bit =
                |n: u32| self.and(self.shl(bits, 4 + 7 * n), self.splat_word(0x10 << (8 * n)));
            *word = self.or(self.or(bit(0), bit(1)), self.or(bit(2), bit(3)));
        }
        words
    }

    /// The sums of the products of unsigned bytes, none of which exceeds `MAX`, with signed ones within ±127, which are
    /// the same in each lane. `MAX` is 1 to 127, so that no byte has its sign bit: implementations that rely on it do not compile
    /// with another.
    fn dot_unsigned<const N: usize, const MAX: i32>(
        self,
        w: [Self::I; N],
        x: &[[i8; 4]; N],
    ) -> Self::I;
    /// The same for signed bytes of any value, each counted as `BIAS` more than it is.
    fn dot_signed<const N: usize>(self, w: [Self::I; N], x: &[[i8; 4]; N]) -> Self::I;

    /// Sixteen bytes of each of eight rows: word k of lane l is bytes `4k..4k + 4` of row l.
    fn load_rows(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4];
    /// Whether there is a straight order, for which one input costs less: bytes are multiplied as they lie in their rows, and it
    /// is the sums that are turned into lanes.
    const STRAIGHT: bool = false;
    /// Sixteen bytes of each of eight rows, in the straight order.
    #[inline(always)]
    fn load_straight(self, rows: [&[u8; 16]; LANES]) -> [Self::I; 4] {
        self.load_rows(rows)
    }
    /// [`fifth_bits`](Self::fifth_bits) for 32 columns in the straight order: two times [`load_straight`](Self::load_straight).
    #[inline(always)]
    fn fifth_bits_straight(self, bits: Self::I) -> [Self::I; 8] {
        self.fifth_bits(bits)
    }
    /// [`dot_unsigned`](Self::dot_unsigned) of sixteen or 32 columns in the straight order.
    #[inline(always)]
    fn dot_unsigned_straight<const N: usize, const MAX: i32>(
        self,
        w: [Self::I; N],
        x: &[[i8; 4]; N],
    ) -> Self::I {
        self.dot_unsigned::<N, MAX>(w, x)
    }
    /// [`dot_signed`](Self::dot_signed) of sixteen or 32 columns in the straight order.
    #[inline(always)]
    fn dot_signed_straight<const N: usize>(self, w: [Self::I; N], x: &[[i8; 4]; N]) -> Self::I {
        self.dot_signed(w, x)
    }

    /// Eight words that follow each other.
    fn load(self, bytes: &[u8; 4 * LANES]) -> Self::I;
}

/// Fails to compile unless unsigned bytes up to `max` are the same as signed bytes.
#[cfg(any(
    all(target_arch = "aarch64", target_endian = "little"),
    all(target_arch = "wasm32", target_feature = "simd128")
))]
pub(super) const fn assert_no_sign_bit(max: i32) {
    assert!(max > 0 && max <= i8::MAX as i32);
}

/// How many words can be multiplied and added up in sums of 16 bits, if weights are within ±`max`; fails to compile unless one can.
///
/// Such a sum gets two products of a word, each within ±127·`max`. At 128, the most that a signed byte has, that is 32512 of the
/// 32767 that fit.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
pub(super) const fn words_in_16_bits(max: i32) -> usize {
    assert!(max > 0 && 2 * 127 * max <= i16::MAX as i32);
    (i16::MAX as i32 / (2 * 127 * max)) as usize
}

/// Eight halves that follow each other.
#[inline(always)]
pub(super) fn read_halves(bytes: &[u8; 2 * LANES]) -> [u16; LANES] {
    let mut halves = [0; LANES];
    for (half, bytes) in halves.iter_mut().zip(bytes.as_chunks().0) {
        *half = u16::from_le_bytes(*bytes);
    }
    halves
}

/// Four signed bytes as a word.
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little"),
    all(target_arch = "wasm32", target_feature = "simd128")
))]
#[inline(always)]
pub(super) fn word_of(x: [i8; 4]) -> u32 {
    u32::from_le_bytes([x[0] as u8, x[1] as u8, x[2] as u8, x[3] as u8])
}
