//! The rounds: every task on every backend, again and again, in an order that turns.
//!
//! Within a round the backends of one task follow each other directly, so that the values paired later
//! were measured within seconds of each other. Each round begins with another backend: whoever comes
//! first finds another machine (cold, or just throttled) than whoever comes last.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use benches::Contender;
use indicatif::{ProgressBar, ProgressStyle};

use super::binaries::Binaries;
use super::runner;
use super::series::SeriesSet;
use super::settings::{Pace, Settings};

/// What came out, and of how many rounds.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) series: SeriesSet,
    pub(crate) rounds: usize,
}

/// Runs as many rounds as the pace allows.
pub(crate) fn measure(settings: &Settings, binaries: &Binaries) -> anyhow::Result<Measured> {
    let start = Instant::now();
    let mut series = SeriesSet::default();
    let per_round = settings.tasks.len() * settings.contenders.len();
    let progress = Progress::new(per_round, settings.pace);
    let mut rounds = 0;
    while another_round(settings.pace, rounds, start.elapsed()) {
        for &task in &settings.tasks {
            for contender in turned(&settings.contenders, rounds) {
                progress.begin(rounds, &format!("{task} {contender}"));
                let report = runner::run(binaries, &settings.request(task, contender))?;
                series.add(task.suite, contender, report);
                progress.end();
            }
        }
        rounds += 1;
    }
    progress.finish(rounds, start.elapsed());
    Ok(Measured { series, rounds })
}

/// Whether there is time for a round more, judging by those behind us.
fn another_round(pace: Pace, done: usize, elapsed: Duration) -> bool {
    if done < pace.min_rounds {
        return true;
    }
    let next_end = elapsed + elapsed / done.max(1) as u32;
    done < pace.max_rounds && next_end <= pace.limit
}

/// The contenders, beginning with another one each round.
fn turned(contenders: &[Contender], round: usize) -> impl Iterator<Item = Contender> {
    let first = round % contenders.len();
    contenders[first..].iter().chain(&contenders[..first]).copied()
}

/// A bar on a terminal, plain lines elsewhere. Nothing of it runs while a process measures.
struct Progress {
    bar: Option<ProgressBar>,
    max_rounds: usize,
}

impl Progress {
    fn new(per_round: usize, pace: Pace) -> Self {
        let template = "{bar:30} {pos}/{len} {elapsed} {wide_msg}";
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(template);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new((per_round * pace.max_rounds) as u64).with_style(style)
        });
        Self { bar, max_rounds: pace.max_rounds }
    }

    fn begin(&self, round: usize, what: &str) {
        let message = format!("round {} of up to {}: {what}", round + 1, self.max_rounds);
        match &self.bar {
            Some(bar) => bar.set_message(message),
            None => eprintln!("{message}"),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn finish(&self, rounds: usize, elapsed: Duration) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        eprintln!("{rounds} rounds in {:.0} s", elapsed.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { min_rounds: 3, max_rounds: 5, limit: Duration::from_secs(50) };

    #[test]
    fn rounds_end_at_the_limit_but_not_before_the_minimum() {
        let cases = [
            (0, 0, true),
            (2, 500, true),
            (3, 36, true),
            (3, 38, false),
            (4, 40, true),
            (5, 10, false),
        ];
        for (done, seconds, expected) in cases {
            let found = another_round(PACE, done, Duration::from_secs(seconds));
            assert_eq!(found, expected, "{done} rounds in {seconds} s");
        }
    }

    #[test]
    fn each_round_begins_with_another_contender() {
        let [a, b, c] = ["serial", "epoch", "epoch@set"].map(|name| name.parse().unwrap());
        let order = |round| turned(&[a, b, c], round).collect::<Vec<_>>();
        assert_eq!(order(0), [a, b, c]);
        assert_eq!(order(1), [b, c, a]);
        assert_eq!(order(3), [a, b, c]);
    }
}
