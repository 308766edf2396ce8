//! Logits have the same bits on threads that flush subnormals and round towards zero, the caller's as well as the workers'.

#![cfg(target_arch = "x86_64")] // the registers of other architectures are for the tests of `rowpar`

mod common;

use std::arch::asm;
use std::ops::Range;

use benches::gguf::Gguf;
use benches::llama::{Activations, Model, Sampler, Sampling, Session};
use common::model::{TOKENS, small_model};
use rowpar::{RowPool, Serial};

const DEFAULT: u32 = 0x1f80;
const FLUSH_AND_ROUND_TO_ZERO: u32 = DEFAULT | 1 << 15 | 1 << 6 | 3 << 13;
/// Sticky: they say what happened, and change nothing.
const FLAGS: u32 = 0x3f;

fn read_control() -> u32 {
    let mut control = 0_u32;
    // SAFETY: stores the register to `control`.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags)) };
    control & !FLAGS
}

fn write_control(control: u32) {
    // SAFETY: loads the register from `control`, which has no reserved bits.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags)) };
}

/// Runs `f` on a thread of its own with a control, which must be there at the end, too.
fn under<R: Send>(control: u32, f: impl FnOnce() -> R + Send) -> R {
    let run = || {
        write_control(control);
        let result = f();
        let after = read_control();
        write_control(DEFAULT);
        assert_eq!(after, control);
        result
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("no panic"))
}

/// A pool to which everything goes, however little it is.
struct Eager<'p>(&'p dyn RowPool);

// SAFETY: every call goes unchanged to a pool that keeps the contract.
unsafe impl RowPool for Eager<'_> {
    fn participants(&self) -> usize {
        self.0.participants()
    }

    fn parallel_bytes(&self) -> usize {
        0
    }

    fn for_each_range(&self, rows: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        self.0.for_each_range(rows, grain, f);
    }
}

/// The bits of all logits, and the tokens that are chosen by them, of a model that is loaded in the same environment.
fn decode(file: &[u8], pool: &dyn RowPool, activations: Activations) -> (Vec<u32>, Vec<u32>) {
    let model = Model::from_gguf(&Gguf::parse(file).unwrap()).unwrap();
    let mut session = Session::new(&model, TOKENS.len(), activations).unwrap();
    let sampling = Sampling { temperature: 1.0, top_k: 0, top_p: 0.9, seed: 5 };
    let mut sampler = Sampler::new(sampling);
    let (mut bits, mut chosen) = (Vec::new(), Vec::new());
    for batch in TOKENS.chunks(2) {
        let logits = session.forward(pool, batch, batch.len());
        bits.extend(logits.iter().map(|logit| logit.to_bits()));
        chosen.extend(logits.chunks(model.n_vocab()).map(|logits| sampler.choose(logits)));
    }
    (bits, chosen)
}

#[test]
fn neither_the_callers_environment_nor_a_workers_changes_a_bit() {
    let file = small_model(true).file;
    let rayon = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .start_handler(|_| write_control(FLUSH_AND_ROUND_TO_ZERO))
        .build()
        .unwrap();
    let epoch = epoch_pool::Pool::builder()
        .workers(2)
        .float_environment(epoch_pool::FloatEnvironment::AsFound)
        .on_worker_start(|_| write_control(FLUSH_AND_ROUND_TO_ZERO))
        .build()
        .unwrap();
    for activations in [Activations::F32, Activations::Q8] {
        let expected = under(DEFAULT, || decode(&file, &Serial, activations));
        for (name, pool) in
            [("serial", &Serial as &dyn RowPool), ("rayon", &rayon), ("epoch", &epoch)]
        {
            let eager = Eager(pool);
            for pool in [pool, &eager] {
                for control in [DEFAULT, FLUSH_AND_ROUND_TO_ZERO] {
                    let found = under(control, || decode(&file, pool, activations));
                    assert!(found == expected, "{name}, {activations}, control {control:#x}");
                }
            }
        }
    }
    assert_eq!(rayon.broadcast(|_| read_control()), [FLUSH_AND_ROUND_TO_ZERO; 2]);
}

/// Two logits, and a share that the first one has by itself, to within a rounding: whether the second is left to choose from is a
/// question of one bit.
fn near_ties() -> Vec<([f32; 2], f32)> {
    let tie = |n: u16| {
        let difference = f32::from(n) / 1024.0;
        let share = 1.0 / (1.0 + f64::from(-difference).exp());
        ([0.0, -difference], share as f32)
    };
    (1..1000).map(tie).collect()
}

#[test]
fn neither_changes_it_a_token() {
    let ties = under(DEFAULT, near_ties);
    let choose = || -> Vec<u32> {
        let one = |(seed, (logits, top_p)): (u64, &([f32; 2], f32))| {
            let sampling = Sampling { temperature: 1.0, top_k: 0, top_p: *top_p, seed };
            Sampler::new(sampling).choose(logits)
        };
        (0..).zip(&ties).map(one).collect()
    };
    let expected = under(DEFAULT, choose);
    assert!(expected.contains(&0) && expected.contains(&1));
    assert_eq!(under(FLUSH_AND_ROUND_TO_ZERO, choose), expected);
}
