//! Answers a question with a model of the llama family, on any pool.
//!
//! ```text
//! cargo xtask model smollm2
//! cargo run --release -p benches --example generate -- \
//!     --model target/models/smollm2-135m-instruct-q4_1.gguf --pool epoch --threads 2 --prompt "Why is the sky blue?"
//! ```
//!
//! The text goes to the standard output, and then speed and the pool's statistics to the standard error. `--verify rayon:3` runs
//! a second time beside it, plainly and on that pool, and compares every logit, bit for bit.
//!
//! A file that is no such model is one line on the standard error and exit code 2.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

use benches::Backend;
use benches::gguf::{Gguf, MappedFile};
use benches::llama::{
    Activations, ChatTemplate, Generator, Guesses, Model, Sampler, Sampling, Session, TextStream,
    Tokenizer,
};
use clap::Parser;
use rowpar::RowPool;

/// Answers a question with a model of the llama family, on any pool.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// The model, in a GGUF file. Nobody may change the file meanwhile.
    #[arg(long)]
    model: PathBuf,
    /// The pool: serial, rayon, epoch, or another backend of the benches.
    #[arg(long, default_value = "epoch")]
    pool: Backend,
    /// Threads, the calling one included. By default one for each performance core.
    #[arg(long, value_parser = parse_threads)]
    threads: Option<usize>,
    /// The question, or with --raw the beginning of a text.
    #[arg(long, overrides_with = "prompt")]
    prompt: String,
    /// What the model is told of itself, instead of what its template says.
    #[arg(long)]
    system: Option<String>,
    /// Go on with the prompt as it is, and read control tokens in it.
    #[arg(long, conflicts_with = "system")]
    raw: bool,
    /// Most tokens of the answer.
    #[arg(long, default_value_t = 128)]
    max_tokens: usize,
    /// 0 takes the likeliest token always.
    #[arg(long, default_value_t = 0.0, value_parser = parse_temperature)]
    temperature: f32,
    /// With a temperature: choose among so many of the likeliest tokens; 0 for all.
    #[arg(long, default_value_t = 40)]
    top_k: usize,
    /// With a temperature: choose among the likeliest tokens of this probability together.
    #[arg(long, default_value_t = 0.95, value_parser = parse_share)]
    top_p: f32,
    /// With a temperature: the same seed gives the same text.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What matrices are multiplied with: f32, or q8 (eight bits and a scale for 32 values), which is faster.
    #[arg(long, default_value_t = Activations::default())]
    activations: Activations,
    /// 2: guess a token, and let it go through the model with the one before. The text stays the same.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    batch: u8,
    /// Do it all once more, with --batch 1 and on another pool, such as rayon:3, and compare all logits.
    #[arg(long, value_name = "POOL:THREADS")]
    verify: Option<Setting>,
}

/// A pool and the number of its threads.
#[derive(Clone, Copy, Debug)]
struct Setting {
    backend: Backend,
    n_threads: usize,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, threads) = text.split_once(':').unwrap_or((text, "1"));
        Ok(Self { backend: name.parse()?, n_threads: parse_threads(threads)? })
    }
}

fn parse_temperature(text: &str) -> Result<f32, String> {
    let temperature = text.parse().ok().filter(|t| *t == 0.0 || (0.001..=1000.0).contains(t));
    temperature.ok_or_else(|| "0, or a number from 0.001 to 1000 is needed".into())
}

fn parse_share(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a number from 0 to 1 is needed".into())
}

fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=1024).contains(threads));
    threads.ok_or_else(|| "a whole number from 1 to 1024 is needed".into())
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { error, exit_code }) => {
            eprintln!("error: {error}");
            ExitCode::from(exit_code)
        }
    }
}

/// What went wrong, and whether it was the user (2) or the machine (1).
struct Failure {
    error: Box<dyn Error>,
    exit_code: u8,
}

fn wrong_input(options: &Options) -> impl Fn(Box<dyn Error>) -> Failure {
    let name = options.model.display().to_string();
    move |error| Failure { error: format!("{name}: {error}").into(), exit_code: 2 }
}

