//! IEEE binary32 in integers: each result is computed exactly and rounded once, to nearest, ties to even.
//!
//! No operation of the processor's floats is used, so that what it is compared with cannot share a mistake of the compiler, of the
//! processor, or of the thread's floating-point environment.

#![allow(dead_code, reason = "each test binary uses a part of it")]

/// `(-1)^negative * mantissa * 2^exponent`, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub(crate) negative: bool,
    pub(crate) mantissa: u128,
    pub(crate) exponent: i32,
}

/// What a binary32 is.
#[derive(Clone, Copy, Debug)]
enum Value {
    Finite(Exact),
    Infinite { negative: bool },
    Nan,
}

fn value(x: f32) -> Value {
    let bits = x.to_bits();
    let (negative, exponent, mantissa) = (bits >> 31 == 1, bits >> 23 & 0xff, bits & 0x7f_ffff);
    match (exponent, mantissa) {
        (255, 0) => Value::Infinite { negative },
        (255, _) => Value::Nan,
        (0, _) => Value::Finite(Exact { negative, mantissa: mantissa.into(), exponent: -149 }),
        _ => {
            let mantissa = (mantissa | 0x80_0000).into();
            Value::Finite(Exact { negative, mantissa, exponent: exponent as i32 - 150 })
        }
    }
}

fn infinity(negative: bool) -> f32 {
    f32::from_bits(u32::from(negative) << 31 | 0x7f80_0000)
}

/// A finite number.
pub(crate) fn exact(x: f32) -> Exact {
    match value(x) {
        Value::Finite(exact) => exact,
        _ => panic!("{x} is not finite"),
    }
}

impl Exact {
    /// The nearest binary32, ties to even; a zero keeps its sign.
    pub(crate) fn round(self) -> f32 {
        let sign = u32::from(self.negative) << 31;
        if self.mantissa == 0 {
            return f32::from_bits(sign);
        }
        // The last bit that is kept: 24 bits, or fewer above the smallest subnormal.
        let highest = 127 - self.mantissa.leading_zeros() as i32;
        let last = (highest + self.exponent - 23).max(-149);
        let mut kept = nearest_shift(self.mantissa, last - self.exponent);
        let mut last = last;
        if kept == 1 << 24 {
            (kept, last) = (1 << 23, last + 1);
        }
        let magnitude = match last + 150 {
            _ if kept < 1 << 23 => kept as u32, // subnormal
            255.. => 0x7f80_0000,
            exponent => (exponent as u32) << 23 | kept as u32 & 0x7f_ffff,
        };
        f32::from_bits(sign | magnitude)
    }

    /// The nearest integer, ties to even.
    pub(crate) fn round_to_integer(self) -> i128 {
        let magnitude = nearest_shift(self.mantissa, -self.exponent) as i128;
        if self.negative { -magnitude } else { magnitude }
    }
}

/// `mantissa / 2^n`, to the nearest integer, ties to even.
fn nearest_shift(mantissa: u128, n: i32) -> u128 {
    match n {
        ..=0 => {
            assert!(mantissa.leading_zeros() as i32 >= -n, "more bits than there is room for");
            mantissa << -n
        }
        1..=127 => {
            let (whole, rest, half) = (mantissa >> n, mantissa & ((1 << n) - 1), 1 << (n - 1));
            whole + u128::from(rest > half || (rest == half && whole & 1 == 1))
        }
        _ => 0, // less than half: no mantissa here has all bits
    }
}

pub(crate) fn from_integer(integer: i64) -> f32 {
    let mantissa = integer.unsigned_abs().into();
    Exact { negative: integer < 0, mantissa, exponent: 0 }.round()
}

pub(crate) fn mul(a: f32, b: f32) -> f32 {
    match (value(a), value(b)) {
        (Value::Finite(a), Value::Finite(b)) => Exact {
            negative: a.negative != b.negative,
            mantissa: a.mantissa * b.mantissa,
            exponent: a.exponent + b.exponent,
        }
        .round(),
        (Value::Nan, _) | (_, Value::Nan) => f32::NAN,
        (Value::Finite(zero), _) | (_, Value::Finite(zero)) if zero.mantissa == 0 => f32::NAN,
        _ => infinity(a.is_sign_negative() != b.is_sign_negative()),
    }
}

pub(crate) fn sub(a: f32, b: f32) -> f32 {
    add(a, f32::from_bits(b.to_bits() ^ 1 << 31))
}

pub(crate) fn add(a: f32, b: f32) -> f32 {
    match (value(a), value(b)) {
        (Value::Finite(a), Value::Finite(b)) => add_finite(a, b).round(),
        (Value::Nan, _) | (_, Value::Nan) => f32::NAN,
        (Value::Infinite { negative: a }, Value::Infinite { negative: b }) if a != b => f32::NAN,
        (Value::Infinite { negative }, _) | (_, Value::Infinite { negative }) => infinity(negative),
    }
}

/// The sum, or a number that rounds as the sum does.
fn add_finite(a: Exact, b: Exact) -> Exact {
    /// Bits that the smaller number may lie below the larger one and still be added as it is.
    const ROOM: i32 = 90;
    if a.mantissa == 0 || b.mantissa == 0 {
        let both_negative = a.negative && b.negative;
        return match (a.mantissa, b.mantissa) {
            (0, 0) => Exact { negative: both_negative, ..a },
            (0, _) => b,
            _ => a,
        };
    }
    let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let distance = high.exponent - low.exponent;
    // Further down, it only matters that there is something. (The larger one has 24 bits then: it is not subnormal.)
    let (low_mantissa, distance) =
        if distance <= ROOM { (low.mantissa, distance) } else { (1, ROOM) };
    let exponent = high.exponent - distance;
    let signed = |mantissa: u128, negative: bool| {
        if negative { -(mantissa as i128) } else { mantissa as i128 }
    };
    let sum = signed(high.mantissa << distance, high.negative) + signed(low_mantissa, low.negative);
    // A difference of equal numbers is +0.
    Exact { negative: sum < 0, mantissa: sum.unsigned_abs(), exponent }
}

/// The quotient of positive finite numbers.
pub(crate) fn div(a: f32, b: f32) -> f32 {
    let (a, b) = (exact(a), exact(b));
    assert!(!a.negative && !b.negative && b.mantissa > 0);
    let dividend = a.mantissa << 100;
    // A last bit that says whether anything is left.
    let rest = u128::from(!dividend.is_multiple_of(b.mantissa));
    let mantissa = (dividend / b.mantissa) << 1 | rest;
    Exact { negative: false, mantissa, exponent: a.exponent - b.exponent - 101 }.round()
}

/// The value of a binary16, by its definition.
pub(crate) fn from_f16(bits: u16) -> f32 {
    let (negative, exponent, mantissa) = (bits >> 15 == 1, bits >> 10 & 0x1f, bits & 0x3ff);
    match (exponent, mantissa) {
        (31, 0) => infinity(negative),
        (31, _) => f32::NAN,
        (0, _) => Exact { negative, mantissa: mantissa.into(), exponent: -24 }.round(),
        _ => {
            let mantissa = (mantissa | 0x400).into();
            Exact { negative, mantissa, exponent: i32::from(exponent) - 25 }.round()
        }
    }
}
