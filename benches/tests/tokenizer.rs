//! The tokenizer against facts from another implementation (`made_with` in each file of `data` says which).
//!
//! A small vocabulary is in `data` with its facts. Those of SmolLM2 are checked where its file is at hand: `cargo xtask model
//! smollm2` gets it.

mod common;

use benches::gguf::Gguf;
use benches::llama::{ChatTemplate, ModelError, TextStream, Tokenizer};
use common::{Field, GgufWriter, TokenCase, TokenFacts, small_vocabulary, write_vocabulary};

/// A file with nothing but a vocabulary.
fn vocabulary(facts: &TokenFacts, pre: &str) -> GgufWriter {
    let mut file = GgufWriter::new();
    write_vocabulary(&mut file, facts, pre);
    file
}

fn tokenizer(file: &GgufWriter) -> Result<Tokenizer, ModelError> {
    let bytes = file.finish();
    Tokenizer::from_gguf(&Gguf::parse(&bytes).unwrap())
}

fn check(tokenizer: &Tokenizer, case: &TokenCase) {
    let text = &case.text;
    assert_eq!(tokenizer.encode(text), case.plain, "{text:?}");
    assert_eq!(tokenizer.encode_with_control(text), case.control, "{text:?}");
    // Vocabularies lack a few control characters.
    let whole = !text.contains('\u{4}');
    for tokens in [&case.plain, &case.control] {
        assert_eq!(tokenizer.decode(tokens) == *text, whole, "{text:?}");
        let mut stream = TextStream::default();
        let mut streamed: String =
            tokens.iter().map(|&token| stream.push(tokenizer.bytes(token))).collect();
        streamed.push_str(&stream.finish());
        assert_eq!(streamed, tokenizer.decode(tokens));
    }
}

#[test]
fn a_small_vocabulary() {
    let facts = small_vocabulary();
    let smollm = tokenizer(&vocabulary(&facts, "smollm")).unwrap();
    let gpt2 = tokenizer(&vocabulary(&facts, "gpt-2")).unwrap();
    assert_eq!(smollm.n_tokens(), facts.tokens.len());
    assert!(facts.cases.len() > 20);
    for case in &facts.cases {
        check(&smollm, case);
        assert_eq!(gpt2.encode(&case.text), case.gpt2, "{:?}", case.text);
    }
}

#[test]
fn control_tokens_have_their_text_and_no_other_has() {
    let facts = small_vocabulary();
    let tokenizer = tokenizer(&vocabulary(&facts, "smollm")).unwrap();
    assert_eq!(tokenizer.control("<|im_end|>"), Some(2));
    assert_eq!(tokenizer.control("the"), None);
    assert!(tokenizer.is_control(2) && !tokenizer.is_control(3));
    assert_eq!(tokenizer.bytes(2), b"<|im_end|>");
    assert_eq!(tokenizer.bytes(u32::MAX), b"");
}

#[test]
fn vocabularies_that_cannot_be_used_are_refused() {
    let facts = small_vocabulary();
    let value = |key, expected| ModelError::Value { key, expected };
    assert_eq!(
        tokenizer(&GgufWriter::new()).unwrap_err(),
        ModelError::MissingKey("tokenizer.ggml.model")
    );
    let other = vocabulary(&facts, "other");
    let key = "tokenizer.ggml.pre";
    let expected = ModelError::Unsupported { key, value: "other".into() };
    assert_eq!(tokenizer(&other).unwrap_err(), expected);

    let mut kind = GgufWriter::new();
    kind.entry("tokenizer.ggml.model", &Field::U32(7));
    assert_eq!(tokenizer(&kind).unwrap_err(), value("tokenizer.ggml.model", "a string"));
    let mut kind = GgufWriter::new();
    kind.entry("tokenizer.ggml.model", &Field::String("llama"));
    assert!(matches!(tokenizer(&kind), Err(ModelError::Unsupported { .. })));

    for merge in ["a", "a \u{1}", "", " ", "zz zz"] {
        let mut facts = small_vocabulary();
        facts.merges.insert(3, merge.into());
        let found = tokenizer(&vocabulary(&facts, "smollm"));
        assert_eq!(found.unwrap_err(), ModelError::Merge(3), "{merge:?}");
    }
}

#[test]
fn user_defined_tokens_are_found_in_any_text() {
    let mut file = GgufWriter::new();
    let tokens: Vec<String> = ["a", "b", "<x>", "<c>"].map(String::from).to_vec();
    let types = [1, 1, 4, 3].map(Field::I32).into();
    file.entry("tokenizer.ggml.model", &Field::String("gpt2"))
        .entry("tokenizer.ggml.pre", &Field::String("gpt-2"))
        .entry("tokenizer.ggml.tokens", &Field::strings(&tokens))
        .entry("tokenizer.ggml.token_type", &Field::Array(5, types))
        .entry("tokenizer.ggml.merges", &Field::strings(&[]));
    let tokenizer = tokenizer(&file).unwrap();
    assert_eq!(tokenizer.encode("a<x>b<c>"), [0, 2, 1], "`<`, `c` and `>` have no token");
    assert_eq!(tokenizer.encode_with_control("a<x>b<c>"), [0, 2, 1, 3]);
    assert_eq!(tokenizer.control("<x>"), None);
}

