//! The GGUF reader on files that the test writes, whole and damaged.

mod common;

use benches::gguf::{Array, Gguf, GgufError, Item, Problem, Value, ValueType};
use common::{Field, GgufWriter};

/// One entry of every type, arrays within arrays, and tensors of several types.
fn sample(version: u32) -> Vec<u8> {
    let mut file = GgufWriter::new();
    file.version = version;
    let nested = Field::Array(
        9,
        vec![
            Field::Array(0, vec![Field::U8(1), Field::U8(2)]),
            Field::Array(8, vec![Field::String("deep"), Field::String("")]),
            Field::Array(9, vec![]),
        ],
    );
    file.entry("u8", &Field::U8(200))
        .entry("i8", &Field::I8(-7))
        .entry("u16", &Field::U16(60_000))
        .entry("i16", &Field::I16(-300))
        .entry("u32", &Field::U32(4_000_000_000))
        .entry("i32", &Field::I32(-70_000))
        .entry("f32", &Field::F32(0.5))
        .entry("yes", &Field::Bool(true))
        .entry("text", &Field::String("Größe"))
        .entry("words", &Field::Array(8, vec![Field::String("a"), Field::String("bc")]))
        .entry("truths", &Field::Array(7, vec![Field::Bool(false), Field::Bool(true)]))
        .entry("nested", &nested)
        .entry("u64", &Field::U64(u64::MAX))
        .entry("i64", &Field::I64(-1))
        .entry("f64", &Field::F64(-0.25))
        .tensor("b.weight", &[2, 3], 0, &[7; 24])
        .tensor("a.weight", &[64, 2], 8, &[1; 4 * 34])
        .tensor("scalar", &[], 0, &[9; 4])
        .tensor("none", &[0, 5], 30, &[]);
    file.finish()
}

#[test]
fn everything_is_read_back() {
    for version in [2, 3] {
        let bytes = sample(version);
        let gguf = Gguf::parse(&bytes).unwrap();
        assert_eq!(gguf.version(), version);
        assert_eq!(gguf.alignment(), 32);
        let expected = [
            ("u8", Value::U8(200)),
            ("i8", Value::I8(-7)),
            ("u16", Value::U16(60_000)),
            ("i16", Value::I16(-300)),
            ("u32", Value::U32(4_000_000_000)),
            ("i32", Value::I32(-70_000)),
            ("f32", Value::F32(0.5)),
            ("yes", Value::Bool(true)),
            ("text", Value::String("Größe".as_bytes())),
            ("u64", Value::U64(u64::MAX)),
            ("i64", Value::I64(-1)),
            ("f64", Value::F64(-0.25)),
        ];
        for (key, value) in expected {
            assert_eq!(gguf.get(key), Some(value), "{key}");
        }
        assert_eq!(gguf.get("u"), None);
        let keys: Vec<&str> = gguf.entries().map(|(key, _)| key).collect();
        assert!(keys.is_sorted() && keys.len() == 15, "{keys:?}");
    }
}

#[test]
fn arrays_are_walked_lazily_at_any_depth() {
    let bytes = sample(3);
    let gguf = Gguf::parse(&bytes).unwrap();
    let array = |key| gguf.get(key).unwrap().as_array().unwrap();
    let words: Vec<&str> = array("words").iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(words, ["a", "bc"]);
    let truths: Vec<Value<'_>> = array("truths").iter().collect();
    assert_eq!(truths, [Value::Bool(false), Value::Bool(true)]);
    let nested: Vec<Array<'_>> =
        array("nested").iter().map(|inner| inner.as_array().unwrap()).collect();
    assert_eq!(nested.len(), 3);
    let numbers: Vec<u64> = nested[0].iter().map(|value| value.as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2]);
    let strings: Vec<Value<'_>> = nested[1].iter().collect();
    assert_eq!(strings, [Value::String(b"deep"), Value::String(b"")]);
    assert_eq!((nested[2].element_type(), nested[2].is_empty()), (ValueType::Array, true));
}

