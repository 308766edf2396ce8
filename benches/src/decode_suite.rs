//! The decode suite: tokens per second of the replay, with separate and with grouped dispatches, and how much of what the same
//! threads can read that is, at length and in the same dispatches; and the same on packed matrices, if that is asked for.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use rowpar::{Format, Matrix, RowPool};

use crate::ceiling::Reads;
use crate::protocol::{Better, Measurement, Report};
use crate::stats::median;
use crate::work::time_ns;
use crate::{Decode, ModelShape, PoolError, Variants};

/// Seed of every replayed model: the checksums of two processes are comparable.
const SEED: u64 = 0x726f_7770_6172;
/// Stretches that the rows, and the packed matrices, are measured in. As many tokens of each kind are timed at least: a turn reads
/// in parts in one way, and each way has its turn.
const STRETCHES: usize = 4;
const _: () = assert!(STRETCHES >= Reads::N_PATTERNS);
/// The kinds of token: whether matvecs of one input share a dispatch.
const KINDS: [(&str, bool); 2] = [("separate", false), ("grouped", true)];

/// A replayed model, and a packed copy of it if that is measured as well.
#[derive(Debug)]
pub struct DecodeSuite {
    rows: Decode,
    packed: Option<Decode>,
}

impl DecodeSuite {
    /// Allocates and fills the weights with `n_threads` threads, and packs a copy if the variants ask for it.
    ///
    /// # Errors
    ///
    /// The variants have no format, or there are no threads to pack with.
    pub fn new(
        shape: ModelShape,
        variants: &Variants,
        n_threads: usize,
    ) -> Result<Self, PoolError> {
        let format = *variants.formats.first().ok_or("no format is given")?;
        let rows = Decode::new(shape, format, SEED, n_threads);
        let mut packed = None;
        if variants.packed {
            // Not one that is measured, whose waiting threads would be in the way.
            let pool = epoch_pool::Pool::new(n_threads.saturating_sub(1))?;
            packed = Some(rows.packed(&pool));
        }
        Ok(Self { rows, packed })
    }

    /// Checks the bits of the replay on `pool`, then times tokens for about `budget`.
    ///
    /// The kinds of token and the ways to read the weights take turns, so all see the same mood of the machine. Rows and packed
    /// matrices are measured in stretches of many tokens, so that a cache has the ones that are at hand, and come first by turns.
    ///
    /// # Errors
    ///
    /// Separate and grouped dispatches, or rows and packed matrices, gave different bits.
    pub fn measure(&mut self, pool: &dyn RowPool, budget: Duration) -> Result<Report, String> {
        let Self { rows, packed } = self;
        let mut report = Report { participants: pool.participants(), ..Report::default() };
        report.notes.extend(fallback_note(rows));
        let checksum = check(rows, pool)?;
        report.checksums.insert(name(rows), format!("{checksum:016x}"));
        let mut replays = vec![Replay::new(rows, "")];
        if let Some(packed) = packed {
            let of_packed = check(packed, pool)?;
            if of_packed != checksum {
                return Err(format!(
                    "rows and packed matrices differ: {checksum:016x} and {of_packed:016x}"
                ));
            }
            replays.push(Replay::new(packed, "-packed"));
        }
        let n_replays = replays.len();
        for stretch in 0..STRETCHES {
            for index in 0..n_replays {
                let replay = &mut replays[(stretch + index) % n_replays];
                replay.turns(pool, budget / (STRETCHES * n_replays) as u32);
            }
        }
        for replay in &replays {
            report.measurements.extend(replay.measurements(&replays[0]));
        }
        Ok(report)
    }
}

/// What is measured of one copy of the weights.
struct Replay<'a> {
    decode: &'a mut Decode,
    /// Behind the names of its cases.
    suffix: &'static str,
    /// Tokens per second of each of [`KINDS`].
    rates: [Vec<f64>; 2],
    /// The weights read at length, and in the dispatches of each of [`KINDS`].
    at_length: Reads,
    in_parts: [Reads; 2],
}

impl<'a> Replay<'a> {
    fn new(decode: &'a mut Decode, suffix: &'static str) -> Self {
        let (at_length, in_parts) = (Reads::new(), [Reads::new(), Reads::new()]);
        Self { decode, suffix, rates: Default::default(), at_length, in_parts }
    }

    /// Turns for about `budget`, and at least one.
    fn turns(&mut self, pool: &dyn RowPool, budget: Duration) {
        let start = Instant::now();
        loop {
            self.turn(pool);
            if start.elapsed() >= budget {
                break;
            }
        }
    }

