//! The choice of the next token.

#![forbid(unsafe_code)]

use rowpar::with_default_floats;

use super::math;
use crate::SplitMix64;
use crate::argmax::argmax;

/// How to choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// What logits are divided by; 0 takes the largest always.
    pub temperature: f32,
    /// Choose among so many of the largest; 0 for all.
    pub top_k: usize,
    /// Choose among the largest whose probabilities come to this together.
    pub top_p: f32,
    /// The same seed and the same logits give the same tokens.
    pub seed: u64,
}

impl Default for Sampling {
    /// The largest logit.
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 40, top_p: 0.95, seed: 0 }
    }
}

/// Chooses tokens, one after the other.
///
/// ```
/// use benches::llama::{Sampler, Sampling};
/// assert_eq!(Sampler::new(Sampling::default()).choose(&[0.5, 2.0, 2.0, f32::NAN]), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    random: SplitMix64,
    candidates: Vec<(f32, u32)>,
}

impl Sampler {
    /// A sampler at the beginning of its sequence.
    pub fn new(sampling: Sampling) -> Self {
        Self { sampling, random: SplitMix64::new(sampling.seed), candidates: Vec::new() }
    }

    /// The next token. Of equal logits the first is the larger one; a NaN is smaller than any other. The same bits give the same
    /// token, whatever floating-point environment the thread has.
    pub fn choose(&mut self, logits: &[f32]) -> u32 {
        with_default_floats(|| self.choose_one(logits))
    }

    fn choose_one(&mut self, logits: &[f32]) -> u32 {
        if self.sampling.temperature <= 0.0 {
            return argmax(logits) as u32; // tokens are numbered in 32 bits
        }
        self.collect(logits);
        let scale = 1.0 / self.sampling.temperature;
        let Some(&(most, _)) = self.candidates.first() else { return 0 };
        for (weight, _) in &mut self.candidates {
            *weight = math::exp((*weight - most) * scale);
        }
        let total: f64 = self.candidates.iter().map(|(weight, _)| f64::from(*weight)).sum();
        let kept = self.keep(f64::from(self.sampling.top_p) * total);
        let mut left = self.random.next_unit() * kept;
        for &(weight, token) in &self.candidates {
            left -= f64::from(weight);
            if left < 0.0 {
                return token;
            }
        }
        self.candidates.last().map_or(0, |(_, token)| *token)
    }

    /// Puts the largest logits in order.
    fn collect(&mut self, logits: &[f32]) {
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        let candidates = &mut self.candidates;
        candidates.clear();
        candidates.extend(logits.iter().copied().zip(0..).filter(|(logit, _)| !logit.is_nan()));
        let top_k = self.sampling.top_k;
        if top_k > 0 && top_k < candidates.len() {
            candidates.select_nth_unstable_by(top_k - 1, order);
            candidates.truncate(top_k);
        }
        candidates.sort_unstable_by(order);
    }

    /// Drops the candidates behind those that come to `mass` together, at least one stays; returns what these come to.
    fn keep(&mut self, mass: f64) -> f64 {
        let mut kept = 0.0;
        let enough = self.candidates.iter().position(|(weight, _)| {
            kept += f64::from(*weight);
            kept >= mass
        });
        self.candidates.truncate(enough.map_or(self.candidates.len(), |last| last + 1));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 5] = [1.0, 3.0, f32::NAN, 2.0, 3.0];

    fn frequencies(sampling: Sampling, n: usize) -> [f64; 5] {
        let mut sampler = Sampler::new(sampling);
        let mut counts = [0.0; 5];
        (0..n).for_each(|_| counts[sampler.choose(&LOGITS) as usize] += 1.0 / n as f64);
        counts
    }

    #[test]
    fn without_temperature_the_first_largest_is_taken() {
        let mut sampler = Sampler::new(Sampling::default());
        assert!((0..10).all(|_| sampler.choose(&LOGITS) == 1));
        assert_eq!(sampler.choose(&[f32::NAN]), 0);
    }

    #[test]
    fn frequencies_are_probabilities() {
        let all = Sampling { temperature: 2.0, top_k: 0, top_p: 1.0, seed: 1 };
        let weights = [1.0_f64, 3.0, f64::NEG_INFINITY, 2.0, 3.0].map(|logit| (logit / 2.0).exp());
        let total: f64 = weights.iter().sum();
        for (found, weight) in frequencies(all, 100_000).iter().zip(weights) {
            assert!((found - weight / total).abs() < 0.01, "{found} for {}", weight / total);
        }
    }

    #[test]
    fn the_tail_is_cut() {
        let base = Sampling { temperature: 2.0, top_k: 0, top_p: 1.0, seed: 1 };
        // The probabilities are 0.337, 0.337, 0.204 and 0.124.
        for (sampling, n_left) in [
            (Sampling { top_k: 1, ..base }, 1),
            (Sampling { top_k: 3, ..base }, 3),
            (Sampling { top_k: 9, ..base }, 4),
            (Sampling { top_p: 0.0, ..base }, 1),
            (Sampling { top_p: 0.5, ..base }, 2),
            (Sampling { top_p: 0.7, ..base }, 3),
        ] {
            let found = frequencies(sampling, 1000);
            assert_eq!(found.iter().filter(|f| **f > 0.0).count(), n_left, "{sampling:?}");
            assert!(found[1] > 0.0);
        }
    }

    #[test]
    fn a_seed_fixes_the_tokens() {
        let tokens = |seed| -> Vec<u32> {
            let sampling = Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, seed };
            let mut sampler = Sampler::new(sampling);
            (0..50).map(|_| sampler.choose(&LOGITS)).collect()
        };
        assert_eq!(tokens(3), tokens(3));
        assert_ne!(tokens(3), tokens(4));
    }
}
