//! The suite of a model's file: real decode on the file's own weights, in place, and what a token costs.
//!
//! The tokens of a text are measured in turns, and every turn has three parts, so that all of them see the same mood of the machine:
//!
//! | Part | What comes of it |
//! |---|---|
//! | some tokens, as plain decode makes them | tokens per second, bytes of weights per second, CPU time per token |
//! | the last of those once more, through a pool with a meter | dispatches per token, and where the time goes |
//! | all weights, read once in each way to read | the ceiling |
//!
//! If packing is asked for, a packed copy of the matrices takes turns with the file's, with a text, a ceiling and a case of its own.
//!
//! Where the time goes: the stages of a pass are timed on the calling thread, and the meter ([`Metered`]) tells how much longer each
//! dispatch took than its work would have, evenly shared. That overhead is the share of dispatches, and is taken off the stage it was
//! in. What is left of matvecs and of attention is work; a matvec too small for the pool is work on the calling thread.

#![forbid(unsafe_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use rowpar::RowPool;

use crate::ceiling::Reads;
use crate::cpu_time;
use crate::gguf::{Gguf, MappedFile};
use crate::llama::{Model, PREFILL_BATCH, Sampler, Sampling, Session, Stage, Tokenizer};
use crate::metered::Metered;
use crate::protocol::{Better, Measurement, ModelRequest, Report};
use crate::stats::median;

/// The text that is written on, where nobody chooses another.
pub const PROMPT: &str =
    "The keeper of the lighthouse had not seen a ship for three weeks. In the evening";
/// Turns that the tokens are cut into.
const TURNS: usize = 4;
/// Of so many tokens of a turn, one is looked at with a meter.
const METERED_PART: usize = 4;
/// Per cent of the time that can hardly be seen.
const SHARE: f64 = 0.01;

/// What is known of a model's file before anything is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// The file's name without its ending: what its cases are called.
    pub name: String,
    /// Tokens of [`PROMPT`].
    pub n_prompt: usize,
    /// Tokens that can be measured, at most as many as were asked for.
    pub n_tokens: usize,
    /// Bytes of weights that are read for a token.
    pub bytes_per_token: usize,
}

