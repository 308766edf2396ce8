//! Model files: whatever is accepted can be read to its end and costs no more than its size; and what is built on it takes or refuses
//! it without a panic. A model that is taken has logits, which depend on nothing but the tokens.

#![no_main]

use benches::gguf::{Gguf, Value};
use benches::llama::{Activations, ChatTemplate, Model, Session, Tokenizer};
use libfuzzer_sys::fuzz_target;
use rowpar::Serial;

/// A text with what tokenizers treat each in its own way.
const TEXT: &str = "It's 10\u{a0}000 <|im_start|>\n\n  \u{1f600}é\t\0";

/// Bytes of weights that a token reads, of the largest model that is run: the next input should not have to wait.
const MAX_WEIGHTS: usize = 1 << 20;

fuzz_target!(|file: &[u8]| {
    let Ok(gguf) = Gguf::parse(file) else { return };
    let mut last = None;
    for (key, value) in gguf.entries() {
        assert!(last < Some(key), "keys are sorted and differ");
        last = Some(key);
        assert!(gguf.get(key).is_some());
        walk(value);
    }
    let mut n_bytes = 0;
    for tensor in gguf.tensors() {
        assert_eq!(&file[tensor.offset..][..tensor.bytes.len()], tensor.bytes);
        assert_eq!(gguf.tensor(tensor.name).map(|found| found.offset), Some(tensor.offset));
        n_bytes += tensor.bytes.len();
    }
    assert!(n_bytes <= file.len(), "no byte is in two tensors");
    // Either may refuse the file.
    if let Ok(model) = Model::from_gguf(&gguf) {
        run(&model);
    }
    let Ok(tokenizer) = Tokenizer::from_gguf(&gguf) else { return };
    _ = ChatTemplate::from_gguf(&gguf, &tokenizer);
    for tokens in [tokenizer.encode(TEXT), tokenizer.encode_with_control(TEXT)] {
        assert!(tokens.iter().all(|token| (*token as usize) < tokenizer.n_tokens()));
        tokenizer.decode(&tokens);
    }
});

/// The first and the last token, in one pass and each in its own.
fn run(model: &Model<'_>) {
    let n_vocab = model.n_vocab();
    if n_vocab == 0 || model.bytes_per_token() > MAX_WEIGHTS {
        return;
    }
    let tokens = [0, n_vocab as u32 - 1];
    for activations in [Activations::F32, Activations::Q8] {
        // No memory for the text, however short: a model of many heads.
        let Ok(mut together) = Session::new(model, tokens.len(), activations) else { return };
        let mut apart = together.clone();
        let expected = together.forward(&Serial, &tokens, tokens.len());
        assert_eq!(expected.len(), tokens.len() * n_vocab);
        for (token, expected) in tokens.iter().zip(expected.chunks(n_vocab)) {
            let found = apart.forward(&Serial, &[*token], 1);
            assert!(found.iter().zip(expected).all(is_same), "{found:?} and not {expected:?}");
        }
    }
}

fn is_same((a, b): (&f32, &f32)) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

fn walk(value: Value<'_>) {
    if let Some(array) = value.as_array() {
        assert_eq!(array.iter().count(), array.len());
        array.iter().for_each(walk);
    }
}