impl From<Box<dyn Error>> for Failure {
    fn from(error: Box<dyn Error>) -> Self {
        Self { error, exit_code: 1 }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let wrong = wrong_input(options);
    // SAFETY: the help asks the user to leave the file alone while this runs.
    let file = unsafe { MappedFile::open(&options.model) }.map_err(|error| wrong(error.into()))?;
    let gguf = Gguf::parse(file.bytes()).map_err(|error| wrong(error.into()))?;
    let model = Model::from_gguf(&gguf).map_err(|error| wrong(error.into()))?;
    let tokenizer = Tokenizer::from_gguf(&gguf).map_err(|error| wrong(error.into()))?;
    if tokenizer.n_tokens() != model.n_vocab() {
        let (tokens, rows) = (tokenizer.n_tokens(), model.n_vocab());
        return Err(wrong(format!("{tokens} tokens, and embeddings of {rows}").into()));
    }
    let prompt = prompt(options, &gguf, &tokenizer).map_err(|error| wrong(error.into()))?;
    let end = End::of(&gguf, &tokenizer);
    let run = Run { options, model: &model, tokenizer: &tokenizer, prompt, end };
    match options.verify {
        None => run.generate(),
        Some(other) => run.verify(other),
    }
    .map_err(Failure::from)
}

/// The tokens of the prompt.
fn prompt(options: &Options, gguf: &Gguf<'_>, tokenizer: &Tokenizer) -> Result<Vec<u32>, String> {
    let template = ChatTemplate::from_gguf(gguf, tokenizer).filter(|_| !options.raw);
    let tokens = match template {
        Some(template) => template.question(tokenizer, options.system.as_deref(), &options.prompt),
        None if options.raw => tokenizer.encode_with_control(&options.prompt),
        None => {
            eprintln!(
                "note: the file has no chat template that is known here: the prompt is taken as it is"
            );
            tokenizer.encode(&options.prompt)
        }
    };
    if tokens.is_empty() { Err("the prompt has no tokens".into()) } else { Ok(tokens) }
}

/// The tokens at which an answer ends.
struct End {
    tokens: Vec<u32>,
}

impl End {
    fn of(gguf: &Gguf<'_>, tokenizer: &Tokenizer) -> Self {
        let keys = ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"];
        let by_key = keys.iter().filter_map(|key| gguf.get(key)?.as_u64()?.try_into().ok());
        let names = ["<|endoftext|>", "<|im_end|>"];
        let by_name = names.iter().filter_map(|name| tokenizer.control(name));
        Self { tokens: by_key.chain(by_name).collect() }
    }
}

/// Everything that a run needs but its pool.
struct Run<'r, 'a> {
    options: &'r Options,
    model: &'r Model<'a>,
    tokenizer: &'r Tokenizer,
    prompt: Vec<u32>,
    end: End,
}

/// How long it took.
struct Times {
    prompt: Duration,
    decode: Duration,
    /// Tokens behind the first.
    n_decoded: usize,
    guesses: Guesses,
}

impl Run<'_, '_> {
    /// Generates, and calls `see` with every token of the answer and the logits that it was chosen by.
    fn tokens(
        &self,
        pool: &dyn RowPool,
        guessing: bool,
        see: &mut dyn FnMut(u32, &[f32]),
    ) -> Times {
        let Options { temperature, top_k, top_p, seed, max_tokens, activations, .. } =
            *self.options;
        let sampling = Sampling { temperature, top_k, top_p, seed };
        let capacity = self.prompt.len().saturating_add(max_tokens);
        let capacity = capacity.min(self.model.config().n_context).max(self.prompt.len());
        let session = Session::new(self.model, capacity, activations);
        let (mut n_seen, mut ended) = (0, max_tokens == 0);
        let mut see = |token: u32, logits: &[f32]| {
            ended |= self.end.tokens.contains(&token) || n_seen == max_tokens;
            if !ended {
                n_seen += 1;
                see(token, logits);
                ended = n_seen == max_tokens;
            }
            ended
        };
        let start = Instant::now();
        let sampler = Sampler::new(sampling);
        let mut done = false;
        let mut generator =
            Generator::new(session, sampler, guessing, pool, &self.prompt, &mut |token, logits| {
                done = see(token, logits);
            });
        let prompt = start.elapsed();
        while !done && generator.has_room() {
            generator.step(pool, &mut |token, logits| done |= see(token, logits));
        }
        let decode = start.elapsed() - prompt;
        Times { prompt, decode, n_decoded: n_seen.max(1) - 1, guesses: generator.guesses() }
    }