/// Checks that a file is a model which can be measured: `bytes` is what is in it, and `file` what it is called. Of a
/// [`MappedFile`], little more than the description of the tensors and the vocabulary is read.
///
/// # Errors
///
/// It is no GGUF file, or none of a model of the llama family with room behind the prompt; on one line, with the name of the file.
pub fn inspect(bytes: &[u8], file: &Path, n_tokens: usize) -> Result<ModelFacts, String> {
    let wrong = |error: String| format!("{}: {error}", file.display());
    let gguf = Gguf::parse(bytes).map_err(|error| wrong(error.to_string()))?;
    let model = Model::from_gguf(&gguf).map_err(|error| wrong(error.to_string()))?;
    let n_prompt = tokens_of(&gguf, &model, PROMPT).map_err(wrong)?.len();
    // The first token comes out of the prompt, and the last one is not put in again.
    let room = model.config().n_context.saturating_sub(n_prompt);
    if room == 0 {
        return Err(wrong(format!("no room for a token behind a prompt of {n_prompt}")));
    }
    Ok(ModelFacts {
        name: name_of(file),
        n_prompt,
        n_tokens: n_tokens.min(room),
        bytes_per_token: model.bytes_per_token(),
    })
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

fn tokens_of(gguf: &Gguf<'_>, model: &Model<'_>, text: &str) -> Result<Vec<u32>, String> {
    let tokenizer = Tokenizer::from_gguf(gguf).map_err(|error| error.to_string())?;
    let (n_tokens, n_rows) = (tokenizer.n_tokens(), model.n_vocab());
    if n_tokens != n_rows {
        return Err(format!("{n_tokens} tokens, and embeddings of {n_rows}"));
    }
    let tokens = tokenizer.mark_beginning(tokenizer.encode(text));
    if tokens.is_empty() { Err("the prompt has no tokens".into()) } else { Ok(tokens) }
}

/// A mapped file and what to do with it.
#[derive(Debug)]
pub struct ModelSuite {
    file: MappedFile,
    request: ModelRequest,
}

impl ModelSuite {
    /// Checks nothing yet: [`measure`](Self::measure) does.
    pub fn new(file: MappedFile, request: ModelRequest) -> Self {
        Self { file, request }
    }

    /// Decodes on `pool`, and if `packed` also with packed matrices.
    ///
    /// # Errors
    ///
    /// The file is none that can be measured; the same tokens gave other ones the second time, or packed matrices other ones than
    /// the file's.
    pub fn measure(&self, pool: &dyn RowPool, packed: bool) -> Result<Report, String> {
        let gguf = Gguf::parse(self.file.bytes()).map_err(|error| error.to_string())?;
        let model = Model::from_gguf(&gguf).map_err(|error| error.to_string())?;
        let prompt = tokens_of(&gguf, &model, &self.request.prompt)?;
        let weights = weights(&gguf, self.file.bytes());
        let n_tokens = self.request.n_tokens;
        let capacity = prompt.len().saturating_add(n_tokens);
        if n_tokens == 0 || capacity > model.config().n_context {
            let context = model.config().n_context;
            return Err(format!(
                "{capacity} tokens, {n_tokens} of them new, in a text of {context}"
            ));
        }
        let memory = packed.then(|| model.pack(pool));
        let on_packed = memory.as_deref().map(|bytes| model.on_packed(bytes));
        let models = [Some((&model, weights)), on_packed.as_ref().zip(memory.as_deref())];
        let mut cases = Vec::new();
        for (model, weights) in models.into_iter().flatten() {
            let session = Session::new(model, capacity, self.request.activations);
            let run = Run::new(pool, session.map_err(|error| error.to_string())?, &prompt);
            cases.push(Case { run, weights, reads: Reads::new() });
        }
        let n_cases = cases.len();
        for turn in 0..TURNS {
            let n = (turn + 1) * n_tokens / TURNS - turn * n_tokens / TURNS;
            (0..n_cases).try_for_each(|index| cases[(turn + index) % n_cases].turn(n))?;
        }
        report(&cases, &name_of(&self.request.file), model.bytes_per_token())
    }
}

/// One copy of the weights, and what is measured of it.
struct Case<'r> {
    run: Run<'r>,
    weights: &'r [u8],
    reads: Reads,
}

impl Case<'_> {
    /// `n` tokens, and all weights read in each way.
    fn turn(&mut self, n: usize) -> Result<(), String> {
        self.run.decode(n);
        self.run.decode_metered(n.div_ceil(METERED_PART))?;
        let (pool, weights) = (self.run.pool, self.weights);
        (0..Reads::N_PATTERNS).for_each(|pattern| self.reads.pass(pool, weights, pattern));
        Ok(())
    }
}

/// Everything of the file's weights and, if there are others, of packed ones.
fn report(cases: &[Case<'_>], name: &str, token_bytes: usize) -> Result<Report, String> {
    let rows = &cases[0].run;
    let mut report = rows.report(name, token_bytes, &cases[0].reads);
    for Case { run, reads, .. } in &cases[1..] {
        if run.hash != rows.hash {
            return Err("packed matrices gave other bits than those of the file".into());
        }
        let name = format!("{name}-packed");
        report.measurements.extend(run.report(&name, token_bytes, reads).measurements);
        report.measurements.push(Measurement { case: name, ..run.gain_over(rows) });
    }
    Ok(report)
}

/// From the first byte of a tensor to the last one.
fn weights<'a>(gguf: &Gguf<'a>, file: &'a [u8]) -> &'a [u8] {
    let start = gguf.tensors().map(|tensor| tensor.offset).min().unwrap_or(0);
    let end = gguf.tensors().map(|tensor| tensor.offset + tensor.bytes.len()).max().unwrap_or(0);
    &file[start..end]
}

/// A text in the making and what it has cost.
struct Run<'r> {
    pool: &'r dyn RowPool,
    session: Session<'r, 'r>,
    sampler: Sampler,
    /// Tokens behind the prompt; the last one has not gone through the model.
    tokens: Vec<u32>,
    hash: u64,
    /// Seconds per token of each turn.
    times: Vec<f64>,
    /// In all turns.
    time: Duration,
    cpu_time: Option<Duration>,
    metered: Profile,
}

