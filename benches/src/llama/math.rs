//! Arithmetic with one result everywhere: sums in a fixed order, and an exponential that asks no system library. What is left, square
//! roots and the four operations, IEEE 754 defines to the bit, and Rust neither fuses nor reorders them.

#![forbid(unsafe_code)]

/// Partial sums of [`sum`].
const LANES: usize = 8;

/// `exp(x)`, to about one unit in the last place; below −87 and above 88 the value there. NaN stays NaN.
///
/// e^x = 2^n · e^r with |r| ≤ ln 2 / 2, and e^r by its Taylor polynomial of degree 7, whose error of 5·10⁻⁹ is a tenth of a
/// rounding. Nothing but additions and multiplications, so that it is the same on every machine, and loops over it become vector
/// code.
pub(super) fn exp(x: f32) -> f32 {
    /// Adding it rounds to a whole number, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³
    // ln 2 in two parts; the first has few bits, so that its product with n is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -0.000_212_194_44;
    const TAYLOR: [f32; 8] =
        [1.0, 1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0];
    let x = x.clamp(-87.0, 88.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let e_r = TAYLOR.iter().rev().fold(0.0, |sum, coefficient| sum * r + coefficient);
    let two_n = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    e_r * two_n
}

/// The sum of `f` of each value, in a fixed order: value `j` goes to partial sum `j % 8`, and those are added from the first to
/// the last.
pub(super) fn sum(values: &[f32], f: impl Fn(f32) -> f64) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += f(*value));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, value)| *lane += f(*value));
    lanes.iter().sum()
}

/// `out[j] = x[j] / √(mean of x² + epsilon) · weight[j]`
pub(super) fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    let mean = sum(x, |value| f64::from(value) * f64::from(value)) / x.len() as f64;
    let scale = (1.0 / (mean + f64::from(epsilon)).sqrt()) as f32;
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = x * scale * weight;
    }
}

/// `gate[j] = silu(gate[j]) · up[j]`, with silu(x) = x / (1 + e⁻ˣ)
pub(super) fn swiglu(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + exp(-*gate)) * up;
    }
}

/// `x[j] += y[j]`
pub(super) fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// Turns scores into weights whose sum is 1: `e^(scale·(score − the largest))`, over the sum of these.
pub(super) fn softmax(scores: &mut [f32], scale: f32) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = exp((*score - largest) * scale));
    let factor = (1.0 / sum(scores, f64::from)) as f32;
    scores.iter_mut().for_each(|score| *score *= factor);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_a_unit() {
        let mut worst: f64 = 0.0;
        for step in -870_000..=880_000 {
            let x = step as f32 * 1e-4;
            let exact = f64::from(x).exp();
            worst = worst.max(((f64::from(exp(x)) - exact) / exact).abs());
        }
        assert!(worst < 1.3e-7, "relative error {worst:e}");
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), exp(-87.0));
        assert_eq!(exp(f32::INFINITY), exp(88.0));
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn a_sum_has_its_order() {
        let values: Vec<f32> = (0..21).map(|n| 1.0 / (n as f32 + 1.0)).collect();
        let mut lanes = [0.0_f64; LANES];
        values.iter().enumerate().for_each(|(j, value)| lanes[j % LANES] += f64::from(*value));
        let mut expected = 0.0;
        lanes.iter().for_each(|lane| expected += lane);
        assert_eq!(sum(&values, f64::from), expected);
        assert_eq!(sum(&[], f64::from), 0.0);
    }

    #[test]
    fn weights_of_a_softmax() {
        let mut scores = [1.0, 3.0, 2.0];
        softmax(&mut scores, 0.5);
        let exact = [0.0_f64, 1.0, 0.5].map(f64::exp);
        for (found, exact) in scores.iter().zip(exact) {
            let expected = exact / (1.0 + 0.5_f64.exp() + 1.0_f64.exp());
            assert!((f64::from(*found) - expected).abs() < 1e-7, "{scores:?}");
        }
    }

    #[test]
    fn a_norm_and_a_gate() {
        let mut out = [0.0; 2];
        rms_norm(&[3.0, -4.0], &[1.0, 0.5], 0.0, &mut out);
        let root = 12.5_f32.sqrt();
        assert!(
            (out[0] - 3.0 / root).abs() < 1e-6 && (out[1] + 2.0 / root).abs() < 1e-6,
            "{out:?}"
        );
        let mut gate = [0.0, 1.0, -200.0];
        swiglu(&mut gate, &[5.0, 2.0, 1.0]);
        assert_eq!(gate[0], 0.0);
        assert!((gate[1] - 2.0 / (1.0 + (-1.0_f32).exp())).abs() < 1e-6);
        assert!(gate[2] <= 0.0 && gate[2] > -1e-30);
    }
}
