//! What `cargo xtask bench` and the measuring processes say to each other, as JSON.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::llama::Activations;
use crate::{Backend, Contender, Variants};

/// A group of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// What a job costs over its ideal time.
    Dispatch,
    /// Gigabytes of weights per second, beside the read ceiling.
    Matvec,
    /// Tokens per second of a model's whole sequence of matvecs.
    Decode,
    /// Tokens per second of a model's file, and what they cost: what decode is where a file is named.
    Model,
}

impl Suite {
    /// Every suite that has a name on the command line, in the order in which they run.
    pub const ALL: &[Self] = &[Self::Dispatch, Self::Matvec, Self::Decode];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Matvec => "matvec",
            Self::Decode => "decode",
            Self::Model => "model",
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Suite {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|suite| suite.name().eq_ignore_ascii_case(name.trim()));
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|suite| suite.name()).collect();
            format!("unknown suite `{name}`; the suites are {}", names.join(", "))
        })
    }
}

/// One order to a measuring process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What to measure.
    pub suite: Suite,
    /// On which backend, and where its threads run.
    pub backend: Contender,
    /// Participants, the calling thread included where the backend lets it work.
    pub threads: usize,
    /// Name of the model shape; the suites of dispatches and of a model's file ignore it.
    pub shape: String,
    /// Time for the measuring itself, without set-up.
    pub budget_ms: u64,
    /// Bytes over which the matvec suite rotates its weights.
    pub working_set: usize,
    /// Formats, batches and the like of the matvec and decode suites.
    #[serde(default)]
    pub variants: Variants,
    /// The model's file, and what is done with it; only for its suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRequest>,
}

/// What is done with a model's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The GGUF file. Nobody may change it while it is measured.
    pub file: PathBuf,
    /// What block weights are multiplied with; engines have ways of their own.
    pub activations: Activations,
    /// The text that is written on.
    pub prompt: String,
    /// Tokens that are measured: those behind the first one, which comes out of the prompt.
    pub n_tokens: usize,
}

impl Request {
    /// The time for the measuring itself.
    pub const fn budget(&self) -> Duration {
        Duration::from_millis(self.budget_ms)
    }
}

/// Which way a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Smaller is better, as with a time.
    Lower,
    /// Larger is better, as with a rate.
    Higher,
}

/// One number a process measured, with the samples behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// What was run, such as `2us-x2-gap20us`.
    pub case: String,
    /// What was measured, such as `overhead_p50`.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// The process' value: its median over batches, unless the metric says otherwise.
    pub value: f64,
    /// Differences smaller than this cannot be told from zero; zero where ratios need no floor.
    pub resolution: f64,
    /// Raw samples, one per batch or repeat.
    pub samples: Vec<f64>,
}

/// The answer of a measuring process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Participants the pool really had.
    pub participants: usize,
    /// Instruction set of the kernels in use.
    pub isa: String,
    /// All numbers.
    pub measurements: Vec<Measurement>,
    /// Case to checksum of its output bits; must agree between backends.
    pub checksums: BTreeMap<String, String>,
    /// Remarks for the reader, such as a working set that fits a cache.
    pub notes: Vec<String>,
}

/// A peer that could not be built in: what `peer-runner --missing` lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingPeer {
    /// The peer.
    pub backend: Backend,
    /// The command that installs what its build needs.
    pub install: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_trip() {
        let request = Request {
            suite: Suite::Decode,
            backend: Backend::EpochSpin0.into(),
            threads: 3,
            shape: "Qwen2.5-0.5B".into(),
            budget_ms: 250,
            working_set: 1 << 30,
            model: None,
            variants: Variants::default(),
        };
        let text = serde_json::to_string(&request).unwrap();
        assert!(text.contains(r#""backend":"epoch-spin0""#), "{text}");
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    }

    #[test]
    fn suites_parse_and_errors_list_them() {
        for &suite in Suite::ALL {
            assert_eq!(suite.name().parse::<Suite>().unwrap(), suite);
        }
        let error = "latency".parse::<Suite>().unwrap_err();
        assert!(error.contains("dispatch, matvec, decode"), "{error}");
    }
}
