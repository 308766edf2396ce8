//! Attention of tokens to those before them, over what is kept of their keys and values.
//!
//! A work item is one token and one query head, so the number of threads cannot matter: each item's sums are its own. Scores are rows of a matrix of keys times a query, so they have `rowpar`'s order, left to right. A
//! value of the result is a sum over the tokens, from the first to the last.

#![forbid(unsafe_code)]

use std::hint::black_box;

use rowpar::{Matrix, RowPool, Serial, for_each_range_mut, matvec};

use super::{Config, ModelError, math};

/// Values of a head that are summed together: as many as registers hold.
const TILE: usize = 32;

/// Keys and values of the tokens so far.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    config: Config,
    /// Tokens that have room.
    capacity: usize,
    layers: Vec<LayerCache>,
}

/// Of each key head in turn: its values for every token, one token after the other.
#[derive(Clone, Debug)]
struct LayerCache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// One token's work with one head.
#[derive(Clone, Debug, Default)]
pub(super) struct Item {
    token: usize,
    head: usize,
    scores: Vec<f32>,
    out: Vec<f32>,
}

impl Cache {
    /// Room for `capacity` tokens, unless there is no memory for it.
    pub(super) fn new(config: &Config, capacity: usize) -> Result<Self, ModelError> {
        let no_memory = ModelError::Memory { n_tokens: capacity };
        let len = capacity.checked_mul(config.d_kv()).ok_or(no_memory.clone())?;
        let n_values = len.checked_mul(2).and_then(|both| both.checked_mul(config.n_layers));
        if !n_values.is_some_and(is_room) {
            return Err(no_memory);
        }
        let layer = || LayerCache { keys: vec![0.0; len], values: vec![0.0; len] };
        let layers = (0..config.n_layers).map(|_| layer()).collect();
        Ok(Self { config: *config, capacity, layers })
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Keeps keys and values of a token at `position`.
    pub(super) fn store(&mut self, layer: usize, position: usize, keys: &[f32], values: &[f32]) {
        let d_head = self.config.d_head;
        let layer = &mut self.layers[layer];
        for (cache, new) in [(&mut layer.keys, keys), (&mut layer.values, values)] {
            for (head, new) in
                cache.chunks_exact_mut(self.capacity * d_head).zip(new.chunks_exact(d_head))
            {
                head[position * d_head..][..d_head].copy_from_slice(new);
            }
        }
    }

    /// What the tokens from position `first` on, one for each row of `queries`, get from those before them and themselves.
    /// `items` is memory to work in.
    pub(super) fn attend(
        &self,
        pool: &dyn RowPool,
        layer: usize,
        first: usize,
        queries: &[f32],
        items: &mut Vec<Item>,
        out: &mut [f32],
    ) {
        let Config { n_heads, n_kv_heads, d_head, .. } = self.config;
        let n_tokens = queries.len() / (n_heads * d_head);
        items.resize_with(n_tokens * n_heads, Item::default);
        for (index, item) in items.iter_mut().enumerate() {
            (item.token, item.head) = (index / n_heads, index % n_heads);
        }
        let layer = &self.layers[layer];
        let head_len = self.capacity * d_head;
        let run = |item: &mut Item| {
            let query = &queries[(item.token * n_heads + item.head) * d_head..][..d_head];
            let kv_head = item.head / (n_heads / n_kv_heads);
            let seen = (first + item.token + 1) * d_head;
            let keys = &layer.keys[kv_head * head_len..][..seen];
            let values = &layer.values[kv_head * head_len..][..seen];
            item.run(query, keys, values);
        };
        // What is read, counted once for each head that reads it.
        let n_bytes = items.len() * (first + n_tokens) * d_head * 2 * size_of::<f32>();
        let pool = if n_bytes < pool.parallel_bytes() { &Serial } else { pool };
        for_each_range_mut(pool, items, 1, |_, items| items.iter_mut().for_each(run));
        for (item, out) in items.iter().zip(out.chunks_exact_mut(d_head)) {
            out.copy_from_slice(&item.out);
        }
    }
}

impl Item {
    fn run(&mut self, query: &[f32], keys: &[f32], values: &[f32]) {
        let d_head = query.len();
        let n_seen = keys.len() / d_head;
        self.scores.resize(n_seen, 0.0);
        self.out.resize(d_head, 0.0);
        let keys = Matrix::from_f32(keys, n_seen, d_head).expect("whole rows");
        matvec(&Serial, keys, query.into(), &mut self.scores);
        math::softmax(&mut self.scores, 1.0 / (d_head as f32).sqrt());
        weighted_sum(&self.scores, values, &mut self.out);
    }
}

/// Whether the allocator grants so many values at once. They are given back untouched: `vec![0.0; len]` takes pages that the system
/// has zeroed, so the memory of a text is used only as far as the text goes, but an allocation that fails there ends the process.
fn is_room(n_values: usize) -> bool {
    let mut values = Vec::<f32>::new();
    let is_granted = values.try_reserve_exact(n_values).is_ok();
    // An allocation that nobody looks at may be optimized away, and then counts as granted.
    black_box(&values);
    is_granted
}

/// `out[d] = Σ_t weights[t] · values[t][d]`, from the first token to the last.
fn weighted_sum(weights: &[f32], values: &[f32], out: &mut [f32]) {
    let d_head = out.len();
    let (tiles, rest) = out.as_chunks_mut::<TILE>();
    let n_tiled = tiles.len() * TILE;
    for (tile, start) in tiles.iter_mut().zip((0..).step_by(TILE)) {
        let mut sums = [0.0; TILE];
        for (weight, row) in weights.iter().zip(values.chunks_exact(d_head)) {
            let row = row[start..].first_chunk::<TILE>().expect("a tile lies in the row");
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
        *tile = sums;
    }
    for (out, d) in rest.iter_mut().zip(n_tiled..) {
        let rows = weights.iter().zip(values.chunks_exact(d_head));
        *out = rows.fold(0.0, |sum, (weight, row)| sum + weight * row[d]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::uniform;

    #[test]
    fn what_no_memory_has_is_not_granted() {
        assert!(is_room(0) && is_room(1 << 10));
        assert!(!is_room(usize::MAX / size_of::<f32>()) && !is_room(usize::MAX));
    }

    #[test]
    fn sums_run_over_the_tokens_in_order() {
        for d_head in [2, 32, 34, 64, 70] {
            let (weights, values) = (uniform(9, 1, 1.0, 1), uniform(9 * d_head, 2, 1.0, 1));
            let mut out = vec![0.0; d_head];
            weighted_sum(&weights, &values, &mut out);
            for (d, out) in out.iter().enumerate() {
                let mut sum = 0.0;
                for (t, weight) in weights.iter().enumerate() {
                    sum += weight * values[t * d_head + d];
                }
                assert_eq!(*out, sum, "{d} of {d_head}");
            }
        }
    }
}
