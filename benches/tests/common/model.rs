//! A small model of random weights, and what a textbook would make of it.

use benches::SplitMix64;
use rowpar::{Format, oracle};

use super::{Field, GgufWriter};

pub(crate) const N_LAYERS: usize = 2;
pub(crate) const D_MODEL: usize = 256;
pub(crate) const N_HEADS: usize = 4;
pub(crate) const N_KV_HEADS: usize = 2;
pub(crate) const D_HEAD: usize = 64;
pub(crate) const D_FF: usize = 256;
pub(crate) const N_CONTEXT: usize = 64;
const EPSILON: f32 = 1e-5;
const ROPE_BASE: f64 = 10_000.0;

/// A text for it.
pub(crate) const TOKENS: [u32; 12] = [1, 20, 300, 4, 20, 300, 5, 66, 597, 0, 20, 300];

/// Spread of the weights: what comes out of a row is as large as what goes in.
const SPREAD: f32 = 1.0 / 16.0;

struct TensorSpec {
    name: String,
    dims: Vec<u64>,
    format: Format,
    bytes: Vec<u8>,
}

pub(crate) struct SmallModel {
    pub(crate) file: Vec<u8>,
    tensors: Vec<TensorSpec>,
}

/// The model, with a head of its own or with the embedding as its head.
pub(crate) fn small_model(with_head: bool) -> SmallModel {
    let file = SmallModel::writer(with_head, |_| true).finish();
    SmallModel { file, tensors: tensors(with_head) }
}

fn tensors(with_head: bool) -> Vec<TensorSpec> {
    let vocabulary = super::small_vocabulary().tokens.len();
    let mut random = SplitMix64::new(11);
    let mut formats = Format::ALL.iter().copied().cycle();
    let mut tensors = Vec::new();
    let mut add = |name: String, n_rows: usize, n_cols: usize, format: Format| {
        let bytes = random_bytes(&mut random, format, n_rows * n_cols);
        tensors.push(TensorSpec { name, dims: vec![n_cols as u64, n_rows as u64], format, bytes });
    };
    add("token_embd.weight".into(), vocabulary, D_MODEL, Format::Q8_0);
    if with_head {
        add("output.weight".into(), vocabulary, D_MODEL, Format::Q6K);
    }
    let (d_query, d_kv) = (N_HEADS * D_HEAD, N_KV_HEADS * D_HEAD);
    for layer in 0..N_LAYERS {
        for (part, n_rows, n_cols) in [
            ("attn_q", d_query, D_MODEL),
            ("attn_k", d_kv, D_MODEL),
            ("attn_v", d_kv, D_MODEL),
            ("attn_output", D_MODEL, d_query),
            ("ffn_gate", D_FF, D_MODEL),
            ("ffn_up", D_FF, D_MODEL),
            ("ffn_down", D_MODEL, D_FF),
        ] {
            let format = formats.next().expect("a cycle");
            add(format!("blk.{layer}.{part}.weight"), n_rows, n_cols, format);
        }
    }
    let norms = (0..N_LAYERS).flat_map(|layer| {
        ["attn_norm", "ffn_norm"].map(|part| format!("blk.{layer}.{part}.weight"))
    });
    for name in norms.chain(["output_norm.weight".into()]) {
        let values = (0..D_MODEL).map(|_| 0.5 + random.next_unit() as f32);
        let bytes = values.flat_map(f32::to_le_bytes).collect();
        let dims = vec![D_MODEL as u64];
        tensors.push(TensorSpec { name, dims, format: Format::F32, bytes });
    }
    tensors
}

