//! The decode replay gives the bits of a serial loop written from its description, on every backend.

use benches::{Backend, Decode, ModelShape};
use rowpar::{Format, Matrix, Q8Activation, oracle};

/// Small, but with a gate, an up and a head large enough for a pool to be asked.
const SHAPE: ModelShape = ModelShape {
    name: "made-up",
    n_layers: 2,
    d_model: 64,
    d_query: 64,
    d_kv: 24,
    d_ff: 4096,
    n_vocab: 4100,
};
const N_TOKENS: usize = 2;

#[test]
fn every_backend_gives_the_bits_of_the_plain_loop() {
    every_backend_agrees(Format::F32);
}

#[test]
fn blocks_and_their_relatives_do_so_too() {
    every_backend_agrees(Format::Q8_0);
    // 64 columns are no whole blocks of it, 4096 are.
    every_backend_agrees(Format::Q4K);
}

fn every_backend_agrees(format: Format) {
    let expected = plain_replay(&Decode::new(SHAPE, format, 5, 1));
    // The peers have the same test in their own package.
    for &backend in Backend::ALL.iter().filter(|backend| !backend.is_peer() && !backend.is_engine())
    {
        for (grouped, packed) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut decode = Decode::new(SHAPE, format, 5, 2);
            if packed {
                decode = decode.packed(&rowpar::Serial);
                assert!(decode.matrices().all(|w| w.is_packed()));
            }
            let tokens: Vec<usize> = backend
                .with_pool(3, |pool| (0..N_TOKENS).map(|_| decode.token(pool, grouped)).collect())
                .unwrap();
            let what = format!("{format}, {backend}, grouped: {grouped}, packed: {packed}");
            assert_eq!(tokens, expected.tokens, "{what}");
            assert_eq!(bits(decode.logits()), bits(&expected.logits), "{what}");
            assert_eq!(bits(decode.input()), bits(&expected.x), "{what}");
        }
    }
}

#[test]
fn the_checksum_sees_one_bit_and_reset_goes_back() {
    let mut decode = Decode::new(SHAPE, Format::Bf16, 5, 1);
    let start = decode.checksum();
    decode.token(&rowpar::Serial, false);
    let first = decode.checksum();
    decode.token(&rowpar::Serial, false);
    assert_ne!(decode.checksum(), first);
    decode.reset();
    assert_eq!(decode.checksum(), start);
    decode.token(&rowpar::Serial, true);
    assert_eq!(decode.checksum(), first);
    assert_ne!(Decode::new(SHAPE, Format::Bf16, 6, 1).checksum(), start);
}

struct Replay {
    tokens: Vec<usize>,
    logits: Vec<f32>,
    x: Vec<f32>,
}

/// The replay as its description has it, with nothing but loops.
fn plain_replay(decode: &Decode) -> Replay {
    let ModelShape { n_layers, d_model, d_query, d_kv, d_ff, n_vocab, .. } = SHAPE;
    let mut x = decode.input().to_vec();
    let mut logits = Vec::new();
    let mut tokens = Vec::new();
    for _ in 0..N_TOKENS {
        let mut matrices = decode.matrices();
        let mut next = |n_rows: usize, input: &[f32]| {
            let w = matrices.next().unwrap();
            assert_eq!((w.n_rows(), w.n_cols()), (n_rows, input.len()));
            (matvec(w, input), w)
        };
        for _ in 0..n_layers {
            let h = scaled(&x);
            let (q, k, v) = (next(d_query, &h).0, next(d_kv, &h).0, next(d_kv, &h).0);
            let a: Vec<f32> =
                (0..d_query).map(|i| q[i] + k[i % d_kv] - 0.5 * v[i % d_kv]).collect();
            add(&mut x, &next(d_model, &scaled(&a)).0);
            let h = scaled(&x);
            let (gate, up) = (next(d_ff, &h).0, next(d_ff, &h).0);
            let a: Vec<f32> = (0..d_ff).map(|i| gate[i] / (1.0 + gate[i].abs()) * up[i]).collect();
            add(&mut x, &next(d_model, &scaled(&a)).0);
        }
        let h = scaled(&x);
        let (out, head) = next(n_vocab, &h);
        let mut token = 0;
        for row in 1..n_vocab {
            if out[row] > out[token] {
                token = row;
            }
        }
        head.row_to_f32(token, &mut x);
        (0..d_model).for_each(|i| x[i] += 0.25 * h[i]);
        assert!(matrices.next().is_none());
        logits = out;
        tokens.push(token);
    }
    Replay { tokens, logits, x }
}

/// Row by row as the oracle of the format has it, and floats by the loop itself.
fn matvec(w: Matrix<'_>, x: &[f32]) -> Vec<f32> {
    let mut quantized = Q8Activation::new();
    quantized.quantize(x);
    let row = |row: usize| {
        if w.format().is_block() {
            let bytes = &w.bytes()[row * w.row_bytes()..][..w.row_bytes()];
            return oracle::dot_q8(w.format(), bytes, &quantized);
        }
        let mut weights = vec![0.0; x.len()];
        w.row_to_f32(row, &mut weights);
        let mut sum = 0.0;
        for j in 0..x.len() {
            sum += weights[j] * x[j];
        }
        sum
    };
    (0..w.n_rows()).map(row).collect()
}

fn scaled(input: &[f32]) -> Vec<f32> {
    let largest = input.iter().fold(0.0_f32, |max, value| max.max(value.abs()));
    let mut scale = 1.0;
    while largest * scale >= 2.0 {
        scale /= 2.0;
    }
    while largest * scale < 1.0 {
        scale *= 2.0;
    }
    input.iter().map(|value| value * scale).collect()
}

fn add(x: &mut [f32], update: &[f32]) {
    for i in 0..x.len() {
        x[i] += update[i];
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
