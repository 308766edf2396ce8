//! Model files: whatever is accepted can be read to its end and costs no more than its size; and what is built on it takes or refuses
//! it without a panic.

#![no_main]

use benches::gguf::{Gguf, Value};
use benches::llama::{ChatTemplate, Model, Tokenizer};
use libfuzzer_sys::fuzz_target;

/// A text with what tokenizers treat each in its own way.
const TEXT: &str = "It's 10\u{a0}000 <|im_start|>\n\n  \u{1f600}é\t\0";

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
    _ = Model::from_gguf(&gguf);
    let Ok(tokenizer) = Tokenizer::from_gguf(&gguf) else { return };
    _ = ChatTemplate::from_gguf(&gguf, &tokenizer);
    for tokens in [tokenizer.encode(TEXT), tokenizer.encode_with_control(TEXT)] {
        assert!(tokens.iter().all(|token| (*token as usize) < tokenizer.n_tokens()));
        tokenizer.decode(&tokens);
    }
});

fn walk(value: Value<'_>) {
    if let Some(array) = value.as_array() {
        assert_eq!(array.iter().count(), array.len());
        array.iter().for_each(walk);
    }
}
