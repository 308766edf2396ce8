//! SmolLM2 against llama.cpp: ten prompts, 64 tokens each, the two largest logits at every step (`made_with` in the data says
//! how). Runs where the model's file is at hand, which `cargo xtask model smollm2` gets; in a debug build on one prompt only, as
//! that is a hundred times slower.
//!
//! The facts are made by a script, in some minutes:
//!
//! ```text
//! npm install --prefix target/llama.cpp node-llama-cpp@3.22.1
//! node benches/peers/llama-cpp-facts.mjs target/llama.cpp target/models/smollm2-135m-instruct-q4_1.gguf \
//!     > benches/tests/data/smollm2_llama_cpp.json
//! ```
//!
//! llama.cpp's tokens are given to the model, so a near tie that falls the other way does not end the comparison.

mod common;

use benches::gguf::Gguf;
use benches::llama::{Activations, ChatTemplate, Model, Session, Tokenizer};
use rowpar::RowPool;
use serde::Deserialize;

/// Prompts that a debug build checks, and their tokens.
const IN_DEBUG: (usize, usize) = (1, 4);

/// The largest logit and its token, then the second.
type Step = (u32, f32, u32, f32);

#[derive(Deserialize)]
struct Case {
    text: String,
    prompt: Vec<u32>,
    /// On the weights as floats.
    f32: Vec<Step>,
    /// On the weights as they are, with inputs quantized as llama.cpp does it.
    q4_1: Vec<Step>,
}

#[derive(Deserialize)]
struct Facts {
    cases: Vec<Case>,
}

fn facts() -> Vec<Case> {
    let facts: Facts = serde_json::from_str(include_str!("data/smollm2_llama_cpp.json")).unwrap();
    let mut cases = facts.cases;
    if cfg!(debug_assertions) {
        let (n_cases, n_steps) = IN_DEBUG;
        cases.truncate(n_cases);
        for case in &mut cases {
            case.f32.truncate(n_steps);
            case.q4_1.truncate(n_steps);
        }
    }
    cases
}

/// How far ours are from llama.cpp's two largest logits, and whether the largest is that of the same token, at every step.
fn compare(
    pool: &dyn RowPool,
    model: &Model<'_>,
    activations: Activations,
    prompt: &[u32],
    steps: &[Step],
) -> Vec<([f32; 2], bool)> {
    let forced = steps[..steps.len() - 1].iter().map(|step| step.0);
    let tokens: Vec<u32> = prompt.iter().copied().chain(forced).collect();
    let mut session = Session::new(model, tokens.len(), activations).unwrap();
    let logits = session.forward(pool, &tokens, steps.len());
    let one = |(logits, step): (&[f32], &Step)| {
        let &(first, first_logit, second, second_logit) = step;
        let largest = (0..).zip(logits).max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        let differences = [(first, first_logit), (second, second_logit)]
            .map(|(token, expected)| (logits[token as usize] - expected).abs());
        (differences, largest == first)
    };
    logits.chunks_exact(model.n_vocab()).zip(steps).map(one).collect()
}

/// With floats there is nothing but rounding between the two, here and there: 0.0002 at most when this was written. Where the
/// two largest logits are further apart than two such differences, the token has to be the same.
#[test]
fn with_floats_the_logits_are_those_of_llama_cpp() {
    const BOUND: f32 = 0.001;
    let Some(path) = common::model_file() else { return };
    let file = std::fs::read(path).unwrap();
    let gguf = Gguf::parse(&file).unwrap();
    let model = Model::from_gguf(&gguf).unwrap();
    let pool = epoch_pool::Pool::new(1).unwrap();
    let mut worst = 0.0_f32;
    for case in facts() {
        let found = compare(&pool, &model, Activations::F32, &case.prompt, &case.f32);
        for (at, ((differences, same), step)) in found.iter().zip(&case.f32).enumerate() {
            let place = format!("token {at} of {:?}", case.text);
            assert!(differences.iter().all(|d| *d < BOUND), "{place}: {differences:?}");
            assert!(*same || step.1 - step.3 < 2.0 * BOUND, "{place}: another token");
            worst = differences.iter().copied().fold(worst, f32::max);
        }
    }
    eprintln!("largest difference with floats: {worst}");
}

/// With quantized inputs the two round at different places (llama.cpp rounds scales to 16 bits), and this small model makes much
/// of it: either is about as far from the floats as from the other, 0.1 to 0.2 in the median when this was written.
#[test]
fn with_quantized_inputs_the_logits_are_near_those_of_llama_cpp() {
    let Some(path) = common::model_file() else { return };
    let file = std::fs::read(path).unwrap();
    let gguf = Gguf::parse(&file).unwrap();
    let model = Model::from_gguf(&gguf).unwrap();
    let pool = epoch_pool::Pool::new(1).unwrap();
    let mut differences: Vec<f32> = Vec::new();
    for case in facts() {
        let found = compare(&pool, &model, Activations::Q8, &case.prompt, &case.q4_1);
        let n_same = found.iter().filter(|(_, same)| *same).count();
        assert!(n_same + 7 >= found.len(), "{n_same} of {}: {:?}", found.len(), case.text);
        differences.extend(found.iter().flat_map(|(differences, _)| *differences));
    }
    differences.sort_unstable_by(f32::total_cmp);
    let median = differences[differences.len() / 2];
    // The few tokens of a debug build stand before the first word of an answer, where the model is least sure.
    let bound = if cfg!(debug_assertions) { 0.5 } else { 0.25 };
    assert!(median < bound, "median difference {median}");
}

#[test]
fn a_question_has_the_tokens_of_the_files_own_template() {
    let Some(path) = common::model_file() else { return };
    let file = std::fs::read(path).unwrap();
    let gguf = Gguf::parse(&file).unwrap();
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    let template = ChatTemplate::from_gguf(&gguf, &tokenizer).unwrap();
    let mut n_questions = 0;
    for case in facts() {
        let question = case.text.split_once("<|im_start|>user\n");
        let Some((_, rest)) = question else { continue };
        let question = rest.strip_suffix("<|im_end|>\n<|im_start|>assistant\n").unwrap();
        assert_eq!(template.question(&tokenizer, None, question), case.prompt);
        n_questions += 1;
    }
    assert!(n_questions > 0);
}
