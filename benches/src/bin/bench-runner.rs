//! Measures one request and prints one JSON document: the process behind each row of `cargo xtask bench`.
//!
//! ```text
//! bench-runner '{"suite":"dispatch","backend":"epoch","threads":2,"shape":"SmolLM2-135M","budget_ms":300,"working_set":0}'
//! ```

#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;

use benches::protocol::{Report, Request, Suite};
use benches::{ModelShape, decode_suite, dispatch, matvec::MatvecSuite};
use rowpar::{Kernels, RowPool};

fn main() -> ExitCode {
    match run() {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-runner: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, Box<dyn Error>> {
    let text = std::env::args().nth(1).ok_or("the request is missing: one JSON object")?;
    let request: Request = serde_json::from_str(&text)?;
    let shape: ModelShape = request.shape.parse()?;
    let mut report = request
        .backend
        .with_pool(request.threads, |pool| measure(&request, shape, pool))
        .map_err(|error| format!("no pool for {}: {error}", request.backend))??;
    report.isa = Kernels::best().isa().to_string();
    Ok(serde_json::to_string(&report)?)
}

fn measure(request: &Request, shape: ModelShape, pool: &dyn RowPool) -> Result<Report, String> {
    let (threads, budget) = (request.threads, request.budget());
    match request.suite {
        Suite::Dispatch => Ok(dispatch::measure(pool, request.backend, threads, budget)),
        Suite::Matvec => {
            let suite = MatvecSuite::new(shape, request.working_set, threads);
            Ok(suite.measure(pool, budget))
        }
        Suite::Decode => decode_suite::measure(shape, pool, threads, budget),
    }
}