#[test]
fn tensors_are_views_of_the_file() {
    let bytes = sample(3);
    let gguf = Gguf::parse(&bytes).unwrap();
    let names: Vec<&str> = gguf.tensors().map(|tensor| tensor.name).collect();
    assert_eq!(names, ["a.weight", "b.weight", "none", "scalar"]);
    let tensor = gguf.tensor("a.weight").unwrap();
    assert_eq!((tensor.dims, tensor.tensor_type.name()), ([64, 2, 1, 1], "Q8_0"));
    assert_eq!(tensor.bytes, [1; 136]);
    assert_eq!(&bytes[tensor.offset..][..136], tensor.bytes);
    assert_eq!(tensor.offset % 32, 0);
    assert_eq!(gguf.tensor("scalar").unwrap().bytes, [9; 4]);
    assert!(gguf.tensor("none").unwrap().bytes.is_empty());
    assert_eq!(gguf.tensor("b"), None);
}

#[test]
fn every_truncation_is_an_error() {
    for version in [2, 3] {
        let bytes = sample(version);
        for len in 0..bytes.len() {
            let found = Gguf::parse(&bytes[..len]);
            assert!(found.is_err(), "{len} of {}", bytes.len());
        }
    }
}

#[test]
fn a_damaged_byte_is_an_error_or_another_file() {
    let bytes = sample(3);
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff, bytes[at]] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            // Whatever is accepted can be read to the end.
            if let Ok(gguf) = Gguf::parse(&damaged) {
                gguf.entries().for_each(|(_, value)| walk(value));
                assert!(gguf.tensors().all(|tensor| tensor.bytes.len() <= bytes.len()));
            }
        }
    }
}

fn walk(value: Value<'_>) {
    if let Some(array) = value.as_array() {
        assert_eq!(array.iter().count(), array.len());
        array.iter().for_each(walk);
    }
}

fn error(bytes: &[u8]) -> GgufError {
    Gguf::parse(bytes).unwrap_err()
}

#[test]
fn headers_of_other_files_are_refused() {
    let with_version = |version: u32| [b"GGUF".as_slice(), &version.to_le_bytes()].concat();
    let cases = [
        (vec![], Problem::CutShort { needed: 4, left: 0 }),
        (b"GGU".to_vec(), Problem::CutShort { needed: 4, left: 3 }),
        (b"GGML....".to_vec(), Problem::Magic(*b"GGML")),
        (with_version(1), Problem::Version(1)),
        (with_version(4), Problem::Version(4)),
        (with_version(0), Problem::Version(0)),
        (with_version(3_u32.swap_bytes()), Problem::BigEndian),
    ];
    for (bytes, problem) in cases {
        let found = error(&bytes);
        assert_eq!((&found.problem, &found.item), (&problem, &Item::Header));
    }
}

/// A file with one entry whose bytes behind the key `k` are given.
fn with_entry(value_type: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = GgufWriter::new().finish();
    bytes[16] = 1;
    bytes.extend(1u64.to_le_bytes());
    bytes.push(b'k');
    bytes.extend(value_type.to_le_bytes());
    bytes.extend(rest);
    bytes
}

#[test]
fn hostile_metadata_is_refused_by_key() {
    let words = |parts: &[u64]| parts.iter().flat_map(|part| part.to_le_bytes()).collect();
    let array = |element_type: u32, len: u64| -> Vec<u8> {
        [element_type.to_le_bytes().as_slice(), &len.to_le_bytes()].concat()
    };
    let cases: [(u32, Vec<u8>, Problem); 9] = [
        (13, vec![0; 8], Problem::ValueType(13)),
        (u32::MAX, vec![0; 8], Problem::ValueType(u32::MAX)),
        (7, vec![2], Problem::Bool(2)),
        (8, words(&[u64::MAX]), Problem::CutShort { needed: u64::MAX, left: 0 }),
        (8, words(&[9, 0]), Problem::CutShort { needed: 9, left: 8 }),
        (9, array(13, 0), Problem::ValueType(13)),
        (9, array(12, u64::MAX), Problem::CutShort { needed: u64::MAX, left: 0 }),
        (9, array(8, 1 << 61), Problem::CutShort { needed: u64::MAX, left: 0 }),
        (9, [array(7, 2), vec![1, 3]].concat(), Problem::Bool(3)),
    ];
    for (value_type, rest, problem) in cases {
        let found = error(&with_entry(value_type, &rest));
        assert_eq!(found.problem, problem);
        assert_eq!(found.item, Item::Key("k".into()));
    }
}

