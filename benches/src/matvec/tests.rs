use std::sync::Mutex;

use rowpar::Isa;

use super::*;

const TINY: ModelShape = ModelShape {
    name: "tiny",
    n_layers: 1,
    d_model: 32,
    d_query: 32,
    d_kv: 16,
    d_ff: 64,
    n_vocab: 96,
};
const ROLES: [&str; 4] = ["qkv-64x32", "gate_up-128x32", "down-32x64", "head-96x32"];

fn suite(variants: Variants, working_set: usize) -> MatvecSuite {
    MatvecSuite::new(TINY, variants, working_set, 2).unwrap()
}

fn metrics<'a>(report: &'a Report, case: &str) -> Vec<&'a str> {
    let of_case = report.measurements.iter().filter(|measurement| measurement.case == case);
    of_case.map(|measurement| measurement.metric.as_str()).collect()
}

#[test]
fn every_fused_matrix_is_reported_in_every_way() {
    let variants = Variants {
        formats: vec![Format::F32, Format::Q8_0],
        batches: vec![1, 2],
        isas: vec![Isa::Scalar],
        packed: true,
        ..Variants::default()
    };
    let report = suite(variants, 1 << 16).measure(&Serial, Duration::ZERO).unwrap();
    let plain =
        ["bandwidth", "of_ceiling", "read_ceiling", "of_ceiling_in_parts", "read_ceiling_in_parts"];
    for role in ROLES {
        for format in ["f32", "q8_0"] {
            let metrics = |rest| metrics(&report, &format!("tiny-{role}-{format}-{rest}"));
            assert_eq!(metrics("b1-scalar"), plain);
            assert_eq!(metrics("b2-scalar"), [&plain[..], &["batch_cost"]].concat());
            assert_eq!(metrics("b1-scalar-packed"), [&plain[..], &["packing_gain"]].concat());
            let both = [&plain[..], &["batch_cost", "packing_gain"]].concat();
            assert_eq!(metrics("b2-scalar-packed"), both);
        }
    }
    assert_eq!(report.measurements.len(), 4 * 2 * (4 * 5 + 4));
    assert!(report.measurements.iter().all(|m| m.value.is_finite() && m.value > 0.0));
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn what_has_no_whole_blocks_is_left_out_with_a_note() {
    let variants = |format| Variants { formats: vec![format], ..Variants::default() };
    let error = suite(variants(Format::Q4K), 0).measure(&Serial, Duration::ZERO).unwrap_err();
    assert!(error.contains("64 columns are no whole blocks of 256"), "{error}");
    let both = Variants { formats: vec![Format::Q6K, Format::Bf16], ..Variants::default() };
    let report = suite(both, 0).measure(&Serial, Duration::ZERO).unwrap();
    assert_eq!(report.notes.len(), 4);
    assert_eq!(report.measurements.len(), 4 * 5);
}

#[test]
fn a_small_arena_takes_rows_away() {
    let f32_input =
        Variants { formats: vec![Format::Q8_0], input: Input::F32, ..Variants::default() };
    let suite = suite(f32_input, 50 * 34);
    assert_eq!(suite.working_set(), 16 * 64 * 4);
    let report = suite.measure(&Serial, Duration::ZERO).unwrap();
    let cases: Vec<&str> = report.measurements.iter().step_by(5).map(|m| &m.case[..]).collect();
    let names = ["qkv-64x32", "gate_up-112x32", "down-32x64", "head-96x32"];
    assert_eq!(cases, names.map(|name| format!("tiny-{name}-q8_0-b1-f32")));
}

#[test]
fn senseless_variants_are_refused() {
    let zero = Variants { batches: vec![1, 0], ..Variants::default() };
    assert!(MatvecSuite::new(TINY, zero, 0, 1).is_err());
}

/// A library that notes what it is asked for.
struct Noting(&'static Mutex<Vec<(usize, usize, usize, usize)>>);

struct Loaded<'a>(&'a Noting, Weights<'a>);

impl Library for Noting {
    fn load<'a>(&'a self, weights: Weights<'a>) -> Result<Box<dyn Product + 'a>, PoolError> {
        Ok(Box::new(Loaded(self, weights)))
    }
}

impl Product for Loaded<'_> {
    fn multiply(
        &mut self,
        copy: usize,
        x: &[f32],
        n_inputs: usize,
        out: &mut [f32],
    ) -> Result<(), PoolError> {
        assert_eq!(x.len(), n_inputs * self.1.n_cols);
        assert_eq!(out.len(), n_inputs * self.1.n_rows);
        self.0.0.lock().unwrap().push((self.1.n_rows, self.1.n_cols, copy, n_inputs));
        Ok(())
    }
}

#[test]
fn a_library_sees_every_matrix_in_every_batch() {
    static SEEN: Mutex<Vec<(usize, usize, usize, usize)>> = Mutex::new(Vec::new());
    let variants = Variants { batches: vec![1, 4], ..Variants::default() };
    let suite = suite(variants, 1 << 16);
    let report = suite.measure_library(|| Ok(Box::new(Noting(&SEEN))), Duration::ZERO).unwrap();
    assert_eq!(report.participants, 2);
    for (role, n_rows, n_cols) in
        [("qkv", 64, 32), ("gate_up", 128, 32), ("down", 32, 64), ("head", 96, 32)]
    {
        let name = format!("tiny-{role}-{n_rows}x{n_cols}-f32");
        assert_eq!(metrics(&report, &format!("{name}-b1")).len(), 5);
        assert_eq!(metrics(&report, &format!("{name}-b4")).len(), 6);
        for copy in 0..(1 << 16) / (4 * n_rows * n_cols) {
            for n_inputs in [1, 4] {
                let seen = SEEN.lock().unwrap();
                assert!(seen.contains(&(n_rows, n_cols, copy, n_inputs)), "{name} {copy}");
            }
        }
    }
    let absent = || -> Result<Box<dyn Library>, PoolError> { Err("absent".into()) };
    assert!(suite.measure_library(absent, Duration::ZERO).is_err());
}
