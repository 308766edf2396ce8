//! What one run measures, worked out from the options and checked before the clock starts.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use benches::matvec::MatvecSuite;
use benches::protocol::{ModelRequest, Request, Suite};
use benches::{Backend, Contender, ModelShape, Variants};
use rowpar::Format;

use super::format::bytes;
use super::machine;
use super::model::{self, Model};
use super::results::Results;
use super::variants::VariantOptions;
use crate::cli::{BenchOptions, UsageError};
use crate::workspace;

const MIB: usize = 1 << 20;

/// A run, ready to start.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) quick: bool,
    pub(crate) contenders: Vec<Contender>,
    pub(crate) threads: usize,
    /// Busy processes beside what is measured.
    pub(crate) disturb: usize,
    pub(crate) out: PathBuf,
    pub(crate) baseline: Option<Results>,
    /// The file of the suite of a model's file.
    pub(crate) model: Option<Model>,
    /// What is measured in each round, in this order.
    pub(crate) tasks: Vec<Task>,
    pub(crate) pace: Pace,
    /// Formats, batches and the like as they were asked for.
    pub(crate) variants: VariantOptions,
    /// What had to be left out, and other remarks for the reader.
    pub(crate) notes: Vec<String>,
}

/// One suite on one shape: in every round, each contender does it once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) suite: Suite,
    pub(crate) shape: ModelShape,
    /// Of the weights of a decode.
    pub(crate) format: Format,
    pub(crate) budget_ms: u64,
    pub(crate) working_set: usize,
}

impl fmt::Display for Task {
    /// Such as `decode SmolLM2-135M Q8_0`; a dispatch has no shape.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.suite {
            Suite::Dispatch => self.suite.fmt(f),
            Suite::Model => f.write_str("decode of the file"),
            Suite::Matvec => write!(f, "{} {}", self.suite, self.shape),
            Suite::Decode => write!(f, "{} {} {}", self.suite, self.shape, self.format),
        }
    }
}

/// How many rounds there are, and how long they may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    pub(crate) min_rounds: usize,
    pub(crate) max_rounds: usize,
    /// After the least number of rounds, none is begun that would end later than this.
    pub(crate) limit: Duration,
}

impl Pace {
    fn new(quick: bool) -> Self {
        if quick {
            Self { min_rounds: 3, max_rounds: 5, limit: Duration::from_secs(50) }
        } else {
            Self { min_rounds: 7, max_rounds: 11, limit: Duration::from_secs(420) }
        }
    }
}

impl Settings {
    /// Checks everything that can be checked in advance; each mistake is a [`UsageError`].
    pub(crate) fn new(options: BenchOptions) -> anyhow::Result<Self> {
        let out = match &options.out {
            Some(folder) => folder.clone(),
            None => workspace::target_dir()?.join("bench"),
        };
        let contenders = Contender::all(&options.backends, &options.placement, &options.spin);
        let suites = model::suites(&options)?;
        let model = Model::find(&options)?;
        check_bindable(&contenders)?;
        check_writable(&out)?;
        let baseline = options.baseline.as_deref().map(Results::load).transpose()?;
        let mut notes: Vec<String> = model.iter().map(Model::note).collect();
        let shapes = shapes(options.shape, options.quick);
        let backends = unique(&options.backends);
        options.variants.check(&suites, &backends)?;
        let mut tasks = tasks(&suites, &shapes, options.quick, &options.variants);
        if let Some(model) = &model {
            let of_file = tasks.iter_mut().filter(|task| task.suite == Suite::Model);
            of_file.for_each(|task| task.working_set = model.facts.bytes_per_token);
        }
        check_working_sets(&tasks)?;
        keep_fitting(
            &mut tasks,
            machine::available_memory(),
            |suite| n_arenas(suite, &backends, &options.variants),
            &mut notes,
        );
        if options.disturb > 0 {
            notes.push(format!("busy processes beside everything measured: {}", options.disturb));
        }
        ensure!(!tasks.is_empty(), "nothing is left to measure: {}", notes.join("; "));
        Ok(Self {
            quick: options.quick,
            contenders,
            threads: options.threads.unwrap_or_else(cpu_topology::resolve_cpu_threads),
            disturb: options.disturb,
            out,
            baseline,
            model,
            tasks,
            pace: Pace::new(options.quick),
            variants: options.variants,
            notes,
        })
    }

    /// With whom tables compare the others: rayon if it runs, else serial, else the first.
    pub(crate) fn reference(&self) -> Contender {
        let on = |backend| self.contenders.iter().find(|contender| contender.backend() == backend);
        let found = [Backend::Rayon, Backend::Serial].into_iter().find_map(on);
        *found.unwrap_or(&self.contenders[0])
    }