/// Where the time of some tokens went.
#[derive(Default)]
struct Profile {
    n_tokens: usize,
    n_dispatches: u64,
    whole: Duration,
    matvec: Duration,
    attention: Duration,
    dispatch: Duration,
}

impl<'r> Run<'r> {
    /// Takes in the prompt, which is not measured.
    fn new(pool: &'r dyn RowPool, mut session: Session<'r, 'r>, prompt: &[u32]) -> Self {
        let mut sampler = Sampler::new(Sampling::default());
        let (last, first) = prompt.split_last().expect("a prompt has a token at least");
        first.chunks(PREFILL_BATCH).for_each(|batch| _ = session.forward(pool, batch, 0));
        let logits = session.forward(pool, &[*last], 1);
        let tokens = vec![sampler.choose(logits)];
        Self {
            pool,
            session,
            sampler,
            tokens,
            hash: 0xcbf2_9ce4_8422_2325,
            times: Vec::new(),
            time: Duration::ZERO,
            cpu_time: Some(Duration::ZERO),
            metered: Profile::default(),
        }
    }

    /// Makes `n` tokens.
    fn decode(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        let (start, cpu_start) = (Instant::now(), cpu_time::now());
        for _ in 0..n {
            let logits = self.session.forward(self.pool, &self.tokens[self.tokens.len() - 1..], 1);
            self.tokens.push(self.sampler.choose(logits));
        }
        let time = start.elapsed();
        let cpu_time = cpu_time::now().zip(cpu_start).map(|(end, start)| end.saturating_sub(start));
        self.cpu_time = self.cpu_time.zip(cpu_time).map(|(sum, time)| sum + time);
        self.time += time;
        self.times.push(time.as_secs_f64() / n as f64);
        // The bits of the last logits, as well as the tokens, have to be those of every other pool.
        let logits = self.session.logits().iter().map(|logit| u64::from(logit.to_bits()));
        let tokens = self.tokens[self.tokens.len() - n..].iter().map(|&token| u64::from(token));
        self.hash = tokens
            .chain(logits)
            .fold(self.hash, |hash, value| (hash ^ value).wrapping_mul(0x0100_0000_01b3));
    }

    /// Makes the last `n` tokens once more, through a pool with a meter.
    fn decode_metered(&mut self, n: usize) -> Result<(), String> {
        let first = self.tokens.len().saturating_sub(n + 1);
        self.session.truncate(self.session.len() - (self.tokens.len() - 1 - first));
        let meter = Metered::new(self.pool);
        for index in first..self.tokens.len() - 1 {
            let logits = self.metered.token(&mut self.session, &meter, &self.tokens[index..=index]);
            let (found, expected) = (self.sampler.choose(logits), self.tokens[index + 1]);
            if found != expected {
                return Err(format!("token {found} in place of {expected} the second time"));
            }
        }
        Ok(())
    }

    fn report(&self, name: &str, token_bytes: usize, reads: &Reads) -> Report {
        let mut report = Report { participants: self.pool.participants(), ..Report::default() };
        report.checksums.insert(name.into(), format!("{:016x}", self.hash));
        let speeds = self.speeds(token_bytes as f64 / 1e9, reads.fastest());
        let cpu_ms = self.cpu_ms().into_iter();
        let cpu_ms =
            cpu_ms.map(|ms| measurement("cpu_ms_per_token", "ms", Better::Lower, ms, vec![ms]));
        report.measurements = speeds.into_iter().chain(cpu_ms).collect();
        report.measurements.extend(self.metered.measurements());
        report.measurements.iter_mut().for_each(|measurement| measurement.case = name.into());
        report
    }

