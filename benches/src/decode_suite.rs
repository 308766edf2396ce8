//! The decode suite: tokens per second of the replay, with separate and with grouped dispatches.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use rowpar::RowPool;

use crate::protocol::{Better, Measurement, Report};
use crate::stats::median;
use crate::work::time_ns;
use crate::{Decode, ModelShape};

/// Seed of every replayed model: the checksums of two processes are comparable.
pub const SEED: u64 = 0x726f_7770_6172;
/// Tokens of each kind timed at least.
const MIN_TOKENS: usize = 2;

/// Checks the bits of the replay on `pool`, then times tokens for about `budget`.
///
/// The two kinds of token take turns, so both see the same mood of the machine.
///
/// # Errors
///
/// Grouped and separate dispatches gave different bits.
pub fn measure(
    decode: &mut Decode,
    pool: &dyn RowPool,
    budget: Duration,
) -> Result<Report, String> {
    let shape = decode.shape();
    let checksum = check(decode, pool)?;
    let (mut separate, mut grouped) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while separate.len() < MIN_TOKENS || start.elapsed() < budget {
        separate.push(1e9 / time_ns(|| _ = decode.token(pool, false)));
        grouped.push(1e9 / time_ns(|| _ = decode.token(pool, true)));
    }
    let mut report = Report { participants: pool.participants(), ..Report::default() };
    report.checksums.insert(shape.slug(), format!("{checksum:016x}"));
    report.measurements =
        vec![rate(&shape, "separate", separate), rate(&shape, "grouped", grouped)];
    Ok(report)
}

/// The checksum after two tokens, the first of them tried both ways.
fn check(decode: &mut Decode, pool: &dyn RowPool) -> Result<u64, String> {
    decode.token(pool, false);
    let separate = decode.checksum();
    decode.reset();
    decode.token(pool, true);
    let grouped = decode.checksum();
    if separate != grouped {
        return Err(format!(
            "separate and grouped dispatches differ: {separate:016x} and {grouped:016x}"
        ));
    }
    decode.token(pool, false);
    if !decode.logits().iter().all(|logit| logit.is_finite()) {
        return Err("the replay left the finite numbers".into());
    }
    Ok(decode.checksum())
}

fn rate(shape: &ModelShape, kind: &str, samples: Vec<f64>) -> Measurement {
    Measurement {
        case: format!("{}-{kind}", shape.slug()),
        metric: "tokens_per_s".into(),
        unit: "tokens/s".into(),
        better: Better::Higher,
        value: median(&samples),
        resolution: 0.0,
        samples,
    }
}
