//! Answers a question with a model of the llama family, on any pool.
//!
//! ```text
//! cargo xtask model smollm2
//! cargo run --release -p benches --example generate -- \
//!     --model target/models/smollm2-135m-instruct-q4_1.gguf --pool epoch --threads 2 --prompt "Why is the sky blue?"
//! ```
//!
//! The text goes to the standard output, and then speed, and the statistics of a pool of `epoch_pool`, to the standard error.
//! `--verify rayon:3` runs a second time beside it, plainly and on that pool, and compares every logit of every token, bit for bit: exit code 1 and the
//! first place if one differs. `--packed` packs the matrices first.
//!
//! A file that is no such model, a prompt that has no room in it, and options that mean nothing together are one line on the
//! standard error and exit code 2.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

use benches::Backend;
use benches::gguf::{Gguf, MappedFile};
use benches::llama::{
    Activations, ChatTemplate, Generator, Guesses, Model, ModelError, Sampler, Sampling, Session,
    Side, TextStream, Tokenizer, compare,
};
use clap::Parser;
use rowpar::RowPool;

/// Answers a question with a model of the llama family, on any pool.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// The model, in a GGUF file. Nobody may change the file meanwhile.
    #[arg(long)]
    model: PathBuf,
    /// The pool: serial, rayon, epoch, or another backend of the benches. Statistics are printed for pools of epoch_pool.
    #[arg(long, default_value = "epoch", value_parser = parse_pool)]
    pool: Backend,
    /// Threads, the calling one included. By default one for each performance core.
    #[arg(long, value_parser = parse_threads)]
    threads: Option<usize>,
    /// The question, or with --raw the beginning of a text.
    #[arg(long, overrides_with = "prompt")]
    prompt: String,
    /// What the model is told of itself, instead of what its template says. Needs a template that is known here.
    #[arg(long)]
    system: Option<String>,
    /// Go on with the prompt as it is, and read control tokens in it.
    #[arg(long, conflicts_with = "system")]
    raw: bool,
    /// Most tokens of the answer. It ends with the model's context in any case.
    #[arg(long, default_value_t = 128, value_parser = parse_tokens)]
    max_tokens: usize,
    /// 0 takes the likeliest token always.
    #[arg(long, default_value_t = 0.0, value_parser = parse_temperature)]
    temperature: f32,
    /// With a temperature: choose among so many of the likeliest tokens; 0 for all. By default 40.
    #[arg(long)]
    top_k: Option<usize>,
    /// With a temperature: choose among the likeliest tokens of this probability together. By default 0.95.
    #[arg(long, value_parser = parse_share)]
    top_p: Option<f32>,
    /// With a temperature: the same seed gives the same text. By default 0.
    #[arg(long)]
    seed: Option<u64>,
    /// What matrices are multiplied with: f32, or q8 (eight bits and a scale for 32 values), which is faster.
    #[arg(long, default_value_t = Activations::default())]
    activations: Activations,
    /// 2: guess a token, and let it go through the model with the one before. The text stays the same.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    batch: u8,
    /// Pack the matrices when they are loaded, into memory of their own: faster where a cache holds them. The text stays the same.
    #[arg(long)]
    packed: bool,
    /// Do it all a second time in step with the first, with --batch 1, without --packed and on another pool, such as rayon:3,
    /// and compare all logits in place of printing the text.
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
        Ok(Self { backend: parse_pool(name)?, n_threads: parse_threads(threads)? })
    }
}

impl Options {
    /// What of them would do nothing.
    fn check(&self) -> Result<(), String> {
        let choosing = self.top_k.is_some() || self.top_p.is_some() || self.seed.is_some();
        if choosing && self.temperature == 0.0 {
            return Err("--top-k, --top-p and --seed need a --temperature above 0".into());
        }
        for Setting { backend, n_threads } in [Some(self.setting()), self.verify].iter().flatten() {
            if *backend == Backend::Serial && *n_threads > 1 {
                return Err(format!("the pool {backend} has one thread, not {n_threads}"));
            }
        }
        Ok(())
    }

