//! Measures one request on a peer: takes and prints what `bench-runner` does.
//!
//! ```text
//! peer-runner '{"suite":"dispatch","backend":"chili","threads":2,"shape":"SmolLM2-135M","budget_ms":300,"working_set":0}'
//! peer-runner --missing     # the peers that are not built in, and how to install what they need, as JSON
//! ```
//!
//! **Whoever starts it with a request that names a model's file sees to it that nobody changes that file while it runs.**

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("--missing") {
        return match serde_json::to_string(&peers::missing()) {
            Ok(json) => {
                println!("{json}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("peer-runner: {error}");
                ExitCode::FAILURE
            }
        };
    }
    // SAFETY: the file of a request is left alone: the documentation of this program asks whoever starts it, and the help of `cargo
    // xtask bench --model` asks the user.
    unsafe {
        benches::runner::main(
            "peer-runner",
            |contender, threads, measure| peers::with_pool(contender.backend(), threads, measure),
            peers::open_library,
        )
    }
}
