//! The dispatch suite: what a job costs over its ideal.
//!
//! A job is `n_chunks` chunks of calibrated work, handed to the pool as rows with a grain of one. Its
//! ideal is the time in which the calling thread alone runs `ceil(n_chunks / threads)` such chunks; it
//! is measured anew in front of every batch of jobs, so that a clock that speeds up or slows down moves
//! both sides. Between two jobs the caller does serial work for the length of the gap, give or take a
//! half, because a pool that is called in perfect rhythm is a pool nobody has.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use rowpar::RowPool;

use crate::protocol::{Better, Measurement, Report};
use crate::stats::{mean, median, quantile};
use crate::work::{Calibration, clock_ns, spin_work, time_ns};
use crate::{Backend, SplitMix64};

/// Jobs per batch at most; each batch has its own ideal.
const MAX_BATCH_LEN: usize = 40;
/// Jobs per batch at least, however long the gap.
const MIN_BATCH_LEN: usize = 8;
/// Time in which the gaps of one batch should fit.
const BATCH_GAPS_NS: f64 = 10e6;
/// Runs behind the ideal of one batch.
const IDEAL_RUNS: usize = 15;
/// A second calibration further off than this is worth a note.
const MAX_DRIFT: f64 = 0.10;

/// One job size with one gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DispatchCase {
    /// Work per chunk.
    pub chunk_ns: f64,
    /// Chunks per job.
    pub n_chunks: usize,
    /// Mean serial work between two jobs.
    pub gap_ns: f64,
}

impl DispatchCase {
    /// The cases for a pool of `n_threads`: fixed ones that every machine shares, and for more than two
    /// threads one that occupies each of them.
    pub fn all(n_threads: usize) -> Vec<Self> {
        let case = |chunk_us: f64, n_chunks, gap_us: f64| Self {
            chunk_ns: chunk_us * 1e3,
            n_chunks,
            gap_ns: gap_us * 1e3,
        };
        let mut cases = vec![
            case(2.0, 2, 0.0),
            case(2.0, 2, 20.0),
            case(1.25, 32, 20.0),
            case(6.0, 64, 20.0),
            case(6.0, 2, 1000.0),
        ];
        if n_threads > 2 {
            cases.insert(2, case(2.0, n_threads, 20.0));
        }
        cases
    }

    /// The name in results, such as `1.25us-x32-gap20us`.
    pub fn name(&self) -> String {
        let gap = if self.gap_ns > 0.0 { format!("{}us", self.gap_ns / 1e3) } else { "0".into() };
        format!("{}us-x{}-gap{gap}", self.chunk_ns / 1e3, self.n_chunks)
    }
}

/// Measures every case of [`DispatchCase::all`] on `backend` within about `budget`.
pub fn measure(pool: &dyn RowPool, backend: Backend, n_threads: usize, budget: Duration) -> Report {
    let calibration = Calibration::measure(200);
    let cases = DispatchCase::all(n_threads);
    let share = budget / cases.len() as u32;
    let mut report = Report { participants: pool.participants(), ..Report::default() };
    for case in cases {
        report.measurements.extend(Runner::new(case, calibration, n_threads).run(pool, share));
    }
    let drift = calibration.drift(Calibration::measure(200));
    if drift > MAX_DRIFT {
        report.notes.push(format!(
            "dispatch, {backend}: the clock speed moved by {:.0} % while measuring",
            100.0 * drift
        ));
    }
    report
}

/// One case on its way: links of work instead of nanoseconds, and buffers made before the clock runs.
struct Runner {
    case: DispatchCase,
    chunk_links: u64,
    gap_links: u64,
    ideal_chunks: u64,
    batch_len: usize,
    random: SplitMix64,
    times: Vec<f64>,
    ideals: Vec<f64>,
}