#[test]
fn arrays_nest_to_a_limit() {
    // One array of each depth holds the next, and the innermost is empty.
    let nested = |depth: usize| -> Vec<u8> {
        let outer = [9u32.to_le_bytes().as_slice(), &1u64.to_le_bytes()].concat();
        let inner = [0u32.to_le_bytes().as_slice(), &0u64.to_le_bytes()].concat();
        with_entry(9, &[outer.repeat(depth), inner].concat())
    };
    Gguf::parse(&nested(Array::MAX_DEPTH)).unwrap();
    for depth in [Array::MAX_DEPTH + 1, 100_000] {
        assert_eq!(error(&nested(depth)).problem, Problem::Depth);
    }
}

#[test]
fn counts_that_the_file_cannot_hold_are_refused() {
    for at in [8, 16] {
        for count in [1 << 20, 1 << 40, u64::MAX] {
            let mut bytes = sample(3);
            bytes[at..at + 8].copy_from_slice(&count.to_le_bytes());
            assert!(matches!(error(&bytes).problem, Problem::CutShort { .. }), "{at} {count}");
        }
    }
}

#[test]
fn names_are_unique_and_utf8() {
    let mut keys = GgufWriter::new();
    keys.entry("k", &Field::U8(0)).entry("j", &Field::U8(0)).entry("k", &Field::U8(0));
    let found = error(&keys.finish());
    assert_eq!((found.problem, found.item), (Problem::Duplicate, Item::Key("k".into())));

    let mut tensors = GgufWriter::new();
    tensors.tensor("t", &[1], 0, &[0; 4]).tensor("t", &[1], 0, &[0; 4]);
    let found = error(&tensors.finish());
    assert_eq!((found.problem, found.item), (Problem::Duplicate, Item::Tensor("t".into())));

    let mut bytes = with_entry(0, &[0]);
    bytes[32] = 0xff;
    let found = error(&bytes);
    assert_eq!((found.problem, found.item), (Problem::NotUtf8, Item::KeyIndex(0)));
    assert_eq!(found.offset, 24);
}

#[test]
fn names_have_the_lengths_of_the_format() {
    for (max_len, is_key) in [(65_535, true), (64, false)] {
        for len in [max_len, max_len + 1, 200_000] {
            let name = "é".repeat(len / 2) + &"x".repeat(len % 2);
            let mut file = GgufWriter::new();
            file.entry("k", &Field::U8(0)).tensor("t", &[1], 0, &[0; 4]);
            match is_key {
                true => file.entry(&name, &Field::U8(7)),
                false => file.tensor(&name, &[1], 0, &[0; 4]),
            };
            let bytes = file.finish();
            if len <= max_len {
                let gguf = Gguf::parse(&bytes).unwrap();
                assert!(
                    gguf.get(&name).is_some() == is_key && gguf.tensor(&name).is_none() == is_key
                );
                continue;
            }
            let found = error(&bytes);
            let begins = name.chars().take(40).collect();
            let (len, max_len) = (len as u64, max_len as u64);
            assert_eq!(found.problem, Problem::NameTooLong { len, max_len, begins });
            assert_eq!(found.item, if is_key { Item::KeyIndex(1) } else { Item::TensorIndex(1) });
            let at = found.offset as usize;
            assert_eq!(bytes[at..at + 8], len.to_le_bytes());
        }
    }
}

/// Many short names beside long ones that differ at their ends: all of them are there, and found.
#[test]
fn many_names_long_and_short_are_found() {
    let long = "k".repeat(65_000);
    let mut file = GgufWriter::new();
    for n in 0..150_000 {
        file.entry(&format!("{n:x}"), &Field::U8(0));
    }
    for n in 0..100 {
        file.entry(&format!("{long}{n:03}"), &Field::U32(n));
    }
    for n in 0..20_000 {
        file.info(&format!("{}{n:05}", &long[..59]), &[0], 0, 0);
    }
    let mut bytes = file.finish();
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    let gguf = Gguf::parse(&bytes).unwrap();
    assert_eq!((gguf.entries().len(), gguf.tensors().len()), (150_100, 20_000));
    for n in 0..100 {
        assert_eq!(gguf.get(&format!("{long}{n:03}")), Some(Value::U32(n)));
    }
}

