//! Every library multiplies what it is given: close to the exact product, for one input and for several.

use std::env;
use std::process::Command;

use benches::library::{Weights, environment};
use benches::protocol::MissingPeer;
use benches::{Backend, data};
use rowpar::{Format, Matrix};

const N_THREADS: usize = 2;
const N_ROWS: usize = 300;
const N_COLS: usize = 512;

/// The libraries that are built in.
fn libraries() -> Vec<Backend> {
    let missing: Vec<MissingPeer> = peers::missing();
    let is_here = |backend: &Backend| {
        backend.is_library() && missing.iter().all(|peer| peer.backend != *backend)
    };
    Backend::ALL.iter().copied().filter(is_here).collect()
}

/// Some libraries read their number of threads from the environment, so this runs itself once more in the right one.
#[test]
fn products_are_those_of_the_rows() {
    let is_set =
        environment(N_THREADS).iter().all(|(name, value)| env::var(name).as_ref() == Ok(value));
    if !is_set {
        let arguments = ["--exact", "products_are_those_of_the_rows"];
        let mut again = Command::new(env::current_exe().unwrap());
        let output = again.args(arguments).envs(environment(N_THREADS)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    for backend in libraries() {
        for &format in Format::ALL.iter().filter(|format| backend.takes(**format)) {
            check(backend, format);
        }
    }
}

fn check(backend: Backend, format: Format) {
    let mut values = vec![0.0; 3 * N_ROWS * N_COLS];
    data::fill_noise(&mut values, 9, 1);
    let weights = Weights::new(format, N_ROWS, N_COLS, &values).unwrap();
    let library = peers::open_library(backend, N_THREADS).unwrap();
    let mut product = library.load(weights).unwrap();
    for n_inputs in [1, 2, 3] {
        let x = data::uniform(n_inputs * N_COLS, 4, 1.0, 1);
        for copy in [0, 2] {
            let mut out = vec![f32::NAN; n_inputs * N_ROWS];
            product.multiply(copy, &x, n_inputs, &mut out).unwrap();
            let w = Matrix::new(format, N_ROWS, N_COLS, weights.bytes(copy)).unwrap();
            let what = format!("{backend}, {format}, {n_inputs} inputs");
            for (x, out) in x.chunks(N_COLS).zip(out.chunks(N_ROWS)) {
                check_output(w, x, out, &what);
            }
        }
    }
}

/// Rounding of sums, and of inputs that are quantized on the way, is far below a fiftieth of the magnitudes added up.
fn check_output(w: Matrix<'_>, x: &[f32], out: &[f32], what: &str) {
    let mut row = vec![0.0; N_COLS];
    for (i, found) in out.iter().enumerate() {
        w.row_to_f32(i, &mut row);
        let products = row.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
        let (sum, size) =
            products.fold((0.0, 0.0), |(sum, size), p: f64| (sum + p, size + p.abs()));
        assert!((f64::from(*found) - sum).abs() < size / 50.0, "{what}, row {i}: {found}, {sum}");
    }
}

#[test]
fn what_is_no_library_is_refused() {
    for &backend in Backend::ALL.iter().filter(|backend| !libraries().contains(backend)) {
        assert!(peers::open_library(backend, N_THREADS).is_err(), "{backend}");
    }
    assert!(peers::open_library(Backend::Matrixmultiply, 3).is_err());
}