    fn setting(&self) -> Setting {
        let n_threads = match (self.threads, self.pool) {
            (Some(n_threads), _) => n_threads,
            (None, Backend::Serial) => 1,
            (None, _) => cpu_topology::resolve_cpu_threads(),
        };
        Setting { backend: self.pool, n_threads }
    }

    fn sampling(&self) -> Sampling {
        let usual = Sampling::default();
        Sampling {
            temperature: self.temperature,
            top_k: self.top_k.unwrap_or(usual.top_k),
            top_p: self.top_p.unwrap_or(usual.top_p),
            seed: self.seed.unwrap_or(usual.seed),
        }
    }
}

/// A backend that is a pool, is built here, and is called from outside as this program calls it.
fn parse_pool(name: &str) -> Result<Backend, String> {
    let is_pool = |b: &Backend| !b.is_peer() && !b.is_engine() && *b != Backend::RayonInside;
    name.parse().ok().filter(is_pool).ok_or_else(|| {
        let pools = Backend::ALL.iter().filter(|backend| is_pool(backend));
        let names: Vec<&str> = pools.map(|backend| backend.name()).collect();
        format!("no pool that can be used here; those are {}", names.join(", "))
    })
}

fn parse_tokens(text: &str) -> Result<usize, String> {
    let tokens = text.parse().ok().filter(|tokens| *tokens > 0);
    tokens.ok_or_else(|| "a whole number from 1 is needed".into())
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

/// Of the model's file and what is asked of it.
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
    options.check().map_err(|error| Failure { error: error.into(), exit_code: 2 })?;
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
    // They are said when nothing is wrong: an error stands alone.
    let mut notes = Vec::new();
    let prompt = prompt(options, &gguf, &tokenizer, &mut notes);
    let prompt = prompt.map_err(|error| wrong(error.into()))?;
    let n_tokens = room(options, &model, prompt.len(), &mut notes);
    let n_tokens = n_tokens.map_err(|error| wrong(error.into()))?;
    let end = End::of(&gguf, &tokenizer);
    let bytes = options.packed.then(|| pack(options, &model, &mut notes)).transpose()?;
    let packed = bytes.as_deref().map(|bytes| model.on_packed(bytes));
    let (rows, model) = (&model, packed.as_ref().unwrap_or(&model));
    let run = Run { options, model, tokenizer: &tokenizer, prompt, n_tokens, end };
    let session = |model| run.session(model).map_err(|error| wrong(error.into()));
    let (first, second) = (session(model)?, options.verify.map(|_| session(rows)).transpose()?);
    notes.iter().for_each(|note| eprintln!("note: {note}"));
    match options.verify.zip(second) {
        None => run.generate(first),
        Some((other, second)) => run.verify([first, second], other),
    }
    .map_err(Failure::from)
}

/// Tokens that the answer may have behind a prompt of so many.
fn room(
    options: &Options,
    model: &Model<'_>,
    n_prompt: usize,
    notes: &mut Vec<String>,
) -> Result<usize, String> {
    let n_context = model.config().n_context;
    match n_context.saturating_sub(n_prompt) {
        0 => {
            Err(format!("a prompt of {n_prompt} tokens leaves no room in a context of {n_context}"))
        }
        room if room < options.max_tokens => {
            notes.push(format!("in a context of {n_context} tokens the answer has {room} at most"));
            Ok(room)
        }
        _ => Ok(options.max_tokens),
    }
}