    /// A note for each task whose weights a cache of this size could hold, or half of them.
    pub(crate) fn cache_notes(&self, last_level_cache_mib: Option<f64>) -> Vec<String> {
        let Some(cache) = last_level_cache_mib else { return Vec::new() };
        let weights = self.tasks.iter().filter(|task| task.suite != Suite::Dispatch);
        let small = weights.filter(|task| (task.weights() as f64) < 2.0 * cache * MIB as f64);
        let note = |task: &Task| {
            format!(
                "{task} goes round in {} of weights beside a last-level cache of {cache} MiB: part of them may be \
                 read from the cache",
                bytes(task.weights())
            )
        };
        small.map(note).collect()
    }

    fn backends(&self) -> Vec<Backend> {
        unique(&self.contenders.iter().map(|contender| contender.backend()).collect::<Vec<_>>())
    }

    /// The order to the measuring process.
    pub(crate) fn request(&self, task: Task, contender: Contender) -> Request {
        let variants = match task.suite {
            Suite::Matvec => self.variants.matvec(self.quick, &self.backends()),
            Suite::Dispatch => Variants::default(),
            Suite::Decode | Suite::Model => Variants {
                formats: vec![task.format],
                packed: self.variants.packed,
                ..Variants::default()
            },
        };
        Request {
            suite: task.suite,
            backend: contender,
            threads: self.threads,
            shape: task.shape.name.into(),
            budget_ms: task.budget_ms,
            working_set: task.working_set,
            variants,
            model: self.model.as_ref().filter(|_| task.suite == Suite::Model).map(request_of),
        }
    }
}

fn request_of(model: &Model) -> ModelRequest {
    model.request.clone()
}

fn shapes(chosen: Option<ModelShape>, quick: bool) -> Vec<ModelShape> {
    match chosen {
        Some(shape) => vec![shape],
        None if quick => vec![ModelShape::ALL[0]],
        None => ModelShape::ALL.to_vec(),
    }
}

/// The tasks of a round: decode once per shape and format, the others once. Matvecs of one shape already come in four
/// sizes; `--shape` chooses another.
fn tasks(
    suites: &[Suite],
    shapes: &[ModelShape],
    quick: bool,
    variants: &VariantOptions,
) -> Vec<Task> {
    let usual_set = if quick { 512 * MIB } else { 1024 * MIB };
    let working_set = variants.working_set.unwrap_or(usual_set);
    let usual_ms = if quick { 300 } else { 600 };
    let mut tasks = Vec::new();
    for &suite in suites {
        let budget_ms = match (suite, quick) {
            (Suite::Matvec, _) => matvec_ms(quick, variants),
            (Suite::Decode, _) if variants.packed => 2 * usual_ms,
            _ => usual_ms,
        };
        let task = |shape, format| Task { suite, shape, format, budget_ms, working_set };
        match suite {
            Suite::Dispatch | Suite::Matvec | Suite::Model => {
                tasks.push(task(shapes[0], Format::F32))
            }
            Suite::Decode => tasks.extend(shapes.iter().flat_map(|&shape| {
                variants.decode().into_iter().map(move |format| task(shape, format))
            })),
        }
    }
    tasks
}

/// Milliseconds for all formats and ways: more of them need more turns.
fn matvec_ms(quick: bool, options: &VariantOptions) -> u64 {
    let Variants { formats, batches, isas, packed, .. } = options.matvec(quick, &[]);
    let ways = batches.len() * isas.len().max(1) * if packed { 2 } else { 1 };
    let each = if quick { 120 } else { 500 };
    each * formats.len() as u64 * ways.max(2) as u64 / 2
}

/// How often a process may hold its weights: packed ones are copies, and candle makes two of its own.
fn n_arenas(suite: Suite, backends: &[Backend], variants: &VariantOptions) -> usize {
    let has_candle = suite == Suite::Matvec && backends.contains(&Backend::Candle);
    1 + usize::from(variants.packed) + 2 * usize::from(has_candle)
}

/// Leaves tasks out that need more memory than there is, with a note.
fn keep_fitting(
    tasks: &mut Vec<Task>,
    memory: Option<usize>,
    n_arenas: impl Fn(Suite) -> usize,
    notes: &mut Vec<String>,
) {
    let Some(memory) = memory else { return };
    tasks.retain(|task| {
        let needed = n_arenas(task.suite) * task.weights();
        let fits = needed <= memory / 10 * 9;
        if !fits {
            notes.push(format!(
                "{task} was left out: it needs {} of memory and {} are free",
                bytes(needed),
                bytes(memory)
            ));
        }
        fits
    });
}

impl Task {
    /// Bytes of weights that a measuring process goes round in.
    fn weights(self) -> usize {
        match self.suite {
            Suite::Dispatch => 0,
            Suite::Matvec | Suite::Model => self.working_set,
            Suite::Decode => self.shape.n_bytes(self.format),
        }
    }
}

/// Each item once, where it was first.
pub(crate) fn unique<T: Copy + PartialEq>(items: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for item in items {
        if !kept.contains(item) {
            kept.push(*item);
        }
    }
    kept
}