    fn generate(&self) -> Result<(), Box<dyn Error>> {
        let n_threads = self.options.threads.unwrap_or_else(cpu_topology::resolve_cpu_threads);
        let pool = Pool::new(Setting { backend: self.options.pool, n_threads })?;
        let mut stream = TextStream::default();
        let times = self.tokens(pool.get(), self.options.batch == 2, &mut |token, _| {
            say(&stream.push(self.tokenizer.bytes(token)));
        });
        say(&(stream.finish() + "\n"));
        self.report(&times, &pool);
        Ok(())
    }

    fn report(&self, times: &Times, pool: &Pool) {
        let n_prompt = self.prompt.len();
        let rate = |n: usize, time: Duration| n as f64 / time.as_secs_f64();
        let participants = pool.get().participants();
        eprintln!("\npool:    {}, {participants} participants", self.options.pool);
        eprintln!("prompt:  {n_prompt} tokens, {:.1} tokens/s", rate(n_prompt, times.prompt));
        let (n, passes) = (times.n_decoded, times.guesses.passes);
        let bytes = self.model.bytes_per_token() * passes;
        eprintln!(
            "decode:  {n} tokens, {:.1} tokens/s, {:.1} GB/s of weights",
            rate(n, times.decode),
            rate(bytes, times.decode) / 1e9
        );
        let Guesses { made, right, .. } = times.guesses;
        if let Some(percent) = (100 * right).checked_div(made) {
            eprintln!("guesses: {right} of {made} right ({percent} %), {passes} passes");
        }
        if let Pool::Epoch(pool) = pool {
            eprintln!("pool statistics: {:#?}", pool.statistics());
        }
    }

    /// Compares this setting with another one, logit by logit.
    fn verify(&self, other: Setting) -> Result<(), Box<dyn Error>> {
        let n_threads = self.options.threads.unwrap_or_else(cpu_topology::resolve_cpu_threads);
        let one = Setting { backend: self.options.pool, n_threads };
        let mut seen = Vec::new();
        let guessing = self.options.batch == 2;
        let one_pool = Pool::new(one)?;
        self.tokens(one_pool.get(), guessing, &mut |token, logits| {
            seen.push((token, logits.to_vec()));
        });
        drop(one_pool); // two pools that spin would be in each other's way
        let other_pool = Pool::new(other)?;
        let (mut index, mut difference) = (0, None);
        self.tokens(other_pool.get(), false, &mut |token, logits| {
            let expected = seen.get(index);
            let same = expected.is_some_and(|(seen, expected)| {
                let mut bits = expected.iter().zip(logits);
                *seen == token && bits.all(|(a, b)| a.to_bits() == b.to_bits())
            });
            difference = difference.or((!same).then_some(index));
            index += 1;
        });
        if difference.is_some() || index != seen.len() {
            let place = difference.unwrap_or(index.min(seen.len()));
            return Err(format!("the runs differ from token {place} of the answer on").into());
        }
        println!("{index} tokens, {} logits each: the same bits", self.model.n_vocab());
        Ok(())
    }
}

/// A pool; one of `epoch_pool` has statistics.
enum Pool {
    Epoch(Box<epoch_pool::Pool>),
    Other(Box<dyn RowPool>),
}

impl Pool {
    fn new(setting: Setting) -> Result<Self, Box<dyn Error>> {
        let Setting { backend, n_threads } = setting;
        Ok(match backend {
            Backend::Epoch => Self::Epoch(epoch_pool::Pool::new(n_threads - 1)?.into()),
            Backend::EpochSpin0 => {
                Self::Epoch(epoch_pool::Pool::with_spin(n_threads - 1, 0)?.into())
            }
            _ => Self::Other(backend.pool(n_threads).map_err(|error| error.to_string())?),
        })
    }

    fn get(&self) -> &dyn RowPool {
        match self {
            Self::Epoch(pool) => &**pool,
            Self::Other(pool) => &**pool,
        }
    }
}

/// Prints a piece of the answer at once. A reader that has left is no reason to fail.
fn say(text: &str) {
    let mut out = stdout().lock();
    _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
