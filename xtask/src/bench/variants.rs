//! Which weights are multiplied, and in which ways: the options of the suites with weights.

use benches::protocol::Suite;
use benches::{Backend, Input, Variants};
use clap::Args;
use rowpar::{Format, Isa};

use crate::cli::UsageError;

/// More inputs than this share no pass: weights would no longer be what is read.
const MAX_BATCH: usize = 64;
/// What the matvec suite measures when nobody chooses.
const FORMATS: &[Format] = &[Format::F32, Format::Q8_0, Format::Q4_0, Format::Bf16, Format::Q4_1];
/// How many of them a quick run takes.
const QUICK_FORMATS: usize = 3;
const BATCHES: &[usize] = &[1, 2];

/// What `bench` can be told about weights.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct VariantOptions {
    /// Formats of the weights, comma separated: F32, F16, BF16, Q8_0, Q5_0, Q5_1, Q4_0, Q4_1, Q4_K, Q5_K, Q6_K. By default F32 in
    /// decode, and in matvec F32, Q8_0, Q4_0 and, if not quick, BF16 and Q4_1.
    #[arg(long = "format", value_name = "LIST", value_delimiter = ',')]
    pub(crate) formats: Vec<Format>,
    /// Matvec: numbers of inputs that share a pass over the weights, comma separated. By default 1,2.
    #[arg(long = "batch", value_name = "LIST", value_delimiter = ',', value_parser = parse_batch)]
    pub(crate) batches: Vec<usize>,
    /// Matvec: kernels by instruction set, comma separated: scalar, sse2, avx2, avxvnni, avx512, neon, dotprod, simd128. By
    /// default the fastest.
    #[arg(long = "kernel", value_name = "LIST", value_delimiter = ',')]
    pub(crate) isas: Vec<Isa>,
    /// Matvec and --model: what weights in blocks are multiplied with: q8 (blocks of integers, the default) or f32.
    #[arg(long, value_name = "INPUT")]
    pub(crate) input: Option<Input>,
    /// Measure packed matrices (`Matrix::pack_in_place`), which are copies in memory of their own, beside the rows as they are: in
    /// matvec, in decode, and with --model.
    #[arg(long)]
    pub(crate) packed: bool,
    /// Matvec: bytes of weights to go round in, such as 512K, 64M or 2G. By default 512M if quick, else 1G.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) working_set: Option<usize>,
}

impl VariantOptions {
    /// Checks that every backend can do what is asked for in these suites.
    pub(crate) fn check(&self, suites: &[Suite], backends: &[Backend]) -> Result<(), UsageError> {
        let fail = |what: String| Err(UsageError(what));
        self.matvec(false, backends).kernels().map_err(UsageError)?;
        let is_free = self.isas.is_empty() && self.input.is_none() && !self.packed;
        for backend in backends {
            if let Some(format) = self.formats.iter().find(|format| !backend.takes(**format)) {
                return fail(format!("{backend} does not multiply weights in {format}"));
            }
            if !backend.is_library() {
                continue;
            }
            if let Some(suite) = suites.iter().find(|suite| **suite != Suite::Matvec) {
                return fail(format!(
                    "{backend} is no pool: it runs in matvec, and not in {suite}"
                ));
            }
            if !is_free {
                return fail(format!("--kernel, --input and --packed mean nothing to {backend}"));
            }
        }
        if suites.contains(&Suite::Matvec) && self.matvec(false, backends).formats.is_empty() {
            return fail("no format is common to these backends".into());
        }
        Ok(())
    }

    /// What the matvec suite measures: of the usual formats those that every backend has.
    pub(crate) fn matvec(&self, quick: bool, backends: &[Backend]) -> Variants {
        let usual = if quick { &FORMATS[..QUICK_FORMATS] } else { FORMATS };
        let by_all = |format: &Format| backends.iter().all(|backend| backend.takes(*format));
        Variants {
            formats: match self.formats.is_empty() {
                true => usual.iter().copied().filter(by_all).collect(),
                false => self.formats.clone(),
            },
            batches: or_usual(&self.batches, BATCHES),
            isas: self.isas.clone(),
            input: self.input.unwrap_or(Input::Q8),
            packed: self.packed,
        }
    }

    /// The formats of the decode suite, each of which is a replay of its own.
    pub(crate) fn decode(&self) -> Vec<Format> {
        or_usual(&self.formats, &[Format::F32])
    }