/// The packed bytes of a model's matrices, made by the kind of pool that will multiply with them.
fn pack(
    options: &Options,
    model: &Model<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let pool = Pool::new(options.setting())?;
    let start = Instant::now();
    let bytes = model.pack(pool.get());
    let (seconds, n_bytes) = (start.elapsed().as_secs_f64(), bytes.len() as f64);
    let (millions, ms, rate) = (n_bytes / 1e6, seconds * 1e3, n_bytes / seconds / 1e9);
    notes.push(format!("matrices were packed: {millions:.1} MB in {ms:.0} ms, {rate:.2} GB/s"));
    Ok(bytes)
}

/// The tokens of the prompt.
fn prompt(
    options: &Options,
    gguf: &Gguf<'_>,
    tokenizer: &Tokenizer,
    notes: &mut Vec<String>,
) -> Result<Vec<u32>, String> {
    let template = ChatTemplate::from_gguf(gguf, tokenizer).filter(|_| !options.raw);
    let tokens = match template {
        Some(template) => template.question(tokenizer, options.system.as_deref(), &options.prompt),
        None if options.raw => {
            tokenizer.mark_beginning(tokenizer.encode_with_control(&options.prompt))
        }
        None if options.system.is_some() => {
            return Err("--system needs a chat template that is known here".into());
        }
        None => {
            let what =
                "the file has no chat template that is known here: the prompt is taken as it is";
            notes.push(what.into());
            tokenizer.mark_beginning(tokenizer.encode(&options.prompt))
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
    /// Most tokens of the answer.
    n_tokens: usize,
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

impl<'a> Run<'_, 'a> {
    /// With room for the prompt and the answer.
    fn session<'m>(&self, model: &'m Model<'a>) -> Result<Session<'m, 'a>, ModelError> {
        let capacity = self.prompt.len() + self.n_tokens;
        Session::new(model, capacity, self.options.activations)
    }

    fn sampler(&self) -> Sampler {
        Sampler::new(self.options.sampling())
    }

    fn is_guessing(&self) -> bool {
        self.options.batch == 2
    }

    /// Generates, and calls `see` with every token of the answer.
    fn tokens(
        &self,
        session: Session<'_, '_>,
        pool: &dyn RowPool,
        mut see: impl FnMut(u32),
    ) -> Times {
        let (mut n_seen, mut done) = (0, false);
        let mut see = |token: u32, _: &[f32]| {
            done = done || self.end.tokens.contains(&token);
            if !done {
                see(token);
                n_seen += 1;
                done = n_seen == self.n_tokens;
            }
            done
        };
        let start = Instant::now();
        let mut is_done = false;
        let mut note = |token: u32, logits: &[f32]| is_done = see(token, logits);
        let (sampler, guessing) = (self.sampler(), self.is_guessing());
        let mut generator =
            Generator::new(session, sampler, guessing, pool, &self.prompt, &mut note);
        let prompt = start.elapsed();
        while !is_done && generator.has_room() {
            generator.step(pool, &mut |token, logits| is_done = see(token, logits));
        }
        let decode = start.elapsed() - prompt;
        Times { prompt, decode, n_decoded: n_seen.max(1) - 1, guesses: generator.guesses() }
    }

    fn generate(&self, session: Session<'_, '_>) -> Result<(), Box<dyn Error>> {
        let pool = Pool::new(self.options.setting())?;
        let mut stream = TextStream::default();
        let times = self.tokens(session, pool.get(), |token| {
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
    fn verify(&self, sessions: [Session<'_, '_>; 2], other: Setting) -> Result<(), Box<dyn Error>> {
        let pools = [Pool::new(self.options.setting())?, Pool::new(other)?];
        let [one, other] = sessions;
        let one = Side::new(one, self.sampler(), self.is_guessing(), pools[0].get(), &self.prompt);
        let other = Side::new(other, self.sampler(), false, pools[1].get(), &self.prompt);
        let n_tokens = compare(one, other, self.n_tokens, |token| self.end.tokens.contains(&token))
            .map_err(|difference| format!("the two runs differ: {difference}"))?;
        println!("{n_tokens} tokens, {} logits each: the same bits", self.model.n_vocab());
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
