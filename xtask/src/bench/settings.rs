//! What one run measures, worked out from the options and checked before the clock starts.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use benches::protocol::{Request, Suite};
use benches::{Backend, Contender, ModelShape};

use super::machine;
use super::model::{self, Model};
use super::results::Results;
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
    /// What had to be left out, and other remarks for the reader.
    pub(crate) notes: Vec<String>,
}

/// One suite on one shape: in every round, each contender does it once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) suite: Suite,
    pub(crate) shape: ModelShape,
    pub(crate) budget_ms: u64,
    pub(crate) working_set: usize,
}

impl fmt::Display for Task {
    /// Such as `decode SmolLM2-135M`; a dispatch has no shape.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.suite {
            Suite::Dispatch => self.suite.fmt(f),
            Suite::Model => f.write_str("decode of the file"),
            Suite::Matvec | Suite::Decode => write!(f, "{} {}", self.suite, self.shape),
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
        let memory = machine::available_memory();
        let mut tasks = tasks(&suites, &shapes, options.quick, memory, &mut notes);
        if let Some(model) = &model {
            let of_file = tasks.iter_mut().filter(|task| task.suite == Suite::Model);
            of_file.for_each(|task| task.working_set = model.facts.bytes_per_token);
        }
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
        let small = weights.filter(|task| ((task.memory() / MIB) as f64) < 2.0 * cache);
        let note = |task: &Task| {
            format!(
                "{task} goes round in {} MiB of weights beside a last-level cache of {cache} MiB: part of them may be \
                 read from the cache",
                task.memory() / MIB
            )
        };
        small.map(note).collect()
    }

    /// The order to the measuring process.
    pub(crate) fn request(&self, task: Task, contender: Contender) -> Request {
        Request {
            suite: task.suite,
            backend: contender,
            threads: self.threads,
            shape: task.shape.name.into(),
            budget_ms: task.budget_ms,
            working_set: task.working_set,
            model: self
                .model
                .as_ref()
                .filter(|_| task.suite == Suite::Model)
                .map(|m| m.request.clone()),
        }
    }
}

fn shapes(chosen: Option<ModelShape>, quick: bool) -> Vec<ModelShape> {
    match chosen {
        Some(shape) => vec![shape],
        None if quick => vec![ModelShape::ALL[0]],
        None => ModelShape::ALL.to_vec(),
    }
}

/// The tasks of a round: decode once per shape that fits the memory, the others once. Matvecs of one shape
/// already come in four sizes; `--shape` chooses another.
fn tasks(
    suites: &[Suite],
    shapes: &[ModelShape],
    quick: bool,
    memory: Option<usize>,
    notes: &mut Vec<String>,
) -> Vec<Task> {
    let budget_ms = if quick { 300 } else { 600 };
    let working_set = if quick { 512 * MIB } else { 1024 * MIB };
    let mut tasks = Vec::new();
    for &suite in suites {
        for &shape in if suite == Suite::Decode { shapes } else { &shapes[..1] } {
            let task = Task { suite, shape, budget_ms, working_set };
            match memory {
                Some(memory) if task.memory() > memory / 10 * 9 => notes.push(format!(
                    "{suite} of {shape} was left out: it needs {} MiB of memory and {} MiB are free",
                    task.memory() / MIB,
                    memory / MIB
                )),
                _ => tasks.push(task),
            }
        }
    }
    tasks
}

impl Task {
    /// Bytes a measuring process will hold.
    fn memory(self) -> usize {
        let head = 4 * self.shape.head().n_weights();
        match self.suite {
            Suite::Dispatch => 0,
            Suite::Matvec => self.working_set.max(head),
            Suite::Decode => 4 * self.shape.n_weights(),
            // Mapped, and shared by all processes.
            Suite::Model => self.working_set,
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
        let memory = Some(2048 * MIB);
        let tasks = tasks(&[Suite::Decode], ModelShape::ALL, false, memory, &mut notes);
        let shapes: Vec<&str> = tasks.iter().map(|task| task.shape.name).collect();
        assert_eq!(shapes, ["SmolLM2-135M"]);
        assert_eq!(notes.len(), 2);
        assert!(notes[1].contains("Llama-3.2-1B"), "{notes:?}");
    }

    #[test]
    fn decode_runs_once_per_shape() {
        let tasks = tasks(Suite::ALL, ModelShape::ALL, false, None, &mut Vec::new());
        let count = |suite| tasks.iter().filter(|task| task.suite == suite).count();
        assert_eq!(Suite::ALL.iter().map(|&suite| count(suite)).collect::<Vec<_>>(), [1, 1, 3]);
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