    /// Tokens and weights per second, over all turns, beside what reading gave.
    fn speeds(&self, token_gb: f64, reads: &[f64]) -> [Measurement; 4] {
        let rate = (self.tokens.len() - 1) as f64 / self.time.as_secs_f64();
        let ceiling = median(reads);
        let scaled = |metric: &str, unit: &str, factor: f64| {
            let samples = self.times.iter().map(|time| factor / time).collect();
            measurement(metric, unit, Better::Higher, factor * rate, samples)
        };
        [
            scaled("tokens_per_s", "tokens/s", 1.0),
            scaled("bandwidth", "GB/s", token_gb),
            scaled("of_ceiling", "%", 100.0 * token_gb / ceiling),
            measurement("read_ceiling", "GB/s", Better::Higher, ceiling, reads.to_vec()),
        ]
    }

    /// How much faster the tokens were made than those of `rows`, turn by turn.
    fn gain_over(&self, rows: &Self) -> Measurement {
        let gains = rows.times.iter().zip(&self.times).map(|(rows, packed)| rows / packed);
        let gain = rows.time.as_secs_f64() / self.time.as_secs_f64();
        measurement("packing_gain", "×", Better::Higher, gain, gains.collect())
    }

    /// CPU time of a token, in milliseconds.
    fn cpu_ms(&self) -> Option<f64> {
        let n_tokens = (self.tokens.len() - 1) as f64;
        self.cpu_time.map(|time| 1e3 * time.as_secs_f64() / n_tokens)
    }
}

fn measurement(
    metric: &str,
    unit: &str,
    better: Better,
    value: f64,
    samples: Vec<f64>,
) -> Measurement {
    Measurement {
        case: String::new(),
        metric: metric.into(),
        unit: unit.into(),
        better,
        value,
        resolution: 0.0,
        samples,
    }
}

impl Profile {
    /// One token through the model.
    fn token<'s>(
        &mut self,
        session: &'s mut Session<'_, '_>,
        meter: &Metered<'_>,
        token: &[u32],
    ) -> &'s [f32] {
        let participants = meter.participants();
        let start = Instant::now();
        let (mut stage, mut begun) = (Stage::Rest, start);
        let logits = session.forward_watched(meter, token, 1, &mut |next| {
            let (now, taken) = (Instant::now(), meter.take());
            let overhead = taken.overhead(participants);
            let work = (now - begun).saturating_sub(overhead);
            match stage {
                Stage::Matvec => self.matvec += work,
                Stage::Attention => self.attention += work,
                Stage::Rest => {}
            }
            self.dispatch += overhead;
            self.n_dispatches += taken.n_dispatches;
            (stage, begun) = (next, now);
        });
        self.whole += start.elapsed();
        self.n_tokens += 1;
        logits
    }

    /// Dispatches and shares of the time. Either can be nothing, and then stands in a ratio as what can hardly be seen.
    fn measurements(&self) -> impl Iterator<Item = Measurement> {
        let metered = self.values().into_iter();
        metered.map(|(metric, unit, value, resolution)| Measurement {
            resolution,
            ..measurement(metric, unit, Better::Lower, value, vec![value])
        })
    }

    /// Metrics, units, values and resolutions.
    fn values(&self) -> [(&'static str, &'static str, f64, f64); 5] {
        let share = |time: Duration| 100.0 * time.as_secs_f64() / self.whole.as_secs_f64();
        let rest = self.whole.saturating_sub(self.matvec + self.attention + self.dispatch);
        [
            ("dispatches", "", self.n_dispatches as f64 / self.n_tokens as f64, 1.0),
            ("matvec_share", "%", share(self.matvec), SHARE),
            ("dispatch_share", "%", share(self.dispatch), SHARE),
            ("attention_share", "%", share(self.attention), SHARE),
            ("rest_share", "%", share(rest), SHARE),
        ]
    }
}
