//! What a pool tells of itself.
#![forbid(unsafe_code)]

use crate::histogram::Histogram;

/// What a pool has done since it was built; [`Pool::statistics`](crate::Pool::statistics) takes it.
///
/// Always counted, on cache lines that only the counting thread writes, but for what is rare. Everything that a job has caused is counted when its
/// dispatch returns, but for `parks`, as a worker parks later. While another thread dispatches, the numbers are of slightly
/// different moments.
///
/// ```
/// let pool = epoch_pool::Pool::new(1)?;
/// pool.run_rows(1000, |_rows| {});
/// pool.run_rows(1, |_rows| {}); // one row cannot be shared
/// let statistics = pool.statistics();
/// assert_eq!((statistics.dispatches, statistics.invited), (1, 1));
/// assert_eq!(statistics.inline.small, 1);
/// # Ok::<(), epoch_pool::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Jobs for the workers, and `deserted` ones.
    pub dispatches: u64,
    /// Jobs that ran on their caller alone.
    pub inline: InlineRuns,
    /// Jobs that a `try_run…` method has refused.
    pub refused: u64,
    /// Jobs among the `dispatches` of which a call has panicked.
    pub panics: u64,
    /// Published jobs that were too small to wake anybody for: all invited workers were parked, and the caller did the job. Those
    /// workers count as late.
    pub alone: u64,
    /// Jobs that were kept from the workers and ran undivided on their caller: the workers were awake, but none had come to a job less
    /// than a millisecond before, as others had their CPUs, and most jobs were short then. They invite nobody, and are not in
    /// `timing`.
    pub deserted: u64,
    /// Workers that had a home range in a job, summed over the jobs.
    pub invited: u64,
    /// Invited workers that came when others had done their range already, or not at all: nobody has waited for them.
    pub late: u64,
    /// Claims from another participant's range, by workers and callers. What a caller does alone is no theft.
    pub steals: u64,
    /// Times that a worker has parked.
    pub parks: u64,
    /// Times that a worker has left a CPU which it shared with another participant, as
    /// [`Builder::keep_apart`](crate::Builder::keep_apart) describes it.
    pub moves: u64,
    /// Wake-ups sent to parked workers. A worker that has not come yet may be sent another.
    pub unparks: u64,
    /// Times that a caller has blocked, its spin budget spent, until the last worker was done.
    pub caller_waits: u64,
    /// The pool has more participants than there are CPUs for it, as far as it has found out: waiters yield.
    pub oversubscribed: bool,
    /// How often a waiting worker, or a caller of an oversubscribed pool whose workers are asleep, has counted the CPUs again,
    /// which is at most every 50 ms. The standard library allocates for it, and a move allocates as well; nothing else does.
    pub cpu_counts: u64,
    /// Times, if [`Builder::timing`](crate::Builder::timing) has asked for them.
    pub timing: Option<Timing>,
}

/// Jobs that ran inline: serially, on the thread that called, by cause. A job of no rows is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InlineRuns {
    /// The pool has no workers.
    pub no_workers: u64,
    /// The job had no two chunks, or more than can be counted.
    pub small: u64,
    /// The job was dispatched from inside a job of the same pool.
    pub nested: u64,
    /// Another thread's job was running.
    pub busy: u64,
    /// The pool is a copy in a forked child, where its workers do not exist.
    pub forked: u64,
}

impl InlineRuns {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.no_workers + self.small + self.nested + self.busy + self.forked
    }
}

/// Times of a pool's jobs, as histograms.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// From the publication of a job to an invited worker's first claim, in nanoseconds. Late workers are not in it.
    pub wake_latency_ns: Histogram,
    /// By how many per cent the busiest invited participant of a job has worked longer than the mean of all: 0 is perfect, and
    /// 100 a worker of two that did nothing.
    pub imbalance_percent: Histogram,
}
