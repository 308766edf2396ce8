//! Measures one request and prints one JSON document: the process behind each row of `cargo xtask bench`.
//!
//! ```text
//! bench-runner '{"suite":"dispatch","backend":"epoch","threads":2,"shape":"SmolLM2-135M","budget_ms":300,"working_set":0}'
//! bench-runner --busy     # keeps a CPU busy until its standard input closes
//! ```
//!
//! **Whoever starts it with a request that names a model's file sees to it that nobody changes that file while it runs.**

use std::process::ExitCode;

use benches::runner;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("--busy") {
        runner::busy();
    }
    // SAFETY: the file of a request is left alone: the documentation of this program asks whoever starts it, and the help of `cargo
    // xtask bench --model` asks the user.
    unsafe {
        runner::main(
            "bench-runner",
            |contender, threads, measure| contender.with_pool(threads, measure),
            |backend, _| Err(format!("{backend} is built by the package in benches/peers").into()),
        )
    }
}