/// Blocks of random bits with scales that give the weights about [`SPREAD`].
fn random_bytes(random: &mut SplitMix64, format: Format, n_weights: usize) -> Vec<u8> {
    let n_blocks = n_weights / format.block_len();
    let mut bytes = Vec::with_capacity(n_blocks * format.block_bytes());
    for _ in 0..n_blocks {
        let factor = 0.7 + 0.6 * random.next_unit() as f32;
        let start = bytes.len();
        bytes.extend((0..format.block_bytes()).map(|_| random.next_u64() as u8));
        let block = &mut bytes[start..];
        let mut scale = |at: usize, value: f32| {
            block[at..at + 2].copy_from_slice(&f16(value * factor * SPREAD).to_le_bytes());
        };
        // The spread of q bits is 2^q / √12, their middle 2^q / 2; of a 6-bit scale the middle is 31.5.
        match format {
            Format::F32 | Format::F16 | Format::Bf16 => {
                let value = (random.next_unit() as f32 * 2.0 - 1.0) * 1.7 * SPREAD;
                match format {
                    Format::F32 => block.copy_from_slice(&value.to_le_bytes()),
                    Format::F16 => block.copy_from_slice(&f16(value).to_le_bytes()),
                    _ => block.copy_from_slice(&value.to_bits().to_le_bytes()[2..]),
                }
            }
            Format::Q8_0 => scale(0, 1.0 / 73.9),
            Format::Q4_0 => scale(0, 1.0 / 4.6),
            Format::Q5_0 => scale(0, 1.0 / 9.2),
            Format::Q4_1 => {
                scale(0, 1.0 / 4.6);
                scale(2, -7.5 / 4.6);
            }
            Format::Q5_1 => {
                scale(0, 1.0 / 9.2);
                scale(2, -15.5 / 9.2);
            }
            Format::Q4K => {
                scale(0, 1.0 / 4.6 / 36.0);
                scale(2, 7.5 / 4.6 / 36.0);
            }
            Format::Q5K => {
                scale(0, 1.0 / 9.2 / 36.0);
                scale(2, 15.5 / 9.2 / 36.0);
            }
            Format::Q6K => scale(208, 1.0 / 18.5 / 73.9),
            other => panic!("this test knows no {other}"),
        }
    }
    bytes
}

/// A binary16 near a small number.
fn f16(value: f32) -> u16 {
    let sign = if value < 0.0 { 0x8000 } else { 0 };
    let magnitude = value.abs();
    let bits = if magnitude < 2.0_f32.powi(-14) {
        (magnitude * 2.0_f32.powi(24)) as u16
    } else {
        ((magnitude.to_bits() >> 13) - (112 << 10)) as u16
    };
    sign | bits
}

impl SmallModel {
    /// The file, of those entries and tensors whose names are wanted.
    pub(crate) fn writer(with_head: bool, wanted: impl Fn(&str) -> bool) -> GgufWriter {
        let mut file = GgufWriter::new();
        let number = |value: usize| Field::U32(value as u32);
        let entries = [
            ("general.architecture", Field::String("llama")),
            ("llama.block_count", number(N_LAYERS)),
            ("llama.embedding_length", number(D_MODEL)),
            ("llama.feed_forward_length", number(D_FF)),
            ("llama.attention.head_count", number(N_HEADS)),
            ("llama.attention.head_count_kv", number(N_KV_HEADS)),
            ("llama.context_length", number(N_CONTEXT)),
            ("llama.attention.layer_norm_rms_epsilon", Field::F32(EPSILON)),
        ];
        for (key, value) in entries.iter().filter(|(key, _)| wanted(key)) {
            file.entry(key, value);
        }
        super::write_vocabulary(&mut file, &super::small_vocabulary(), "smollm");
        for tensor in tensors(with_head).iter().filter(|tensor| wanted(&tensor.name)) {
            file.tensor(&tensor.name, &tensor.dims, tensor.format.gguf_id(), &tensor.bytes);
        }
        file
    }

    /// The rows of a matrix.
    fn matrix(&self, name: &str) -> Vec<Vec<f64>> {
        let name = format!("{name}.weight");
        let tensor = self.tensors.iter().find(|tensor| tensor.name == name).expect("a tensor");
        let n_cols = tensor.dims[0] as usize;
        let row_bytes = tensor.format.row_bytes(n_cols).expect("whole blocks");
        let rows = tensor.bytes.chunks_exact(row_bytes).map(|row| {
            let mut values = vec![0.0; n_cols];
            oracle::row_to_f32(tensor.format, row, &mut values);
            values.into_iter().map(f64::from).collect()
        });
        rows.collect()
    }

