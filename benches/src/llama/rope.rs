//! Rotary positions: each pair of neighbours in a head is turned by an angle that grows with the position.
//!
//! Powers, sines and cosines are those of the crate `libm`, which is plain Rust: a system's library rounds them in its own way, and
//! logits would have other bits on another system.

#![forbid(unsafe_code)]

/// The angles of a model.
#[derive(Clone, Debug)]
pub(super) struct Rope {
    /// What each pair is turned by from one position to the next, in radians.
    steps: Vec<f64>,
}

impl Rope {
    /// The first `n_dims` values of each head are turned; `n_dims` is even.
    pub(super) fn new(n_dims: usize, base: f32) -> Self {
        let step = |pair| libm::pow(f64::from(base), -2.0 * pair as f64 / n_dims as f64);
        Self { steps: (0..n_dims / 2).map(step).collect() }
    }

    /// Cosine and sine of every pair's angle at a position.
    pub(super) fn at(&self, position: usize, out: &mut Vec<[f32; 2]>) {
        out.clear();
        out.extend(self.steps.iter().map(|step| {
            let (sin, cos) = libm::sincos(position as f64 * step);
            [cos as f32, sin as f32]
        }));
    }
}

/// Turns every head of `d_head` values.
pub(super) fn rotate(heads: &mut [f32], d_head: usize, turns: &[[f32; 2]]) {
    for head in heads.chunks_exact_mut(d_head) {
        for (pair, [cos, sin]) in head.as_chunks_mut::<2>().0.iter_mut().zip(turns) {
            let [x, y] = *pair;
            *pair = [x * cos - y * sin, x * sin + y * cos];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All angles of a model with 64 values and base 100,000, up to 8,192 tokens, in one number: it is the same on every system.
    #[test]
    fn angles_have_the_same_bits_everywhere() {
        let rope = Rope::new(64, 100_000.0);
        let (mut turns, mut hash) = (Vec::new(), 0xcbf2_9ce4_8422_2325_u64);
        for position in 0..8192 {
            rope.at(position, &mut turns);
            for value in turns.as_flattened() {
                hash = (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3);
            }
        }
        assert_eq!(hash, 0x7f31_90ef_0d61_293d, "{hash:#018x}");
    }

    #[test]
    fn pairs_turn_and_the_rest_stays() {
        let rope = Rope::new(4, 100.0);
        let mut turns = Vec::new();
        rope.at(3, &mut turns);
        // Angles 3 · 100^0 and 3 · 100^(-1/2).
        let angles = [3.0_f64, 0.3];
        for (turn, angle) in turns.iter().zip(angles) {
            assert_eq!(*turn, [angle.cos() as f32, angle.sin() as f32]);
        }
        let mut heads = [1.0, 0.0, 0.0, 1.0, 7.0, 8.0, 0.0, 2.0, 2.0, 0.0, 7.0, 8.0];
        rotate(&mut heads, 6, &turns);
        let [[c0, s0], [c1, s1]] = [turns[0], turns[1]];
        let expected =
            [c0, s0, -s1, c1, 7.0, 8.0, -2.0 * s0, 2.0 * c0, 2.0 * c1, 2.0 * s1, 7.0, 8.0];
        assert_eq!(heads, expected);
    }
}