/// A working set that has no room for a few rows of each matrix would be a larger one.
fn check_working_sets(tasks: &[Task]) -> Result<(), UsageError> {
    for task in tasks.iter().filter(|task| task.suite == Suite::Matvec) {
        let least = MatvecSuite::least_working_set(task.shape);
        if task.working_set < least {
            return Err(UsageError(format!(
                "--working-set of {} is too small: a few rows of every matrix of {} take {}",
                bytes(task.working_set),
                task.shape,
                bytes(least)
            )));
        }
    }
    Ok(())
}

/// Some systems cannot bind threads.
fn check_bindable(contenders: &[Contender]) -> Result<(), UsageError> {
    let Some(bound) = contenders.iter().find(|contender| contender.is_bound()) else {
        return Ok(());
    };
    match cpu_topology::current_thread_affinity() {
        Ok(_) => Ok(()),
        Err(error) => Err(UsageError(format!("{bound}: {error}"))),
    }
}

/// Makes the folder and writes a file in it, to fail now rather than after minutes of measuring.
fn check_writable(folder: &Path) -> Result<(), UsageError> {
    let attempt = || {
        fs::create_dir_all(folder)?;
        let probe = folder.join(".writable");
        fs::File::create(&probe)?.write_all(b"?")?;
        fs::remove_file(&probe)
    };
    attempt().map_err(|error| UsageError(format!("cannot write to {}: {error}", folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_that_does_not_fit_is_left_out_with_a_note() {
        let mut notes = Vec::new();
        let options = VariantOptions::default();
        let copies = |suite| n_arenas(suite, &[Backend::Epoch], &options);
        let packed = VariantOptions { packed: true, ..options.clone() };
        let packed = |suite| n_arenas(suite, &[Backend::Epoch], &packed);
        let mut tasks = tasks(&[Suite::Decode], ModelShape::ALL, false, &options);
        keep_fitting(&mut tasks, Some(2048 * MIB), copies, &mut notes);
        let shapes: Vec<&str> = tasks.iter().map(|task| task.shape.name).collect();
        assert_eq!(shapes, ["SmolLM2-135M"]);
        assert_eq!(notes.len(), 2);
        assert!(notes[1].contains("Llama-3.2-1B"), "{notes:?}");
        keep_fitting(&mut tasks, Some(1100 * MIB), packed, &mut notes);
        assert!(tasks.is_empty() && notes.len() == 3, "{notes:?}");
        let mut matvec = super::tasks(&[Suite::Matvec], ModelShape::ALL, false, &options);
        keep_fitting(&mut matvec, Some(2048 * MIB), copies, &mut notes);
        assert_eq!(matvec.len(), 1);
        keep_fitting(&mut matvec, Some(2048 * MIB), packed, &mut notes);
        assert_eq!(
            (matvec.len(), notes.len()),
            (0, 4),
            "a copy of 1 GiB leaves nothing of 2 GiB free"
        );
    }

    #[test]
    fn decode_runs_once_per_shape_and_format() {
        let formats = vec![Format::Q8_0, Format::Q4K];
        let variants = VariantOptions { formats, ..VariantOptions::default() };
        let smallest = tasks(&[Suite::Decode], &ModelShape::ALL[..1], true, &variants);
        let names: Vec<String> = smallest.iter().map(Task::to_string).collect();
        assert_eq!(names, ["decode SmolLM2-135M Q8_0", "decode SmolLM2-135M Q4_K"]);
        let tasks = tasks(Suite::ALL, ModelShape::ALL, false, &VariantOptions::default());
        let count = |suite| tasks.iter().filter(|task| task.suite == suite).count();
        assert_eq!(Suite::ALL.iter().map(|&suite| count(suite)).collect::<Vec<_>>(), [1, 1, 3]);
    }

    #[test]
    fn a_working_set_of_less_than_some_rows_is_a_usage_error() {
        let least = MatvecSuite::least_working_set(ModelShape::ALL[0]);
        for (bytes, fits) in [(128, false), (least - 1, false), (least, true)] {
            let variants = VariantOptions { working_set: Some(bytes), ..VariantOptions::default() };
            let tasks = tasks(Suite::ALL, ModelShape::ALL, true, &variants);
            assert_eq!(check_working_sets(&tasks).is_ok(), fits, "{bytes}");
        }
    }

    #[test]
    fn quick_runs_the_smallest_shape() {
        assert_eq!(shapes(None, true), [ModelShape::ALL[0]]);
        assert_eq!(shapes(Some(ModelShape::ALL[2]), true), [ModelShape::ALL[2]]);
        assert_eq!(shapes(None, false).len(), 3);
    }

    #[test]
    fn an_unwritable_folder_is_a_usage_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_writable(&folder.path().join("a/b")).is_ok());
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(check_writable(&file).is_err());
    }
}