    /// The options as they were given.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut list = |name: &str, items: Vec<String>| {
            if !items.is_empty() {
                words.push(format!("{name} {}", items.join(",")));
            }
        };
        list("--format", self.formats.iter().map(Format::to_string).collect());
        list("--batch", self.batches.iter().map(usize::to_string).collect());
        list("--kernel", self.isas.iter().map(Isa::to_string).collect());
        list("--input", self.input.iter().map(Input::to_string).collect());
        list("--working-set", self.working_set.iter().map(usize::to_string).collect());
        words.extend(self.packed.then(|| "--packed".into()));
        words
    }
}

/// Each item that was chosen, once, or the usual ones.
fn or_usual<T: Copy + PartialEq>(chosen: &[T], usual: &[T]) -> Vec<T> {
    super::settings::unique(if chosen.is_empty() { usual } else { chosen })
}

fn parse_batch(text: &str) -> Result<usize, String> {
    let batch = text.trim().parse().ok().filter(|batch| (1..=MAX_BATCH).contains(batch));
    batch.ok_or_else(|| format!("a whole number from 1 to {MAX_BATCH} is needed"))
}

/// A number of bytes; `K`, `M` and `G` are powers of 1024.
fn parse_bytes(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let (digits, shift) = match text.bytes().last().map(|byte| byte.to_ascii_uppercase()) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size such as 65536, 512K, 64M or 2G is needed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("65536", Some(65_536)),
            ("512K", Some(512 << 10)),
            ("64m", Some(64 << 20)),
            ("2G", Some(2 << 30)),
            ("0", None),
            ("", None),
            ("G", None),
            ("-1", None),
            ("99999999999999999999", None),
            ("18446744073709551615G", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_bytes(text).ok(), expected, "{text}");
        }
        assert_eq!(parse_batch("8"), Ok(8));
        assert!(parse_batch("0").is_err() && parse_batch("65").is_err());
    }

    #[test]
    fn the_usual_formats_are_those_of_all_backends() {
        let options = VariantOptions::default();
        let formats = |quick, backends: &[Backend]| options.matvec(quick, backends).formats;
        assert_eq!(formats(false, &[Backend::Epoch]), FORMATS);
        assert_eq!(formats(true, &[Backend::Epoch]), [Format::F32, Format::Q8_0, Format::Q4_0]);
        assert_eq!(formats(false, &[Backend::Openblas, Backend::Epoch]), [Format::F32]);
        assert_eq!(formats(true, &[Backend::Candle]), [Format::Q8_0, Format::Q4_0]);
        assert!(options.check(&[Suite::Matvec], &[Backend::Candle, Backend::Gemm]).is_err());
        assert_eq!(options.decode(), [Format::F32]);
    }

    #[test]
    fn what_a_library_cannot_do_is_refused() {
        let refusal = |options: &VariantOptions, suites: &[Suite], backend| {
            let UsageError(message) = options.check(suites, &[backend]).unwrap_err();
            message
        };
        let plain = VariantOptions::default();
        assert!(plain.check(&[Suite::Matvec], &[Backend::Gemm]).is_ok());
        assert!(refusal(&plain, Suite::ALL, Backend::Gemm).contains("no pool"));
        let blocks = VariantOptions { formats: vec![Format::Q8_0], ..plain.clone() };
        assert!(refusal(&blocks, &[Suite::Matvec], Backend::Openblas).contains("Q8_0"));
        assert!(blocks.check(Suite::ALL, &[Backend::Epoch]).is_ok());
        let packed = VariantOptions { packed: true, ..plain };
        assert!(refusal(&packed, &[Suite::Matvec], Backend::Openblas).contains("--packed"));
    }

    #[test]
    fn options_become_words_again() {
        assert!(VariantOptions::default().words().is_empty());
        let options = VariantOptions {
            formats: vec![Format::Q4K, Format::F32],
            batches: vec![1, 8],
            isas: vec![Isa::Scalar],
            input: Some(Input::F32),
            packed: true,
            working_set: Some(1 << 20),
        };
        let expected = "--format Q4_K,F32 --batch 1,8 --kernel scalar --input f32 --working-set 1048576 --packed";
        assert_eq!(options.words().join(" "), expected);
    }
}