impl Runner {
    fn new(case: DispatchCase, calibration: Calibration, n_threads: usize) -> Self {
        let gaps_that_fit = (BATCH_GAPS_NS / case.gap_ns.max(1.0)) as usize;
        Self {
            case,
            chunk_links: calibration.links_for(case.chunk_ns),
            gap_links: calibration.links_for(case.gap_ns),
            ideal_chunks: case.n_chunks.div_ceil(n_threads.max(1)) as u64,
            batch_len: gaps_that_fit.clamp(MIN_BATCH_LEN, MAX_BATCH_LEN),
            random: SplitMix64::new(case.n_chunks as u64),
            times: Vec::with_capacity(MAX_BATCH_LEN),
            ideals: Vec::with_capacity(IDEAL_RUNS),
        }
    }

    fn run(mut self, pool: &dyn RowPool, budget: Duration) -> Vec<Measurement> {
        self.batch(pool); // warms up: threads started, pages touched, clock raised
        let start = Instant::now();
        let (mut ideals, mut batches) = (Vec::new(), Vec::new());
        while batches.is_empty() || start.elapsed() < budget {
            let (ideal, overheads) = self.batch(pool);
            ideals.push(ideal);
            batches.push(overheads);
        }
        self.summarize(&ideals, &batches)
    }

    /// The ideal of this batch, and each job's time over it.
    fn batch(&mut self, pool: &dyn RowPool) -> (f64, Vec<f64>) {
        self.ideals.clear();
        for _ in 0..IDEAL_RUNS {
            let (n_chunks, links) = (self.ideal_chunks, self.chunk_links);
            self.ideals.push(time_ns(|| (0..n_chunks).for_each(|_| spin_work(links))));
        }
        let ideal = median(&self.ideals);
        self.times.clear();
        for _ in 0..self.batch_len {
            self.gap();
            let (rows, links) = (self.case.n_chunks, self.chunk_links);
            self.times.push(time_ns(|| {
                pool.for_each_range(rows, 1, &|chunks| chunks.for_each(|_| spin_work(links)));
            }));
        }
        (ideal, self.times.iter().map(|time| time - ideal).collect())
    }

    fn gap(&mut self) {
        if self.gap_links > 0 {
            spin_work((self.gap_links as f64 * (0.5 + self.random.next_unit())) as u64);
        }
    }

    fn summarize(&self, ideals: &[f64], batches: &[Vec<f64>]) -> Vec<Measurement> {
        let all: Vec<f64> = batches.iter().flatten().copied().collect();
        let of_batches = |f: fn(&[f64]) -> f64| batches.iter().map(|b| f(b)).collect::<Vec<_>>();
        // What the ideal itself varies by is not overhead, nor is anything the clock cannot see.
        let spread = quantile(ideals, 0.75) - quantile(ideals, 0.25);
        let resolution = clock_ns().max(spread).max(1.0);
        let measurement = |metric: &str, value, samples| Measurement {
            case: self.case.name(),
            metric: metric.into(),
            unit: "ns".into(),
            better: Better::Lower,
            value,
            resolution,
            samples,
        };
        vec![
            measurement("overhead_p50", median(&all), of_batches(median)),
            measurement("overhead_mean", mean(&all), of_batches(mean)),
            measurement("overhead_p99", quantile(&all, 0.99), Vec::new()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_named_after_what_they_do() {
        let names: Vec<String> = DispatchCase::all(2).iter().map(DispatchCase::name).collect();
        let expected = [
            "2us-x2-gap0",
            "2us-x2-gap20us",
            "1.25us-x32-gap20us",
            "6us-x64-gap20us",
            "6us-x2-gap1000us",
        ];
        assert_eq!(names, expected);
        assert_eq!(DispatchCase::all(16)[2].name(), "2us-x16-gap20us");
    }

    #[test]
    fn serial_reports_every_case_and_metric() {
        let report = measure(&rowpar::Serial, Backend::Serial, 2, Duration::ZERO);
        assert_eq!(report.measurements.len(), 3 * DispatchCase::all(2).len());
        assert!(report.measurements.iter().all(|m| m.value.is_finite() && m.resolution >= 1.0));
    }
}
