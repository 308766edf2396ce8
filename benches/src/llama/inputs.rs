//! The inputs of matrices: as they are, or quantized once for all matrices that have them.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use rowpar::{Activation, Q8Activation};
use serde::{Deserialize, Serialize};

use crate::Input;

/// What matrices of block weights are multiplied with. Matrices of floats take floats always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activations {
    /// Floats: slower, and nothing is lost beside what the weights have lost.
    F32,
    /// Eight bits and a scale for 32 values.
    #[default]
    Q8,
}

impl From<Input> for Activations {
    fn from(input: Input) -> Self {
        match input {
            Input::F32 => Self::F32,
            Input::Q8 => Self::Q8,
        }
    }
}

impl fmt::Display for Activations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::Q8 => "q8",
        })
    }
}

impl FromStr for Activations {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "f32" => Ok(Self::F32),
            "q8" => Ok(Self::Q8),
            _ => Err(format!("unknown activations `{name}`; there are f32 and q8")),
        }
    }
}

/// Memory for the inputs of a batch.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    kind: Activations,
    quantized: Vec<Q8Activation>,
}

impl Inputs {
    pub(super) fn new(kind: Activations) -> Self {
        Self { kind, quantized: Vec::new() }
    }

    /// The rows of `n_cols` values of `x`, as inputs.
    pub(super) fn of<'s>(&'s mut self, x: &'s [f32], n_cols: usize) -> Vec<Activation<'s>> {
        let rows = x.chunks_exact(n_cols);
        if self.kind == Activations::F32 {
            return rows.map(Activation::F32).collect();
        }
        self.quantized.resize_with(rows.len(), Q8Activation::new);
        self.quantized.iter_mut().zip(rows).for_each(|(quantized, row)| quantized.quantize(row));
        self.quantized.iter().map(Activation::Q8).collect()
    }
}
