//! Measures one request and prints one JSON document: the process behind each row of `cargo xtask bench`.
//!
//! ```text
//! bench-runner '{"suite":"dispatch","backend":"epoch","threads":2,"shape":"SmolLM2-135M","budget_ms":300,"working_set":0}'
//! bench-runner --busy     # keeps a CPU busy until its standard input closes
//! ```

#![forbid(unsafe_code)]

use std::process::ExitCode;

use benches::runner;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("--busy") {
        runner::busy();
    }
    runner::main(
        "bench-runner",
        |contender, threads, measure| contender.with_pool(threads, measure),
        |backend, _| Err(format!("{backend} is built by the package in benches/peers").into()),
    )
}