    /// A token of each kind, and the weights read at length in each way. In parts they are read in one, the next one in the next
    /// turn: to read all of them every time would take longer than the tokens.
    fn turn(&mut self, pool: &dyn RowPool) {
        let turn = self.rates[0].len();
        for ((_, grouped), rates) in KINDS.into_iter().zip(&mut self.rates) {
            rates.push(1e9 / time_ns(|| _ = self.decode.token(pool, grouped)));
        }
        let Self { decode, at_length, in_parts, .. } = self;
        for pattern in 0..Reads::N_PATTERNS {
            at_length.pass(pool, decode.bytes(), pattern);
        }
        for ((_, grouped), reads) in KINDS.into_iter().zip(in_parts) {
            let each = |f: &mut dyn FnMut(&[Matrix<'_>])| decode.for_each_dispatch(grouped, f);
            reads.pass_in_parts(pool, turn % Reads::N_PATTERNS, each);
        }
    }

    /// Everything, and of packed matrices the gain over `rows`, turn by turn.
    fn measurements(&self, rows: &Replay<'_>) -> Vec<Measurement> {
        let mut found = Vec::new();
        for (kind, (label, _)) in KINDS.iter().enumerate() {
            let case = format!("{}-{label}{}", name(self.decode), self.suffix);
            let rates = &self.rates[kind];
            let ceilings = [self.at_length.fastest(), self.in_parts[kind].fastest()];
            found.extend(measurements(&case, self.decode.bytes().len(), rates, ceilings));
            if self.decode.is_packed() {
                let gains = rates.iter().zip(&rows.rates[kind]).map(|(packed, rows)| packed / rows);
                found.push(measurement(&case, "packing_gain", "×", gains.collect()));
            }
        }
        found
    }
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
    rates: &[f64],
    [at_length, in_parts]: [&[f64]; 2],
) -> [Measurement; 6] {
    let bandwidths: Vec<f64> = rates.iter().map(|rate| rate * token_bytes as f64 / 1e9).collect();
    let percents = |ceiling: &[f64]| {
        let ceiling = median(ceiling);
        bandwidths.iter().map(|rate| 100.0 * rate / ceiling).collect()
    };
    [
        measurement(case, "tokens_per_s", "tokens/s", rates.to_vec()),
        measurement(case, "of_ceiling", "%", percents(at_length)),
        measurement(case, "read_ceiling", "GB/s", at_length.to_vec()),
        measurement(case, "of_ceiling_in_parts", "%", percents(in_parts)),
        measurement(case, "read_ceiling_in_parts", "GB/s", in_parts.to_vec()),
        measurement(case, "bandwidth", "GB/s", bandwidths),
    ]
}

fn measurement(case: &str, metric: &str, unit: &str, samples: Vec<f64>) -> Measurement {
    Measurement {
        case: case.into(),
        metric: metric.into(),
        unit: unit.into(),
        better: Better::Higher,
        value: median(&samples),
        resolution: 0.0,
        samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: ModelShape = ModelShape {
        name: "Tiny",
        n_layers: 1,
        d_model: 32,
        d_query: 32,
        d_kv: 32,
        d_ff: 256,
        n_vocab: 32,
    };

    fn report(packed: bool) -> Report {
        let variants = Variants { formats: vec![Format::Q4K], packed, ..Variants::default() };
        let mut suite = DecodeSuite::new(TINY, &variants, 2).unwrap();
        suite.measure(&rowpar::Serial, Duration::ZERO).unwrap()
    }

    fn value(report: &Report, kind: &str, metric: &str) -> Option<f64> {
        let case = format!("tiny-q4_k-{kind}");
        let mut all = report.measurements.iter();
        all.find(|m| m.case == case && m.metric == metric).map(|m| m.value)
    }

    #[test]
    fn tokens_become_bytes_and_a_share_of_the_ceiling() {
        let report = report(false);
        assert_eq!(report.measurements.len(), 12);
        let value = |metric: &str| value(&report, "grouped", metric).unwrap();
        let bandwidth = value("tokens_per_s") * TINY.n_bytes(Format::Q4K) as f64 / 1e9;
        assert!((value("bandwidth") / bandwidth - 1.0).abs() < 1e-9);
        for kind in ["", "_in_parts"] {
            let share = 100.0 * bandwidth / value(&format!("read_ceiling{kind}"));
            assert!((value(&format!("of_ceiling{kind}")) / share - 1.0).abs() < 1e-9);
        }
        assert_eq!(
            report.notes,
            ["matrices of Tiny that do not fit Q4_K are Q5_0 with 32 columns"]
        );
        assert!(report.checksums.contains_key("tiny-q4_k"));
    }

    #[test]
    fn packed_matrices_are_cases_of_their_own() {
        let (rows, both) = (report(false), report(true));
        assert_eq!(both.measurements.len(), 12 + 14);
        assert_eq!((&both.checksums, &both.notes), (&rows.checksums, &rows.notes));
        for (kind, _) in KINDS {
            let packed = format!("{kind}-packed");
            let ceilings = ["of_ceiling", "of_ceiling_in_parts", "read_ceiling"];
            for metric in ["tokens_per_s", "bandwidth"].into_iter().chain(ceilings) {
                assert!(value(&both, kind, metric).is_some_and(|value| value > 0.0));
                assert!(value(&both, &packed, metric).is_some_and(|value| value > 0.0));
            }
            assert_eq!(value(&both, kind, "packing_gain"), None);
            assert!(value(&both, &packed, "packing_gain").is_some_and(|gain| gain > 0.0));
        }
    }

    #[test]
    fn a_gain_is_that_of_the_same_turn() {
        let variants = Variants { packed: true, ..Variants::default() };
        let DecodeSuite { mut rows, packed } = DecodeSuite::new(TINY, &variants, 1).unwrap();
        let mut packed = packed.unwrap();
        let rates = |first, second| [vec![first, second], vec![1.0]];
        let rows = Replay { rates: rates(1.0, 10.0), ..Replay::new(&mut rows, "") };
        let packed = Replay { rates: rates(2.0, 40.0), ..Replay::new(&mut packed, "-packed") };
        let found = packed.measurements(&rows);
        let gain = found.iter().find(|m| m.metric == "packing_gain").unwrap();
        assert_eq!(
            (gain.case.as_str(), &gain.samples[..]),
            ("tiny-separate-packed", &[2.0, 4.0][..])
        );
    }
}
