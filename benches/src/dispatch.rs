//! The dispatch suite: what a job costs over its ideal.
//!
//! A job is `n_chunks` chunks of calibrated work, handed to the pool as rows with a grain of one. Its
//! ideal is the time in which the calling thread alone runs `ceil(n_chunks / threads)` such chunks; it
//! is measured anew in front of every batch of jobs, so that a clock that speeds up or slows down moves
//! both sides. Beside the overhead stands the whole time of a job, to compare different numbers of participants with, and the
//! overhead in round trips of a cache line between two CPUs, to compare machines with. Between two jobs the caller does serial work for the length of the gap, give or take a
//! half, because a pool that is called in perfect rhythm is a pool nobody has.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use rowpar::RowPool;

use crate::SplitMix64;
use crate::protocol::{Better, Measurement, Report, Request};
use crate::stats::{mean, median, quantile};
use crate::work::{Calibration, clock_ns, spin_work, time_ns};

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

/// The case that is no job: a cache line on its way to another CPU and back.
pub const ROUND_TRIP_CASE: &str = "line-round-trip";
/// What is measured of [`ROUND_TRIP_CASE`].
pub const ROUND_TRIP_METRIC: &str = "round_trip";
/// What is measured of each [`DispatchCase`].
pub const METRICS: &[&str] = &[
    "overhead_p50",
    "overhead_mean",
    "overhead_p99",
    "overhead_round_trips",
    "time_p50",
    "time_mean",
];

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

/// Measures every case of [`DispatchCase::all`] within about the budget of `request`.
///
/// The ideal is that of the threads asked for, whatever the pool has. `round_trip_ns` was measured in this process
/// before the pool was there, or is what overheads are to be divided by.
pub fn measure(pool: &dyn RowPool, request: &Request, round_trip_ns: f64) -> Report {
    let calibration = Calibration::measure(200);
    let cases = DispatchCase::all(request.threads);
    let share = request.budget() / cases.len() as u32;
    let mut report = Report { participants: pool.participants(), ..Report::default() };
    report.measurements.push(round_trip(round_trip_ns));
    for case in cases {
        let jobs = Runner::new(case, calibration, request.threads).run(pool, share);
        report.measurements.extend(jobs.measurements(&case.name(), round_trip_ns));
    }
    let drift = calibration.drift(Calibration::measure(200));
    if drift > MAX_DRIFT {
        report.notes.push(format!(
            "dispatch, {}: the clock speed moved by {:.0} % while measuring",
            request.backend,
            100.0 * drift
        ));
    }
    report
}

fn round_trip(ns: f64) -> Measurement {
    Measurement {
        case: ROUND_TRIP_CASE.into(),
        metric: ROUND_TRIP_METRIC.into(),
        unit: "ns".into(),
        better: Better::Lower,
        value: ns,
        resolution: 1.0,
        samples: vec![ns],
    }
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

    fn run(mut self, pool: &dyn RowPool, budget: Duration) -> Jobs {
        self.batch(pool); // warms up: threads started, pages touched, clock raised
        let start = Instant::now();
        let mut jobs = Jobs { ideals: Vec::new(), times: Vec::new() };
        while jobs.times.is_empty() || start.elapsed() < budget {
            let ideal = self.batch(pool);
            jobs.ideals.push(ideal);
            jobs.times.push(self.times.clone());
        }
        jobs
    }

    /// Fills `times` with one batch of jobs, and gives its ideal.
    fn batch(&mut self, pool: &dyn RowPool) -> f64 {
        self.ideals.clear();
        for _ in 0..IDEAL_RUNS {
            let (n_chunks, links) = (self.ideal_chunks, self.chunk_links);
            self.ideals.push(time_ns(|| (0..n_chunks).for_each(|_| spin_work(links))));
        }
        self.times.clear();
        for _ in 0..self.batch_len {
            self.gap();
            let (rows, links) = (self.case.n_chunks, self.chunk_links);
            self.times.push(time_ns(|| {
                pool.for_each_range(rows, 1, &|chunks| chunks.for_each(|_| spin_work(links)));
            }));
        }
        median(&self.ideals)
    }

    fn gap(&mut self) {
        if self.gap_links > 0 {
            spin_work((self.gap_links as f64 * (0.5 + self.random.next_unit())) as u64);
        }
    }
}

/// What one case gave: per batch its ideal, and the time of each job.
struct Jobs {
    ideals: Vec<f64>,
    times: Vec<Vec<f64>>,
}

