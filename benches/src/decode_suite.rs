//! The decode suite: tokens per second of the replay, with separate and with grouped dispatches, and how much of what the same
//! threads can read that is.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use rowpar::{Format, RowPool};

use crate::Decode;
use crate::ceiling::Reads;
use crate::protocol::{Better, Measurement, Report};
use crate::stats::median;
use crate::work::time_ns;

/// Seed of every replayed model: the checksums of two processes are comparable.
pub const SEED: u64 = 0x726f_7770_6172;
/// Tokens of each kind timed at least.
const MIN_TOKENS: usize = 2;

/// Checks the bits of the replay on `pool`, then times tokens for about `budget`.
///
/// The two kinds of token and the ways to read the weights take turns, so all see the same mood of the machine.
///
/// # Errors
///
/// Grouped and separate dispatches gave different bits.
pub fn measure(
    decode: &mut Decode,
    pool: &dyn RowPool,
    budget: Duration,
) -> Result<Report, String> {
    let name = name(decode);
    let checksum = check(decode, pool)?;
    let (mut separate, mut grouped, mut reads) = (Vec::new(), Vec::new(), Reads::new());
    let start = Instant::now();
    while separate.len() < MIN_TOKENS || start.elapsed() < budget {
        separate.push(1e9 / time_ns(|| _ = decode.token(pool, false)));
        grouped.push(1e9 / time_ns(|| _ = decode.token(pool, true)));
        (0..Reads::N_PATTERNS).for_each(|pattern| reads.pass(pool, decode.bytes(), pattern));
    }
    let mut report = Report { participants: pool.participants(), ..Report::default() };
    report.checksums.insert(name.clone(), format!("{checksum:016x}"));
    report.notes.extend(fallback_note(decode));
    for (kind, rates) in [("separate", separate), ("grouped", grouped)] {
        let case = format!("{name}-{kind}");
        report.measurements.extend(measurements(&case, decode.bytes().len(), rates, &reads));
    }
    Ok(report)
}

/// Such as `smollm2-135m` for `F32`, and `smollm2-135m-q8_0`.
fn name(decode: &Decode) -> String {
    match decode.format() {
        Format::F32 => decode.shape().slug(),
        format => format!("{}-{}", decode.shape().slug(), format.name().to_ascii_lowercase()),
    }
}

/// A note if some matrices are in another format than the one asked for.
fn fallback_note(decode: &Decode) -> Option<String> {
    let format = decode.format();
    let mut others: Vec<String> = Vec::new();
    for matrix in decode.matrices().filter(|matrix| matrix.format() != format) {
        let other = format!("{} with {} columns", matrix.format(), matrix.n_cols());
        if !others.contains(&other) {
            others.push(other);
        }
    }
    let (shape, list) = (decode.shape(), others.join(", "));
    (!list.is_empty()).then(|| format!("matrices of {shape} that do not fit {format} are {list}"))
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

fn measurements(
    case: &str,
    token_bytes: usize,
    rates: Vec<f64>,
    reads: &Reads,
) -> [Measurement; 4] {
    let measurement = |metric: &str, unit: &str, samples: Vec<f64>| Measurement {
        case: case.into(),
        metric: metric.into(),
        unit: unit.into(),
        better: Better::Higher,
        value: median(&samples),
        resolution: 0.0,
        samples,
    };
    let bandwidths: Vec<f64> = rates.iter().map(|rate| rate * token_bytes as f64 / 1e9).collect();
    let ceiling = median(reads.fastest());
    let percents = bandwidths.iter().map(|rate| 100.0 * rate / ceiling).collect();
    [
        measurement("tokens_per_s", "tokens/s", rates),
        measurement("bandwidth", "GB/s", bandwidths),
        measurement("of_ceiling", "%", percents),
        measurement("read_ceiling", "GB/s", reads.fastest().to_vec()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelShape;

    #[test]
    fn tokens_become_bytes_and_a_share_of_the_ceiling() {
        let shape = ModelShape {
            name: "Tiny",
            n_layers: 1,
            d_model: 32,
            d_query: 32,
            d_kv: 32,
            d_ff: 256,
            n_vocab: 32,
        };
        let mut decode = Decode::new(shape, Format::Q4K, 1, 1);
        let report = measure(&mut decode, &rowpar::Serial, Duration::ZERO).unwrap();
        assert_eq!(report.measurements.len(), 8);
        let value = |metric| {
            let is_it = |m: &&Measurement| m.case == "tiny-q4_k-grouped" && m.metric == metric;
            report.measurements.iter().find(is_it).unwrap().value
        };
        let bandwidth = value("tokens_per_s") * decode.bytes().len() as f64 / 1e9;
        assert!((value("bandwidth") / bandwidth - 1.0).abs() < 1e-9);
        let share = 100.0 * bandwidth / value("read_ceiling");
        assert!((value("of_ceiling") / share - 1.0).abs() < 1e-9);
        assert_eq!(
            report.notes,
            ["matrices of Tiny that do not fit Q4_K are Q5_0 with 32 columns"]
        );
        assert!(report.checksums.contains_key("tiny-q4_k"));
    }
}
