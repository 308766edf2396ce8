//! The matrices of a model, where they are in the file or packed in other memory.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::ptr;

use rowpar::Matrix;

use super::{Config, ModelError};
use crate::gguf::{Gguf, Tensor};

/// All weights of a model.
#[derive(Clone, Debug)]
pub(super) struct Weights<'a> {
    pub(super) embedding: Matrix<'a>,
    pub(super) layers: Vec<Layer<'a>>,
    pub(super) norm: Vec<f32>,
    /// The embedding once more, if the file has no other.
    pub(super) head: Matrix<'a>,
}

/// The weights of a layer.
#[derive(Clone, Debug)]
pub(super) struct Layer<'a> {
    pub(super) attention_norm: Vec<f32>,
    pub(super) query: Matrix<'a>,
    pub(super) key: Matrix<'a>,
    pub(super) value: Matrix<'a>,
    pub(super) attention_out: Matrix<'a>,
    pub(super) ffn_norm: Vec<f32>,
    pub(super) gate: Matrix<'a>,
    pub(super) up: Matrix<'a>,
    pub(super) down: Matrix<'a>,
}

impl<'a> Weights<'a> {
    /// The matrices that are multiplied for a token, in order.
    pub(super) fn matrices(&self) -> impl Iterator<Item = Matrix<'a>> {
        let layers = self.layers.iter().flat_map(|layer| {
            let Layer { query, key, value, attention_out, gate, up, down, .. } = *layer;
            [query, key, value, attention_out, gate, up, down]
        });
        layers.chain([self.head])
    }

    /// The same weights; those [`matrices`](Self::matrices) are packed in `bytes`, one behind the other.
    ///
    /// # Panics
    ///
    /// If there are more or fewer bytes than the matrices have.
    pub(super) fn on_packed<'b>(&self, bytes: &'b [u8]) -> Weights<'b>
    where
        'a: 'b,
    {
        let mut rest = bytes;
        let mut next = |w: Matrix<'a>| {
            let (bytes, behind) = rest.split_at(w.bytes().len());
            rest = behind;
            Matrix::from_packed(w.format(), w.n_rows(), w.n_cols(), bytes)
                .expect("as many bytes as the matrix has")
        };
        let layers = self.layers.iter().map(|layer| Layer {
            attention_norm: layer.attention_norm.clone(),
            query: next(layer.query),
            key: next(layer.key),
            value: next(layer.value),
            attention_out: next(layer.attention_out),
            ffn_norm: layer.ffn_norm.clone(),
            gate: next(layer.gate),
            up: next(layer.up),
            down: next(layer.down),
        });
        let (layers, head) = (layers.collect(), next(self.head));
        assert!(rest.is_empty(), "{} bytes are no matrix", rest.len());
        let is_tied = ptr::eq(self.head.bytes(), self.embedding.bytes());
        let embedding = if is_tied { head } else { self.embedding };
        Weights { embedding, layers, norm: self.norm.clone(), head }
    }

    /// Takes every tensor that the sizes ask for, and refuses a file with others: a bias left out is another model.
    pub(super) fn from_gguf(gguf: &Gguf<'a>, config: &Config) -> Result<Self, ModelError> {
        let mut loader = Loader { gguf, taken: HashSet::new() };
        let embedding = loader.embedding(config.d_model)?;
        let n_vocab = embedding.n_rows();
        let norm = loader.vector("output_norm.weight", config.d_model)?;
        let head = match gguf.tensor("output.weight") {
            Some(_) => loader.matrix("output.weight", n_vocab, config.d_model)?,
            None => embedding,
        };
        let layers = (0..config.n_layers).map(|index| loader.layer(index, config));
        let layers = layers.collect::<Result<Vec<_>, ModelError>>()?;
        match gguf.tensors().find(|tensor| !loader.taken.contains(tensor.name)) {
            Some(tensor) => Err(ModelError::UnknownTensor(tensor.name.to_owned())),
            None => Ok(Self { embedding, layers, norm, head }),
        }
    }
}

struct Loader<'g, 'a> {
    gguf: &'g Gguf<'a>,
    taken: HashSet<&'a str>,
}

impl<'a> Loader<'_, 'a> {
    fn layer(&mut self, index: usize, config: &Config) -> Result<Layer<'a>, ModelError> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let Config { d_model, d_ff, .. } = *config;
        let (d_query, d_kv) = (config.d_query(), config.d_kv());
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm"), d_model)?,
            query: self.matrix(&name("attn_q"), d_query, d_model)?,
            key: self.matrix(&name("attn_k"), d_kv, d_model)?,
            value: self.matrix(&name("attn_v"), d_kv, d_model)?,
            attention_out: self.matrix(&name("attn_output"), d_model, d_query)?,
            ffn_norm: self.vector(&name("ffn_norm"), d_model)?,
            gate: self.matrix(&name("ffn_gate"), d_ff, d_model)?,
            up: self.matrix(&name("ffn_up"), d_ff, d_model)?,
            down: self.matrix(&name("ffn_down"), d_model, d_ff)?,
        })
    }

    fn take(&mut self, name: &str) -> Result<Tensor<'a>, ModelError> {
        let found = self.gguf.tensor(name);
        let tensor = found.ok_or_else(|| ModelError::MissingTensor(name.to_owned()))?;
        self.taken.insert(tensor.name);
        Ok(tensor)
    }

    /// The embedding has as many rows as there are tokens, whatever their number.
    fn embedding(&mut self, d_model: usize) -> Result<Matrix<'a>, ModelError> {
        let tensor = self.take("token_embd.weight")?;
        let n_rows = usize::try_from(tensor.dims[1]).unwrap_or(usize::MAX);
        shaped(&tensor, n_rows, d_model)
    }

    fn matrix(
        &mut self,
        name: &str,
        n_rows: usize,
        n_cols: usize,
    ) -> Result<Matrix<'a>, ModelError> {
        shaped(&self.take(name)?, n_rows, n_cols)
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, ModelError> {
        let matrix = shaped(&self.take(name)?, 1, len)?;
        let mut values = vec![0.0; len];
        matrix.row_to_f32(0, &mut values);
        Ok(values)
    }
}

/// A tensor as a matrix of a shape that it must have.
fn shaped<'a>(tensor: &Tensor<'a>, n_rows: usize, n_cols: usize) -> Result<Matrix<'a>, ModelError> {
    let expected = [n_cols as u64, n_rows as u64, 1, 1];
    if tensor.dims != expected {
        let (tensor, found) = (tensor.name.to_owned(), tensor.dims);
        return Err(ModelError::Shape { tensor, expected, found });
    }
    let matrix = Matrix::from_gguf(tensor.tensor_type.id(), n_rows, n_cols, tensor.bytes);
    // Its shape was checked here and its length by the reader, so what is left is the type.
    matrix.map_err(|_| ModelError::TensorType {
        tensor: tensor.name.to_owned(),
        tensor_type: tensor.tensor_type.name(),
    })
}