impl Jobs {
    fn measurements(&self, case: &str, round_trip_ns: f64) -> Vec<Measurement> {
        let batches = self.times.iter().zip(&self.ideals);
        let overheads: Vec<Vec<f64>> =
            batches.map(|(times, ideal)| times.iter().map(|time| time - ideal).collect()).collect();
        // What the ideal itself varies by is not overhead, nor is anything the clock cannot see.
        let spread = quantile(&self.ideals, 0.75) - quantile(&self.ideals, 0.25);
        let resolution = clock_ns().max(spread).max(1.0);
        let in_ns = |metric: &str, batches: &[Vec<f64>], f: fn(&[f64]) -> f64| Measurement {
            case: case.into(),
            metric: metric.into(),
            unit: "ns".into(),
            better: Better::Lower,
            value: f(&batches.concat()),
            resolution,
            samples: batches.iter().map(|batch| f(batch)).collect(),
        };
        let overhead = in_ns("overhead_p50", &overheads, median);
        let in_round_trips = in_round_trips(&overhead, round_trip_ns);
        vec![
            overhead,
            in_ns("overhead_mean", &overheads, mean),
            Measurement { samples: Vec::new(), ..in_ns("overhead_p99", &overheads, p99) },
            in_round_trips,
            in_ns("time_p50", &self.times, median),
            in_ns("time_mean", &self.times, mean),
        ]
    }
}

/// Too few jobs make a batch to give each its own.
fn p99(times: &[f64]) -> f64 {
    quantile(times, 0.99)
}

fn in_round_trips(overhead: &Measurement, round_trip_ns: f64) -> Measurement {
    let round_trips = |ns: f64| ns / round_trip_ns.max(1.0);
    Measurement {
        metric: "overhead_round_trips".into(),
        unit: "round trips".into(),
        value: round_trips(overhead.value),
        resolution: round_trips(overhead.resolution),
        samples: overhead.samples.iter().copied().map(round_trips).collect(),
        ..overhead.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Backend;
    use crate::protocol::Suite;

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
        let request = Request {
            suite: Suite::Dispatch,
            backend: Backend::Serial.into(),
            threads: 2,
            shape: String::new(),
            budget_ms: 0,
            working_set: 0,
            model: None,
            variants: crate::Variants::default(),
        };
        let report = measure(&rowpar::Serial, &request, 100.0);
        assert!(report.measurements.iter().all(|m| m.value.is_finite() && m.resolution > 0.0));
        let found: BTreeSet<(&str, &str)> =
            report.measurements.iter().map(|m| (m.case.as_str(), m.metric.as_str())).collect();
        let names: Vec<String> = DispatchCase::all(2).iter().map(DispatchCase::name).collect();
        let mut expected: BTreeSet<(&str, &str)> = names
            .iter()
            .flat_map(|name| METRICS.iter().map(move |&metric| (name.as_str(), metric)))
            .collect();
        expected.insert((ROUND_TRIP_CASE, ROUND_TRIP_METRIC));
        assert_eq!(found, expected);
        assert_eq!(found.len(), report.measurements.len());
    }

    #[test]
    fn a_job_has_its_time_its_overhead_and_that_in_round_trips() {
        // Two batches; in the second one the machine is twice as slow.
        let jobs = Jobs {
            ideals: vec![1000.0, 2000.0],
            times: vec![vec![1500.0, 1500.0, 1600.0], vec![3000.0, 3100.0]],
        };
        let measurements = jobs.measurements("case", 250.0);
        let find = |metric| measurements.iter().find(|m| m.metric == metric).unwrap();
        // Overheads 500, 500, 600, 1000, 1100.
        let expected = [
            ("overhead_p50", 600.0, vec![500.0, 1050.0]),
            ("overhead_round_trips", 2.4, vec![2.0, 4.2]),
            ("time_p50", 1600.0, vec![1500.0, 3050.0]),
        ];
        for (metric, value, samples) in expected {
            assert_eq!((find(metric).value, &find(metric).samples), (value, &samples), "{metric}");
        }
        assert_eq!(find("overhead_mean").value, 740.0);
        assert_eq!(find("time_mean").value, 2140.0);
        assert_eq!(find("overhead_round_trips").unit, "round trips");
        // A quarter of the spread of the ideals on each side is left out.
        assert_eq!(find("time_p50").resolution, 500.0);
        assert_eq!(find("overhead_round_trips").resolution, 2.0);
    }
}
