//! Pools, values and an oracle that the tests share.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

use std::{ops::Range, sync::Mutex, thread};

use rowpar::{Part, RowPool, Serial};

mod weights;

pub(crate) use self::weights::{Bits, by_oracle, halves, quantized, weights};

type Named = (String, Box<dyn RowPool>);

/// Every pool of the crate, and some that are worse than any real one.
pub(crate) fn pools() -> Vec<Named> {
    let pools: [Named; 4] = [
        ("serial".into(), Box::new(Serial)),
        ("none".into(), Box::new(None::<Serial>)),
        ("shuffled".into(), Box::new(Shuffled::new())),
        ("scattered".into(), Box::new(Scattered)),
    ];
    pools.into_iter().chain(rayon_pools()).chain(epoch_pools()).collect()
}

#[cfg(feature = "rayon")]
fn rayon_pools() -> Vec<Named> {
    let given = [1, 2, 3]
        .map(|width| -> Named { (format!("rayon, {width} threads"), Box::new(rayon_pool(width))) });
    let global: Named = ("rayon, global".into(), Box::new(rowpar::RayonGlobal));
    given.into_iter().chain([global]).collect()
}

#[cfg(not(feature = "rayon"))]
fn rayon_pools() -> Vec<Named> {
    Vec::new()
}

#[cfg(feature = "epoch-pool")]
fn epoch_pools() -> Vec<Named> {
    let pool = |n_workers| -> Named {
        let pool = epoch_pool::Pool::new(n_workers).expect("workers can be spawned");
        (format!("epoch, {n_workers} workers"), Box::new(pool))
    };
    [0, 1, 3].map(pool).into()
}

#[cfg(not(feature = "epoch-pool"))]
fn epoch_pools() -> Vec<Named> {
    Vec::new()
}

#[cfg(feature = "rayon")]
pub(crate) fn rayon_pool(width: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(width).build().expect("workers can be spawned")
}

/// One group at a time in random order, parts mixed, with calls for nothing in between.
pub(crate) struct Shuffled(Mutex<Random>);

impl Shuffled {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Random(7)))
    }
}

// SAFETY: the groups of each part partition its rows, and each is run once, here and now.
unsafe impl RowPool for Shuffled {
    fn participants(&self) -> usize {
        5
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        self.for_each_range_many(grain, &[(rows, f)]);
    }

    fn for_each_range_many(&self, grain: usize, parts: &[Part<'_>]) {
        let mut calls = groups(grain, parts);
        let mut random = self.0.lock().unwrap();
        for i in (1..calls.len()).rev() {
            calls.swap(i, random.below(i + 1));
        }
        for (part, rows) in calls {
            (parts[part].1)(rows.end..rows.end);
            (parts[part].1)(rows);
        }
    }
}

/// Every third group on a thread of its own, the last ones first.
pub(crate) struct Scattered;

// SAFETY: the groups of each part partition its rows; `n % 3` picks one thread for each; the scope joins.
unsafe impl RowPool for Scattered {
    fn participants(&self) -> usize {
        3
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        self.for_each_range_many(grain, &[(rows, f)]);
    }

    fn for_each_range_many(&self, grain: usize, parts: &[Part<'_>]) {
        let calls = &groups(grain, parts);
        let run = |turn: usize| {
            for (part, rows) in calls.iter().skip(turn).step_by(3).rev() {
                (parts[*part].1)(rows.clone());
            }
        };
        thread::scope(|scope| {
            (1..3.min(calls.len())).for_each(|turn| _ = scope.spawn(move || run(turn)));
            run(0);
        });
    }
}

/// Each group of each part: the part's index, and the rows.
fn groups(grain: usize, parts: &[Part<'_>]) -> Vec<(usize, Range<usize>)> {
    let grain = grain.max(1);
    let of_part = |(part, &(rows, _)): (usize, &Part<'_>)| {
        (0..rows).step_by(grain).map(move |start| (part, start..rows.min(start + grain)))
    };
    parts.iter().enumerate().flat_map(of_part).collect()
}

/// xorshift64*: the same numbers on every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 32) as usize % end
    }
}

/// What kind of numbers a matrix is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// Of about one size, either sign: sums that depend on their order in the last bits.
    Tame,
    /// Any finite bit pattern: subnormals, zeros of either sign, sums that overflow.
    Wild,
    /// Tame, with an infinity, a NaN, a subnormal, a zero or the largest number here and there.
    Special,
    /// Subnormal, or subnormal after a product.
    Tiny,
}

impl Values {
    pub(crate) const ALL: [Self; 4] = [Self::Tame, Self::Wild, Self::Special, Self::Tiny];

    pub(crate) fn fill(self, len: usize, seed: u64) -> Vec<f32> {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..len).map(|_| self.value(&mut random)).collect()
    }

    fn value(self, random: &mut Random) -> f32 {
        const SPECIAL: [f32; 10] = [
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            0.0,
            -0.0,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            1e-45,
            -1e-40,
        ];
        let bits = random.next();
        let tame = (bits >> 40) as f32 / (1 << 23) as f32 - 1.0;
        match self {
            Self::Tame => tame,
            Self::Wild => {
                let value = f32::from_bits(bits as u32);
                if value.is_finite() { value } else { -0.0 }
            }
            Self::Special if bits.is_multiple_of(61) => SPECIAL[random.below(SPECIAL.len())],
            Self::Special => tame,
            Self::Tiny => tame * if bits.is_multiple_of(2) { 1e-20 } else { 1e-39 },
        }
    }
}

/// The contract, written down once more and independently of the crate's own oracle.
pub(crate) fn expected(w: &[f32], x: &[f32], n_rows: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for i in 0..n_rows {
        let mut acc = 0.0_f32;
        let mut j = 0;
        while j < x.len() {
            let product: f32 = w[i * x.len() + j] * x[j];
            acc += product;
            j += 1;
        }
        out.push(acc);
    }
    out
}

/// Equal bit for bit, with a NaN equal to any NaN.
#[track_caller]
pub(crate) fn assert_same(actual: &[f32], expected: &[f32], context: &dyn Fn() -> String) {
    assert_eq!(actual.len(), expected.len(), "{}", context());
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert!(
            a.to_bits() == e.to_bits() || (a.is_nan() && e.is_nan()),
            "row {i}: {a:?} ({:#010x}) instead of {e:?} ({:#010x}); {}",
            a.to_bits(),
            e.to_bits(),
            context()
        );
    }
}

/// A slice between guards, which [`Guarded::check`] finds changed if somebody wrote there.
pub(crate) struct Guarded {
    buffer: Vec<f32>,
    range: Range<usize>,
}

impl Guarded {
    const GUARD: u32 = 0x7fc0_dead;
    const LEN: usize = 16;

    pub(crate) fn new(len: usize) -> Self {
        let buffer = vec![f32::from_bits(Self::GUARD); len + 2 * Self::LEN + 3];
        Self { buffer, range: Self::LEN + len % 3..Self::LEN + len % 3 + len }
    }

    pub(crate) fn inside(&mut self) -> &mut [f32] {
        &mut self.buffer[self.range.clone()]
    }

    #[track_caller]
    pub(crate) fn check(&self) -> &[f32] {
        for (i, value) in self.buffer.iter().enumerate() {
            let touched = value.to_bits() != Self::GUARD;
            assert!(
                !touched || self.range.contains(&i),
                "wrote {value} at {i}, outside of the slice"
            );
        }
        &self.buffer[self.range.clone()]
    }
}
