//! A small model with a tensor of every type that has kernels, through the whole path: the same bits whatever runs it, and close
//! to the textbook in double precision.

mod common;

use std::cell::Cell;

use benches::Backend;
use benches::gguf::Gguf;
use benches::llama::{
    Activations, Config, Difference, Generator, Model, ModelError, Sampler, Sampling, Session,
    Side, compare,
};
use common::model::{SmallModel, TOKENS, small_model};
use common::{Field, GgufWriter};
use rowpar::{Format, RowPool};

/// Logits after each token of a text, in passes of `batch` tokens.
fn logits(
    model: &Model<'_>,
    pool: &dyn RowPool,
    activations: Activations,
    batch: usize,
) -> Vec<f32> {
    let mut session = Session::new(model, TOKENS.len(), activations).unwrap();
    let passes = TOKENS.chunks(batch);
    passes.flat_map(|tokens| session.forward(pool, tokens, tokens.len()).to_vec()).collect()
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

#[test]
fn every_format_is_in_the_model() {
    let file = small_model(true).file;
    let gguf = Gguf::parse(&file).unwrap();
    for format in Format::ALL {
        let found = gguf.tensors().any(|tensor| tensor.tensor_type.id() == format.gguf_id());
        assert!(found, "{format}");
    }
}

#[test]
fn pools_widths_and_batches_do_not_change_a_bit() {
    for with_head in [true, false] {
        let file = small_model(with_head).file;
        let gguf = Gguf::parse(&file).unwrap();
        let model = Model::from_gguf(&gguf).unwrap();
        let bytes = model.pack(&rowpar::Serial);
        let packed = model.on_packed(&bytes);
        for activations in [Activations::F32, Activations::Q8] {
            let expected = bits(&logits(&model, &rowpar::Serial, activations, 1));
            assert!(logits(&model, &rowpar::Serial, activations, 1).iter().all(|l| l.is_finite()));
            for backend in [Backend::Serial, Backend::Rayon, Backend::Epoch] {
                for n_threads in [1, 2, 3, 8] {
                    let pool = backend.pool(n_threads).unwrap();
                    for batch in [1, 2, 5, TOKENS.len()] {
                        for (name, model) in [("rows", &model), ("packed", &packed)] {
                            let found = bits(&logits(model, &*pool, activations, batch));
                            assert!(
                                found == expected,
                                "{backend}, {n_threads} threads, {batch} together, {activations}, {name}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn packed_bytes_do_not_depend_on_who_packed_them() {
    for with_head in [true, false] {
        let file = small_model(with_head).file;
        let gguf = Gguf::parse(&file).unwrap();
        let model = Model::from_gguf(&gguf).unwrap();
        let bytes = model.pack(&rowpar::Serial);
        assert_eq!(bytes.len(), model.bytes_per_token());
        for backend in [Backend::Rayon, Backend::Epoch] {
            assert!(model.pack(&*backend.pool(3).unwrap()) == bytes, "{backend}");
        }
        // What is packed stays so.
        assert!(model.on_packed(&bytes).pack(&rowpar::Serial) == bytes);
    }
}

#[test]
#[should_panic(expected = "1 bytes are no matrix")]
fn bytes_of_another_model_are_refused() {
    let file = small_model(true).file;
    let gguf = Gguf::parse(&file).unwrap();
    let model = Model::from_gguf(&gguf).unwrap();
    let mut bytes = model.pack(&rowpar::Serial);
    bytes.push(0);
    model.on_packed(&bytes);
}

#[test]
fn logits_are_those_of_the_textbook() {
    for with_head in [true, false] {
        let small = small_model(with_head);
        let gguf = Gguf::parse(&small.file).unwrap();
        let model = Model::from_gguf(&gguf).unwrap();
        let exact = small.textbook(&TOKENS);
        let largest = exact.iter().fold(0.0_f64, |largest, logit| largest.max(logit.abs()));
        assert!(largest > 1.0, "{largest}: too small to tell anything");
        // Rounding alone; and the noise of inputs with eight bits.
        for (activations, bound) in [(Activations::F32, 2e-5), (Activations::Q8, 0.1)] {
            let found = logits(&model, &rowpar::Serial, activations, TOKENS.len());
            assert_eq!(found.len(), exact.len());
            let pairs = found.iter().zip(&exact);
            let worst = pairs.fold(0.0_f64, |w, (f, e)| w.max((f64::from(*f) - e).abs()));
            eprintln!("{activations}: {:e} of the largest logit", worst / largest);
            assert!(worst < bound * largest, "{worst} of {largest} with {activations}");
        }
    }
}

#[test]
fn a_forgotten_token_leaves_nothing_behind() {
    let file = small_model(true).file;
    let gguf = Gguf::parse(&file).unwrap();
    let model = Model::from_gguf(&gguf).unwrap();
    let mut session = Session::new(&model, TOKENS.len(), Activations::Q8).unwrap();
    session.forward(&rowpar::Serial, &[3, 1, 4, 1, 5], 0);
    session.truncate(0);
    assert!(session.is_empty());
    let found = bits(session.forward(&rowpar::Serial, &TOKENS, TOKENS.len()));
    let expected = logits(&model, &rowpar::Serial, Activations::Q8, TOKENS.len());
    assert_eq!(found, bits(&expected));
}

#[test]
fn guessing_changes_no_token_and_saves_passes() {
    let file = small_model(true).file;
    let gguf = Gguf::parse(&file).unwrap();
    let model = Model::from_gguf(&gguf).unwrap();
    let generate = |guessing: bool, temperature: f32, n_tokens: usize| {
        let sampling = Sampling { temperature, seed: 3, ..Sampling::default() };
        let session = Session::new(&model, 64, Activations::Q8).unwrap();
        let (sampler, pool) = (Sampler::new(sampling), rowpar::Serial);
        let mut seen = Vec::new();
        let mut see = |token: u32, logits: &[f32]| seen.push((token, bits(logits)));
        let mut generator = Generator::new(session, sampler, guessing, &pool, &TOKENS, &mut see);
        while generator.has_room() {
            generator.step(&pool, &mut see);
        }
        let guesses = generator.guesses();
        seen.truncate(n_tokens);
        (seen, guesses)
    };
    let mut right = 0;
    for temperature in [0.0, 0.3] {
        let n_tokens = 64 - TOKENS.len();
        let (plain, none) = generate(false, temperature, n_tokens);
        let (guessed, guesses) = generate(true, temperature, n_tokens);
        assert_eq!(plain.len(), n_tokens);
        assert!(plain == guessed, "at temperature {temperature}");
        assert_eq!((none.made, none.right), (0, 0));
        assert_eq!(guesses.passes + guesses.right, none.passes);
        right += guesses.right;
    }
    assert!(right > 0, "no guess was ever right");
}

#[test]
#[should_panic(expected = "13 tokens and room for 12")]
fn a_full_session_takes_no_more() {
    let file = small_model(true).file;
    let gguf = Gguf::parse(&file).unwrap();
    let model = Model::from_gguf(&gguf).unwrap();
    let mut session = Session::new(&model, 12, Activations::Q8).unwrap();
    session.forward(&rowpar::Serial, &[0; 13], 0);
}

#[test]
fn a_session_of_more_tokens_than_memory_has_is_refused() {
    let file = small_model(true).file;
    let gguf = Gguf::parse(&file).unwrap();
    let model = Model::from_gguf(&gguf).unwrap();
    // As bytes, as numbers, and as keys they are too many to be counted.
    for n_tokens in [1 << 55, 1 << 62, usize::MAX] {
        let found = Session::new(&model, n_tokens, Activations::Q8).map(|_| ());
        assert_eq!(found, Err(ModelError::Memory { n_tokens }));
    }
}

#[test]
fn no_tokens_change_nothing() {
    let file = small_model(true).file;
    let gguf = Gguf::parse(&file).unwrap();
    let model = Model::from_gguf(&gguf).unwrap();
    let pool = Backend::Epoch.pool(2).unwrap();
    let mut session = Session::new(&model, TOKENS.len(), Activations::Q8).unwrap();
    assert!(session.forward(&*pool, &[], 0).is_empty());
    session.forward(&*pool, &TOKENS[..5], 1);
    assert!(session.forward(&*pool, &[], 0).is_empty() && session.logits().is_empty());
    assert_eq!(session.len(), 5);
    let found = bits(session.forward(&*pool, &TOKENS[5..], 1));
    // A full session has room for none.
    assert!(session.forward(&*pool, &[], 0).is_empty());
    let expected = logits(&model, &rowpar::Serial, Activations::Q8, TOKENS.len());
    assert_eq!(found, bits(&expected[expected.len() - model.n_vocab()..]));
}

#[test]
fn two_runs_are_compared_to_the_last_bit_of_the_last_token() {
    let file = small_model(true).file;
    let gguf = Gguf::parse(&file).unwrap();
    let model = Model::from_gguf(&gguf).unwrap();
    let pool = Backend::Epoch.pool(2).unwrap();
    let side = |n_tokens: usize, activations, guessing, temperature, pool| {
        let session = Session::new(&model, TOKENS.len() + n_tokens, activations).unwrap();
        let sampler = Sampler::new(Sampling { temperature, ..Sampling::default() });
        Side::new(session, sampler, guessing, pool, &TOKENS)
    };
    let plain = |n_tokens| side(n_tokens, Activations::Q8, false, 0.0, &rowpar::Serial);
    let never = |_: u32| false;
    for (guessing, n_tokens) in [(false, 1), (false, 20), (true, 20), (true, 21)] {
        let other = side(n_tokens, Activations::Q8, guessing, 0.0, &*pool);
        assert_eq!(compare(plain(n_tokens), other, n_tokens, never), Ok(n_tokens));
    }
    // The token that ends the answer is compared as well.
    let n_seen = Cell::new(0);
    let third = |_: u32| n_seen.replace(n_seen.get() + 1) == 2;
    let other = side(20, Activations::Q8, true, 0.0, &*pool);
    assert_eq!(compare(plain(20), other, 20, third), Ok(3));

    let floats = side(20, Activations::F32, false, 0.0, &*pool);
    let found = compare(plain(20), floats, 20, never).unwrap_err();
    assert!(matches!(found, Difference::Logit { position: 0, .. }), "{found}");
    let random = side(20, Activations::Q8, false, 1000.0, &*pool);
    let found = compare(plain(20), random, 20, never).unwrap_err();
    assert!(matches!(found, Difference::Token { position: 0, .. }), "{found}");
    // A session of `n` tokens behind the prompt gives one more, which is not put in again.
    let short = side(4, Activations::Q8, false, 0.0, &*pool);
    assert_eq!(compare(plain(20), short, 20, never), Err(Difference::Length { position: 5 }));
}

fn refusal(file: &GgufWriter) -> ModelError {
    let bytes = file.finish();
    Model::from_gguf(&Gguf::parse(&bytes).unwrap()).unwrap_err()
}

#[test]
fn metadata_that_asks_for_another_model_is_refused() {
    let cases: [(&str, Field<'_>, &str); 13] = [
        ("general.architecture", Field::String("qwen2"), "not supported"),
        ("general.architecture", Field::U32(1), "should be a string"),
        ("llama.rope.scaling.type", Field::String("yarn"), "not supported"),
        ("llama.rope.scaling.factor", Field::F32(4.0), "not supported"),
        ("llama.expert_count", Field::U32(8), "not supported"),
        ("llama.block_count", Field::U32(0), "from 1"),
        ("llama.block_count", Field::U64(u64::MAX), "from 1"),
        ("llama.attention.head_count", Field::I32(-4), "from 1"),
        ("llama.attention.head_count_kv", Field::U32(3), "a divisor"),
        ("llama.attention.head_count", Field::U32(4096), "even width"),
        ("llama.attention.value_length", Field::U32(32), "width of the keys"),
        ("llama.rope.dimension_count", Field::U32(66), "even and at most"),
        ("llama.attention.layer_norm_rms_epsilon", Field::F32(0.0), "positive"),
    ];
    for (key, value, words) in cases {
        let mut file = SmallModel::writer(true, |k| k != key);
        file.entry(key, &value);
        let text = refusal(&file).to_string();
        assert!(text.contains(key) && text.contains(words), "{text}");
    }
    for key in ["general.architecture", "llama.block_count", "llama.embedding_length"] {
        let found = refusal(&SmallModel::writer(true, |k| k != key));
        assert_eq!(found, ModelError::MissingKey(key));
    }
}

#[test]
fn tensors_of_another_model_are_refused() {
    let without = |name: &str| SmallModel::writer(true, |n| n != name);
    let name = "blk.1.attn_k.weight";
    assert_eq!(refusal(&without(name)), ModelError::MissingTensor(name.into()));

    let mut file = without(name);
    file.tensor(name, &[256, 64], 0, &[0; 256 * 64 * 4]);
    let (expected, found) = ([256, 128, 1, 1], [256, 64, 1, 1]);
    assert_eq!(refusal(&file), ModelError::Shape { tensor: name.into(), expected, found });

    let mut file = without(name);
    file.tensor(name, &[256, 128], 10, &[0; 128 * 84]);
    let tensor_type = "Q2_K";
    assert_eq!(refusal(&file), ModelError::TensorType { tensor: name.into(), tensor_type });

    let mut file = without("");
    file.tensor("blk.0.attn_q.bias", &[256], 0, &[0; 1024]);
    assert_eq!(refusal(&file), ModelError::UnknownTensor("blk.0.attn_q.bias".into()));
}

#[test]
fn sizes_come_from_the_metadata() {
    let file = small_model(true).file;
    let config = Config::from_gguf(&Gguf::parse(&file).unwrap()).unwrap();
    assert_eq!(
        (config.d_model, config.d_query(), config.d_kv(), config.d_head),
        (256, 256, 128, 64)
    );
    assert_eq!((config.rope_dims, config.rope_base, config.n_context), (64, 10_000.0, 64));
}
