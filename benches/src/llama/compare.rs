//! Two runs side by side, bit for bit.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;

use rowpar::RowPool;

use super::{Generator, Sampler, Session};

/// One of two runs that are compared: a [`Generator`] and the pool that it runs on.
#[expect(missing_debug_implementations, reason = "a pool need not be `Debug`")]
pub struct Side<'p, 'm, 'a> {
    pool: &'p dyn RowPool,
    generator: Generator<'m, 'a>,
    /// What the last pass gave and has not been compared: a token with its logits, or two of them after a guess.
    ready: VecDeque<(u32, Vec<f32>)>,
}

/// Where two runs differ first; positions count the tokens of the answer from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A logit has other bits.
    Logit {
        /// The token that was to be chosen.
        position: usize,
        /// The token whose logit it is.
        token: u32,
        /// Its bits in the one run and in the other.
        bits: [u32; 2],
    },
    /// The logits are the same, and another token was chosen.
    Token {
        /// Which token.
        position: usize,
        /// What it is in the one run and in the other.
        tokens: [u32; 2],
    },
    /// One run has no room for this token, or has other logits in number.
    Length {
        /// The token that is missing.
        position: usize,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Logit { position, token, bits } => {
                let [one, other] = bits.map(f32::from_bits);
                let [one_bits, other_bits] = bits;
                write!(
                    f,
                    "at token {position} of the answer, the logit of {token} is {one} ({one_bits:#010x}) and {other} \
                     ({other_bits:#010x})"
                )
            }
            Self::Token { position, tokens: [one, other] } => {
                write!(f, "token {position} of the answer is {one} and {other}, of the same logits")
            }
            Self::Length { position } => {
                write!(f, "token {position} of the answer is missing in one of the runs")
            }
        }
    }
}

impl<'p, 'm, 'a> Side<'p, 'm, 'a> {
    /// Takes in a prompt, as [`Generator::new`] does.
    ///
    /// # Panics
    ///
    /// If the prompt is empty or has no room in the session, or the session is not empty.
    pub fn new(
        session: Session<'m, 'a>,
        sampler: Sampler,
        guessing: bool,
        pool: &'p dyn RowPool,
        prompt: &[u32],
    ) -> Self {
        let mut ready = VecDeque::new();
        let mut see = |token: u32, logits: &[f32]| ready.push_back((token, logits.to_vec()));
        let generator = Generator::new(session, sampler, guessing, pool, prompt, &mut see);
        Self { pool, generator, ready }
    }

    /// The next token and the logits that it was chosen by, if there is room for one.
    fn next(&mut self) -> Option<(u32, Vec<f32>)> {
        let Self { pool, generator, ready } = self;
        if ready.is_empty() && generator.has_room() {
            generator.step(*pool, &mut |token, logits| ready.push_back((token, logits.to_vec())));
        }
        ready.pop_front()
    }
}

/// Runs both, token by token in turns, up to `n_tokens` tokens or to the first one that `ends` the answer, and compares every logit
/// of every token, that of the last one included. Gives the number of tokens.
///
/// # Errors
///
/// The first difference.
pub fn compare(
    mut one: Side<'_, '_, '_>,
    mut other: Side<'_, '_, '_>,
    n_tokens: usize,
    ends: impl Fn(u32) -> bool,
) -> Result<usize, Difference> {
    for position in 0..n_tokens {
        let (one, other) = match (one.next(), other.next()) {
            (Some(one), Some(other)) => (one, other),
            (None, None) => return Ok(position),
            _ => return Err(Difference::Length { position }),
        };
        check(position, &one, &other)?;
        if ends(one.0) {
            return Ok(position + 1);
        }
    }
    Ok(n_tokens)
}

fn check(
    position: usize,
    (one, one_logits): &(u32, Vec<f32>),
    (other, other_logits): &(u32, Vec<f32>),
) -> Result<(), Difference> {
    if one_logits.len() != other_logits.len() {
        return Err(Difference::Length { position });
    }
    let pairs = one_logits.iter().zip(other_logits).map(|(a, b)| [a.to_bits(), b.to_bits()]);
    if let Some((token, bits)) = (0..).zip(pairs).find(|(_, [a, b])| a != b) {
        return Err(Difference::Logit { position, token, bits });
    }
    if one != other {
        return Err(Difference::Token { position, tokens: [*one, *other] });
    }
    Ok(())
}
