//! Shapes of the models whose decode is replayed: how many matvecs of which size make one token.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

/// The sizes that fix every matvec of one decoded token.
///
/// ```
/// let shape: benches::ModelShape = "smollm2-135m".parse().unwrap();
/// assert_eq!(shape.n_layers, 30);
/// assert_eq!(shape.n_dispatches(false), 211);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelShape {
    /// Name as users write it; compared without regard to case.
    pub name: &'static str,
    /// Number of transformer layers.
    pub n_layers: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Rows of the query projection.
    pub d_query: usize,
    /// Rows of the key projection, and of the value projection.
    pub d_kv: usize,
    /// Rows of the gate projection, and of the up projection.
    pub d_ff: usize,
    /// Rows of the output head.
    pub n_vocab: usize,
}

/// Name, rows and columns of one matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixShape {
    /// Role of the matrix, such as `gate_up`.
    pub role: &'static str,
    /// Output rows.
    pub n_rows: usize,
    /// Input columns.
    pub n_cols: usize,
}

impl MatrixShape {
    /// Number of weights.
    pub const fn n_weights(self) -> usize {
        self.n_rows * self.n_cols
    }
}

impl fmt::Display for MatrixShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}x{}", self.role, self.n_rows, self.n_cols)
    }
}

impl ModelShape {
    /// Every shape the benches know, smallest first.
    pub const ALL: &[Self] = &[
        Self {
            name: "SmolLM2-135M",
            n_layers: 30,
            d_model: 576,
            d_query: 576,
            d_kv: 192,
            d_ff: 1536,
            n_vocab: 49_152,
        },
        Self {
            name: "Qwen2.5-0.5B",
            n_layers: 24,
            d_model: 896,
            d_query: 896,
            d_kv: 128,
            d_ff: 4864,
            n_vocab: 151_936,
        },
        Self {
            name: "Llama-3.2-1B",
            n_layers: 16,
            d_model: 2048,
            d_query: 2048,
            d_kv: 512,
            d_ff: 8192,
            n_vocab: 128_256,
        },
    ];

    /// The name in lower case, as it stands in case names.
    pub fn slug(&self) -> String {
        self.name.to_ascii_lowercase()
    }

    /// The matrices of one layer as separate dispatches: q, k, v, o, gate, up, down.
    pub fn layer(&self) -> [MatrixShape; 7] {
        let matrix = |role, n_rows, n_cols| MatrixShape { role, n_rows, n_cols };
        [
            matrix("q", self.d_query, self.d_model),
            matrix("k", self.d_kv, self.d_model),
            matrix("v", self.d_kv, self.d_model),
            matrix("o", self.d_model, self.d_query),
            matrix("gate", self.d_ff, self.d_model),
            matrix("up", self.d_ff, self.d_model),
            matrix("down", self.d_model, self.d_ff),
        ]
    }

    /// The output head.
    pub fn head(&self) -> MatrixShape {
        MatrixShape { role: "head", n_rows: self.n_vocab, n_cols: self.d_model }
    }

    /// The fused matrices an engine really runs, one per kind: qkv, gate and up, down, head.
    pub fn fused(&self) -> [MatrixShape; 4] {
        let matrix = |role, n_rows, n_cols| MatrixShape { role, n_rows, n_cols };
        [
            matrix("qkv", self.d_query + 2 * self.d_kv, self.d_model),
            matrix("gate_up", 2 * self.d_ff, self.d_model),
            matrix("down", self.d_model, self.d_ff),
            self.head(),
        ]
    }

    /// Weights of one layer.
    pub fn layer_weights(&self) -> usize {
        self.layer().iter().map(|matrix| matrix.n_weights()).sum()
    }

    /// Weights read for one token.
    pub fn n_weights(&self) -> usize {
        self.n_layers * self.layer_weights() + self.head().n_weights()
    }

    /// Dispatches of one token: one per matrix, or one for QKV and one for gate and up together.
    pub fn n_dispatches(&self, grouped: bool) -> usize {
        self.n_layers * if grouped { 4 } else { 7 } + 1
    }
}

impl fmt::Display for ModelShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for ModelShape {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|shape| shape.name.eq_ignore_ascii_case(name.trim()));
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|shape| shape.name).collect();
            format!("unknown shape `{name}`; the shapes are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_match_the_published_models() {
        // Millions of weights, dispatches separate and grouped.
        let expected = [(134.5, 211, 121), (494.0, 169, 97), (1235.7, 113, 65)];
        for (shape, (millions, separate, grouped)) in ModelShape::ALL.iter().zip(expected) {
            let found = shape.n_weights() as f64 / 1e6;
            assert!((found - millions).abs() < 0.1, "{shape}: {found} million weights");
            assert_eq!(shape.n_dispatches(false), separate, "{shape}");
            assert_eq!(shape.n_dispatches(true), grouped, "{shape}");
        }
    }

    #[test]
    fn names_ignore_case_and_errors_list_them() {
        assert_eq!("LLAMA-3.2-1b".parse::<ModelShape>().unwrap(), ModelShape::ALL[2]);
        let error = "gpt-2".parse::<ModelShape>().unwrap_err();
        for shape in ModelShape::ALL {
            assert!(error.contains(shape.name), "{error}");
        }
    }

    #[test]
    fn fused_matrices_hold_the_weights_of_the_separate_ones() {
        for shape in ModelShape::ALL {
            let separate: usize = shape.layer()[..3].iter().map(|m| m.n_weights()).sum();
            assert_eq!(shape.fused()[0].n_weights(), separate, "{shape}");
        }
    }
}
