//! What test programs share: a writer of GGUF files, made after the format's description and not after the reader; and where
//! the real model is.

#![allow(dead_code, reason = "each test program uses its part of this")]

pub(crate) mod model;

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// SmolLM2's file: where `BENCHES_MODEL` says, or where `cargo xtask model smollm2` has put it. Says so if there is none.
pub(crate) fn model_file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("BENCHES_MODEL") {
        return Some(path.into()); // a wrong one fails the test
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let path = target.join("models/smollm2-135m-instruct-q4_1.gguf");
    let found = path.exists().then_some(path);
    if found.is_none() {
        eprintln!("no model at hand: `cargo xtask model smollm2` gets it");
    }
    found
}

/// A text and its tokens, by an implementation that is not ours.
#[derive(Deserialize)]
pub(crate) struct TokenCase {
    pub(crate) text: String,
    pub(crate) plain: Vec<u32>,
    pub(crate) control: Vec<u32>,
    #[serde(default)]
    pub(crate) gpt2: Vec<u32>,
}

/// A vocabulary, unless it is that of a model's file, and texts with their tokens.
#[derive(Deserialize)]
pub(crate) struct TokenFacts {
    #[serde(default)]
    pub(crate) tokens: Vec<String>,
    #[serde(default)]
    pub(crate) n_control: usize,
    #[serde(default)]
    pub(crate) merges: Vec<String>,
    pub(crate) cases: Vec<TokenCase>,
}

pub(crate) fn small_vocabulary() -> TokenFacts {
    serde_json::from_str(include_str!("../data/small_vocabulary.json")).unwrap()
}

/// Writes that vocabulary, with the splitting rules named.
pub(crate) fn write_vocabulary(file: &mut GgufWriter, facts: &TokenFacts, pre: &str) {
    let types = (0..facts.tokens.len()).map(|id| if id < facts.n_control { 3 } else { 1 });
    file.entry("tokenizer.ggml.model", &Field::String("gpt2"))
        .entry("tokenizer.ggml.pre", &Field::String(pre))
        .entry("tokenizer.ggml.tokens", &Field::strings(&facts.tokens))
        .entry("tokenizer.ggml.token_type", &Field::Array(5, types.map(Field::I32).collect()))
        .entry("tokenizer.ggml.merges", &Field::strings(&facts.merges));
}

/// A value and the type number in front of it.
pub(crate) enum Field<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(&'a str),
    /// Element type and elements, all of that type.
    Array(u32, Vec<Field<'a>>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl<'a> Field<'a> {
    pub(crate) fn strings(texts: &'a [String]) -> Self {
        Self::Array(8, texts.iter().map(|text| Field::String(text)).collect())
    }

    pub(crate) fn type_id(&self) -> u32 {
        match self {
            Self::U8(_) => 0,
            Self::I8(_) => 1,
            Self::U16(_) => 2,
            Self::I16(_) => 3,
            Self::U32(_) => 4,
            Self::I32(_) => 5,
            Self::F32(_) => 6,
            Self::Bool(_) => 7,
            Self::String(_) => 8,
            Self::Array(..) => 9,
            Self::U64(_) => 10,
            Self::I64(_) => 11,
            Self::F64(_) => 12,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(value) => out.extend(value.to_le_bytes()),
            Self::I8(value) => out.extend(value.to_le_bytes()),
            Self::U16(value) => out.extend(value.to_le_bytes()),
            Self::I16(value) => out.extend(value.to_le_bytes()),
            Self::U32(value) => out.extend(value.to_le_bytes()),
            Self::I32(value) => out.extend(value.to_le_bytes()),
            Self::F32(value) => out.extend(value.to_le_bytes()),
            Self::Bool(value) => out.push((*value).into()),
            Self::String(value) => write_string(out, value),
            Self::Array(element_type, elements) => {
                out.extend(element_type.to_le_bytes());
                out.extend((elements.len() as u64).to_le_bytes());
                elements.iter().for_each(|element| element.write(out));
            }
            Self::U64(value) => out.extend(value.to_le_bytes()),
            Self::I64(value) => out.extend(value.to_le_bytes()),
            Self::F64(value) => out.extend(value.to_le_bytes()),
        }
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// A file in the making.
pub(crate) struct GgufWriter {
    pub(crate) version: u32,
    pub(crate) alignment: usize,
    n_entries: u64,
    entries: Vec<u8>,
    n_tensors: u64,
    infos: Vec<u8>,
    data: Vec<u8>,
}

impl GgufWriter {
    pub(crate) fn new() -> Self {
        Self {
            version: 3,
            alignment: 32,
            n_entries: 0,
            entries: Vec::new(),
            n_tensors: 0,
            infos: Vec::new(),
            data: Vec::new(),
        }
    }

    pub(crate) fn entry(&mut self, key: &str, value: &Field<'_>) -> &mut Self {
        self.n_entries += 1;
        write_string(&mut self.entries, key);
        self.entries.extend(value.type_id().to_le_bytes());
        value.write(&mut self.entries);
        self
    }

    /// Adds a tensor behind the ones before.
    pub(crate) fn tensor(
        &mut self,
        name: &str,
        dims: &[u64],
        type_id: u32,
        bytes: &[u8],
    ) -> &mut Self {
        self.data.resize(self.data.len().next_multiple_of(self.alignment), 0);
        self.info(name, dims, type_id, self.data.len() as u64);
        self.data.extend(bytes);
        self
    }

    /// Adds the description of a tensor, whatever it says.
    pub(crate) fn info(&mut self, name: &str, dims: &[u64], type_id: u32, start: u64) -> &mut Self {
        self.n_tensors += 1;
        write_string(&mut self.infos, name);
        self.infos.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| self.infos.extend(dim.to_le_bytes()));
        self.infos.extend(type_id.to_le_bytes());
        self.infos.extend(start.to_le_bytes());
        self
    }

    pub(crate) fn finish(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend(self.n_tensors.to_le_bytes());
        out.extend(self.n_entries.to_le_bytes());
        out.extend(&self.entries);
        out.extend(&self.infos);
        if !self.data.is_empty() {
            out.resize(out.len().next_multiple_of(self.alignment), 0);
            out.extend(&self.data);
        }
        out
    }
}
