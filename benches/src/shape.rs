//! Shapes of the models whose decode is replayed: how many matvecs of which size make one token.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use rowpar::Format;

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

    /// The format that this matrix has in a model whose weights are `format`.
    ///
    /// That is `format` where a row is whole blocks of it. Elsewhere what llama.cpp's quantizer takes then (`tensor_type_fallback`):
    /// for `Q4_K`, `Q5_K` and `Q6_K` their relatives with blocks of 32, and `F16` if those do not fit either.
    ///
    /// ```
    /// use rowpar::Format;
    /// let [qkv, _, down, _] = benches::ModelShape::ALL[0].fused(); // 576 and 1536 columns
    /// assert_eq!([qkv.stored_as(Format::Q4K), down.stored_as(Format::Q4K)], [Format::Q5_0, Format::Q4K]);
    /// ```
    pub fn stored_as(self, format: Format) -> Format {
        if format.row_bytes(self.n_cols).is_some() {
            return format;
        }
        self.stored_as(match format {
            Format::Q4K => Format::Q5_0,
            Format::Q5K => Format::Q5_1,
            Format::Q6K => Format::Q8_0,
            _ => Format::F16,
        })
    }

    /// Bytes of the matrix in the format that it has in such a model.
    pub fn n_bytes(self, format: Format) -> usize {
        let row_bytes = self.stored_as(format).row_bytes(self.n_cols);
        self.n_rows * row_bytes.expect("rows of whole blocks")
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

    /// Bytes of these weights in a model whose weights are `format`.
    pub fn n_bytes(&self, format: Format) -> usize {
        let layer: usize = self.layer().iter().map(|matrix| matrix.n_bytes(format)).sum();
        self.n_layers * layer + self.head().n_bytes(format)
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
    fn bytes_follow_the_format() {
        // Megabytes of a token of SmolLM2-135M; K-quants fit the 1536 columns of `down` only.
        let cases = [
            (Format::F32, 537.9),
            (Format::Bf16, 269.0),
            (Format::Q8_0, 142.9),
            (Format::Q4_0, 75.6),
            (Format::Q4K, 89.1),
        ];
        for (format, megabytes) in cases {
            let found = ModelShape::ALL[0].n_bytes(format) as f64 / 1e6;
            assert!((found - megabytes).abs() < 0.1, "{format}: {found} MB");
        }
        let odd = MatrixShape { role: "odd", n_rows: 2, n_cols: 5 };
        assert_eq!((odd.stored_as(Format::Q6K), odd.n_bytes(Format::Q6K)), (Format::F16, 20));
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
