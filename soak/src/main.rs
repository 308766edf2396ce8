//! The process behind `cargo xtask soak`.

#![forbid(unsafe_code)]

use clap::Parser;

/// Random use of the pool, every dispatch checked.
#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    options: soak::Options,
}

fn main() {
    soak::run(&Line::parse().options);
}
