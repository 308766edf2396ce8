//! What the soak can be told; `cargo xtask soak` takes the same.
#![forbid(unsafe_code)]

use clap::{Args, value_parser};

/// Options of a soak.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// End when so many jobs have been published.
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = value_parser!(u64).range(1..))]
    pub dispatches: u64,
    /// End after so many minutes, if that is earlier.
    #[arg(long, value_name = "M", value_parser = value_parser!(u32).range(1..))]
    pub minutes: Option<u32>,
    /// What every choice follows from. By default a random one, which is printed.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Participants of a pool at most. By default four times the CPUs.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}

impl Options {
    /// The command line that says the same.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = vec![format!("--dispatches={}", self.dispatches)];
        args.extend(self.minutes.map(|minutes| format!("--minutes={minutes}")));
        args.extend(self.seed.map(|seed| format!("--seed={seed}")));
        args.extend(self.threads.map(|threads| format!("--threads={threads}")));
        args
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn the_arguments_say_what_the_options_say() {
        let lines: [&[&str]; 2] = [
            &["--dispatches=100000000"],
            &["--dispatches=7", "--minutes=3", "--seed=18446744073709551615", "--threads=9"],
        ];
        for line in lines {
            let parsed = Line::try_parse_from([&["soak"], line].concat()).unwrap();
            assert_eq!(parsed.options.to_args(), line);
        }
        for line in ["--dispatches=0", "--minutes=0", "--threads=0", "--threads=1025", "--seed=-1"]
        {
            assert!(Line::try_parse_from(["soak", line]).is_err(), "{line}");
        }
    }
}
