//! Token after token, with or without a guess at the one after.

#![forbid(unsafe_code)]

use rowpar::RowPool;

use super::{Sampler, Session};

/// Tokens of a prompt that go through the model together.
pub const PREFILL_BATCH: usize = 16;

/// Longest run of tokens that is looked for in the text so far, to guess how it goes on.
const MAX_PATTERN: usize = 3;

/// What guessing came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guesses {
    /// Tokens that were guessed.
    pub made: usize,
    /// Those that were right: each saved a pass over the weights.
    pub right: usize,
    /// Passes over the weights, with and without a guess.
    pub passes: usize,
}

/// Writes a text on.
///
/// With guessing, a token that is likely to come next goes through the model together with the one that was chosen. If it is
/// chosen next, its logits are there already; if not, it is forgotten. Logits do not depend on what goes through together, so
/// the tokens are those of plain decode, exactly.
#[derive(Clone, Debug)]
pub struct Generator<'m, 'a> {
    session: Session<'m, 'a>,
    sampler: Sampler,
    /// All tokens so far; the last one has not gone through the model.
    tokens: Vec<u32>,
    guessing: bool,
    guesses: Guesses,
}

impl<'m, 'a> Generator<'m, 'a> {
    /// Takes in a prompt, in passes of [`PREFILL_BATCH`] tokens, and chooses the first token behind it. `see` is called with
    /// that token and the logits that it was chosen by.
    ///
    /// # Panics
    ///
    /// If the prompt is empty or has no room in the session, or the session is not empty.
    pub fn new(
        mut session: Session<'m, 'a>,
        mut sampler: Sampler,
        guessing: bool,
        pool: &dyn RowPool,
        prompt: &[u32],
        see: &mut dyn FnMut(u32, &[f32]),
    ) -> Self {
        assert!(session.is_empty(), "the session has {} tokens", session.len());
        assert!(!prompt.is_empty(), "a prompt has a token at least");
        let n_batches = prompt.len().div_ceil(PREFILL_BATCH);
        let (first, last) = prompt.split_at((n_batches - 1) * PREFILL_BATCH);
        first.chunks(PREFILL_BATCH).for_each(|batch| _ = session.forward(pool, batch, 0));
        let logits = session.forward(pool, last, 1);
        let token = sampler.choose(logits);
        see(token, logits);
        let tokens = [prompt, &[token]].concat();
        Self { session, sampler, tokens, guessing, guesses: Guesses::default() }
    }

    /// One pass of the model: one more token, or two if a guess was right. `see` is called with each and the logits that it was
    /// chosen by.
    ///
    /// # Panics
    ///
    /// If the session is full ([`Generator::has_room`]).
    pub fn step(&mut self, pool: &dyn RowPool, see: &mut dyn FnMut(u32, &[f32])) {
        let &last = self.tokens.last().expect("there is a prompt");
        let room = self.session.capacity() - self.session.len();
        let guess = guess(&self.tokens).filter(|_| self.guessing && room >= 2);
        let batch = [last, guess.unwrap_or_default()];
        let n = 1 + usize::from(guess.is_some());
        let logits = self.session.forward(pool, &batch[..n], n);
        let (first, second) = logits.split_at(logits.len() / n);
        let token = self.sampler.choose(first);
        see(token, first);
        self.tokens.push(token);
        self.guesses.passes += 1;
        let Some(guess) = guess else { return };
        self.guesses.made += 1;
        if token == guess {
            self.guesses.right += 1;
            let token = self.sampler.choose(second);
            see(token, second);
            self.tokens.push(token);
        } else {
            self.session.truncate(self.session.len() - 1);
        }
    }

    /// Whether there is room for another step.
    pub fn has_room(&self) -> bool {
        self.session.len() < self.session.capacity()
    }

    /// What guessing came to so far.
    pub fn guesses(&self) -> Guesses {
        self.guesses
    }
}

/// The token that followed the last time the text went like this: after the same three tokens, or else two, or one.
fn guess(tokens: &[u32]) -> Option<u32> {
    (1..=MAX_PATTERN).rev().find_map(|len| {
        let (before, pattern) = tokens.split_at_checked(tokens.len().checked_sub(len)?)?;
        // The occurrence must end before the pattern does, so that a token follows it.
        let earlier = &tokens[..tokens.len() - 1];
        let at = earlier.windows(len).rposition(|run| run == pattern)?;
        debug_assert!(at <= before.len());
        tokens.get(at + len).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_follow_the_longest_and_latest_pattern() {
        let cases: &[(&[u32], Option<u32>)] = &[
            (&[], None),
            (&[1], None),
            (&[1, 2], None),
            (&[1, 1], Some(1)),
            (&[1, 2, 1], Some(2)),
            (&[1, 2, 3, 1, 4, 1], Some(4)),
            (&[5, 1, 2, 6, 1, 2], Some(6)),
            (&[9, 1, 2, 7, 8, 1, 2, 6, 9, 1, 2], Some(7)),
        ];
        for (tokens, expected) in cases {
            assert_eq!(guess(tokens), *expected, "{tokens:?}");
        }
    }
}