#[test]
fn the_alignment_is_checked_and_kept() {
    for (value, good) in [
        (Field::U32(8), true),
        (Field::U32(4096), true),
        (Field::U32(0), false),
        (Field::U32(4), false),
        (Field::U32(24), false),
        (Field::U32(48), false),
        (Field::U64(32), false),
        (Field::String("32"), false),
    ] {
        let mut file = GgufWriter::new();
        if let Field::U32(alignment) = value {
            file.alignment = alignment.max(8) as usize;
        }
        file.entry("general.alignment", &value).tensor("t", &[3], 0, &[5; 12]);
        let bytes = file.finish();
        match Gguf::parse(&bytes) {
            Ok(gguf) => {
                assert!(good);
                assert_eq!(gguf.tensor("t").unwrap().offset as u64 % gguf.alignment(), 0);
                assert_eq!(gguf.tensor("t").unwrap().bytes, [5; 12]);
            }
            Err(error) => {
                assert!(!good, "{error}");
                assert_eq!(error.problem, Problem::Alignment);
            }
        }
    }
}

#[test]
fn hostile_tensors_are_refused_by_name() {
    let cases: [(&[u64], u32, u64, Problem); 9] = [
        (&[1], 77, 0, Problem::TensorType(77)),
        (&[1, 1, 1, 1, 1], 0, 0, Problem::Dimensions(5)),
        (&[33], 8, 0, Problem::PartialBlock { row_len: 33, block_len: 32 }),
        (&[u64::MAX], 0, 0, Problem::TooLarge),
        (&[1 << 32, 1 << 32], 0, 0, Problem::TooLarge),
        (&[8], 0, 4, Problem::Unaligned { start: 4, alignment: 32 }),
        (&[8], 0, u64::MAX - 31, Problem::TooLarge),
        (&[17], 0, 0, Problem::OutOfFile { end: 68, file_len: 64 }),
        (&[8], 0, 64, Problem::OutOfFile { end: 96, file_len: 64 }),
    ];
    for (dims, type_id, start, problem) in cases {
        let mut file = GgufWriter::new();
        file.info("bad", dims, type_id, start).tensor("good", &[16], 0, &[0; 64]);
        let bytes = file.finish();
        let found = error(&bytes);
        assert_eq!(found.item, Item::Tensor("bad".into()), "{found}");
        match (&found.problem, &problem) {
            // Told from the beginning of the file, and here from that of the data.
            (&Problem::OutOfFile { end, file_len }, &Problem::OutOfFile { end: behind, .. }) => {
                let file_end = bytes.len() as u64;
                assert_eq!((end, file_len), (file_end - 64 + behind, file_end));
            }
            _ => assert_eq!(found.problem, problem),
        }
        assert!(found.to_string().contains("\"bad\""), "{found}");
    }
}

#[test]
fn an_unknown_tensor_type_is_named() {
    let mut file = GgufWriter::new();
    file.info("blk.0.attn_q.weight", &[1], 4, 0);
    let text = error(&file.finish()).to_string();
    assert_eq!(text, "tensor \"blk.0.attn_q.weight\", at byte 63: unknown tensor type 4");
}

#[test]
fn no_byte_belongs_to_two_tensors() {
    for (starts, overlap) in [([0, 32, 64], false), ([0, 0, 64], true), ([64, 32, 0], false)] {
        let mut file = GgufWriter::new();
        for (name, start) in ["a", "b", "c"].into_iter().zip(starts) {
            file.info(name, &[8], 0, start);
        }
        let mut bytes = file.finish();
        bytes.resize(bytes.len().next_multiple_of(32) + 96, 0);
        match Gguf::parse(&bytes) {
            Ok(gguf) => assert!(!overlap && gguf.tensors().count() == 3),
            Err(error) => {
                assert!(overlap, "{error}");
                assert_eq!(error.problem, Problem::Overlap("a".into()));
                assert_eq!(error.item, Item::Tensor("b".into()));
            }
        }
    }
    // One that reaches over two.
    let mut file = GgufWriter::new();
    file.info("long", &[24], 0, 0).info("empty", &[0], 0, 32).info("inside", &[8], 0, 64);
    let mut bytes = file.finish();
    bytes.resize(bytes.len().next_multiple_of(32) + 96, 0);
    assert_eq!(error(&bytes).problem, Problem::Overlap("long".into()));
}