/// A vocabulary of four tokens whose chat template is ChatML, and entries beside.
fn with_marks(entries: &[(&str, Field<'_>)]) -> Vec<u8> {
    let mut file = GgufWriter::new();
    let tokens: Vec<String> = ["a", "<|im_start|>", "<|im_end|>", "<s>"].map(String::from).to_vec();
    let types = [1, 3, 3, 3].map(Field::I32).into();
    file.entry("tokenizer.ggml.model", &Field::String("gpt2"))
        .entry("tokenizer.ggml.pre", &Field::String("gpt-2"))
        .entry("tokenizer.ggml.tokens", &Field::strings(&tokens))
        .entry("tokenizer.ggml.token_type", &Field::Array(5, types))
        .entry("tokenizer.ggml.merges", &Field::strings(&[]))
        .entry("tokenizer.chat_template", &Field::String("<|im_start|>"));
    entries.iter().for_each(|(key, value)| _ = file.entry(key, value));
    file.finish()
}

#[test]
fn a_text_begins_as_the_file_wants_it_and_has_no_end_yet() {
    const ADD_FIRST: &str = "tokenizer.ggml.add_bos_token";
    const FIRST: &str = "tokenizer.ggml.bos_token_id";
    const ADD_LAST: &str = "tokenizer.ggml.add_eos_token";
    const LAST: &str = "tokenizer.ggml.eos_token_id";
    // Without a system prompt; of the roles, `a` alone has a token.
    const CHAT: [u32; 6] = [1, 0, 2, 1, 0, 0];
    /// Entries; then `a` as a text, `<s>a<|im_end|>` with its control tokens, and what stands in front of a question.
    type Case<'a> = (&'a [(&'a str, Field<'a>)], &'a [u32], &'a [u32], &'a [u32]);
    let cases: [Case<'_>; 7] = [
        (&[], &[0], &[3, 0, 2], &[]),
        (&[(FIRST, Field::U32(3)), (LAST, Field::U32(2))], &[0], &[3, 0, 2], &[]),
        (&[(ADD_FIRST, Field::Bool(false)), (FIRST, Field::U32(3))], &[0], &[3, 0, 2], &[]),
        (&[(ADD_FIRST, Field::Bool(true)), (FIRST, Field::U32(3))], &[3, 0], &[3, 0, 2], &[3]),
        (&[(ADD_FIRST, Field::Bool(true)), (FIRST, Field::U32(1))], &[1, 0], &[1, 3, 0, 2], &[]),
        (&[(ADD_LAST, Field::Bool(true)), (LAST, Field::U32(2))], &[0], &[3, 0, 2], &[]),
        (&[(ADD_LAST, Field::Bool(true)), (LAST, Field::U64(3))], &[0], &[3, 0, 2], &[]),
    ];
    for (index, (entries, plain, control, front)) in cases.iter().enumerate() {
        let file = with_marks(entries);
        let gguf = Gguf::parse(&file).unwrap();
        let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
        assert_eq!(tokenizer.encode("a"), [0], "case {index}");
        assert_eq!(tokenizer.mark_beginning(tokenizer.encode("a")), *plain, "case {index}");
        let text = tokenizer.encode_with_control("<s>a<|im_end|>");
        assert_eq!(tokenizer.mark_beginning(text), *control, "case {index}");
        let template = ChatTemplate::from_gguf(&gguf, &tokenizer).unwrap();
        let question = template.question(&tokenizer, None, "a");
        assert_eq!(question, [*front, &CHAT[..]].concat(), "case {index}");
    }
    let refusal = |entries: &[(&str, Field<'_>)]| {
        Tokenizer::from_gguf(&Gguf::parse(&with_marks(entries)).unwrap()).unwrap_err()
    };
    let wanted = || (ADD_FIRST, Field::Bool(true));
    assert_eq!(refusal(&[wanted()]), ModelError::MissingKey(FIRST));
    let expected = "a token of the vocabulary";
    let found = refusal(&[wanted(), (FIRST, Field::U32(4))]);
    assert_eq!(found, ModelError::Value { key: FIRST, expected });
    let found = refusal(&[(ADD_FIRST, Field::U32(1)), (FIRST, Field::U32(0))]);
    assert_eq!(found, ModelError::Value { key: ADD_FIRST, expected: "true or false" });
}

#[test]
fn smollm2() {
    let Some(path) = common::model_file() else { return };
    let facts: TokenFacts = serde_json::from_str(include_str!("data/smollm2_tokens.json")).unwrap();
    let file = std::fs::read(path).unwrap();
    let tokenizer = Tokenizer::from_gguf(&Gguf::parse(&file).unwrap()).unwrap();
    assert_eq!(tokenizer.n_tokens(), 49_152);
    facts.cases.iter().for_each(|case| check(&tokenizer, case));
}