    fn times(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let rows = self.matrix(name);
        rows.iter().map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let mean: f64 = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let weight = &self.matrix(name)[0];
        x.iter().zip(weight).map(|(x, w)| x / (mean + f64::from(EPSILON)).sqrt() * w).collect()
    }

    /// The logits after every token, in double precision and without a cache.
    pub(crate) fn textbook(&self, tokens: &[u32]) -> Vec<f64> {
        let embedding = self.matrix("token_embd");
        let mut x: Vec<Vec<f64>> =
            tokens.iter().map(|&token| embedding[token as usize].clone()).collect();
        for layer in 0..N_LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}");
            let normed: Vec<_> = x.iter().map(|x| self.norm(&name("attn_norm"), x)).collect();
            let of = |part: &str| -> Vec<Vec<f64>> {
                normed.iter().map(|x| self.times(&name(part), x)).collect()
            };
            let attended = attend(turn(of("attn_q")), turn(of("attn_k")), of("attn_v"));
            for (x, attended) in x.iter_mut().zip(&attended) {
                add(x, &self.times(&name("attn_output"), attended));
                let normed = self.norm(&name("ffn_norm"), x);
                let gate = self.times(&name("ffn_gate"), &normed);
                let up = self.times(&name("ffn_up"), &normed);
                let silu = gate.iter().map(|gate| gate / (1.0 + (-gate).exp()));
                let inner: Vec<f64> = silu.zip(&up).map(|(gate, up)| gate * up).collect();
                add(x, &self.times(&name("ffn_down"), &inner));
            }
        }
        let with_head = self.tensors.iter().any(|tensor| tensor.name == "output.weight");
        let head = if with_head { "output" } else { "token_embd" };
        x.iter().flat_map(|x| self.times(head, &self.norm("output_norm", x))).collect()
    }
}

fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// Pairs of neighbours are complex numbers, which are turned by position · base^(−2·pair/width).
fn turn(mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for (position, row) in rows.iter_mut().enumerate() {
        for (index, pair) in row.chunks_exact_mut(2).enumerate() {
            let exponent = (2 * (index % (D_HEAD / 2))) as f64 / D_HEAD as f64;
            let angle = position as f64 / ROPE_BASE.powf(exponent);
            let (re, im) = (pair[0], pair[1]);
            pair[0] = re * angle.cos() - im * angle.sin();
            pair[1] = re * angle.sin() + im * angle.cos();
        }
    }
    rows
}

fn attend(queries: Vec<Vec<f64>>, keys: Vec<Vec<f64>>, values: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let head = |row: &[f64], head: usize| row[head * D_HEAD..(head + 1) * D_HEAD].to_vec();
    let one = |position: usize| -> Vec<f64> {
        let mut out = Vec::new();
        for query_head in 0..N_HEADS {
            let kv_head = query_head * N_KV_HEADS / N_HEADS;
            let query = head(&queries[position], query_head);
            let score = |key: &Vec<f64>| -> f64 {
                let key = head(key, kv_head);
                let dot: f64 = query.iter().zip(&key).map(|(q, k)| q * k).sum();
                (dot / (D_HEAD as f64).sqrt()).exp()
            };
            let weights: Vec<f64> = keys[..=position].iter().map(score).collect();
            let total: f64 = weights.iter().sum();
            let mut sum = vec![0.0; D_HEAD];
            for (weight, value) in weights.iter().zip(&values) {
                let value: Vec<f64> =
                    head(value, kv_head).iter().map(|value| weight / total * value).collect();
                add(&mut sum, &value);
            }
            out.extend(sum);
        }
        out
    };
    (0..queries.len()).map(one).collect()
}
