//! A plan with the reason of every number in it.
#![forbid(unsafe_code)]

use std::fmt;

use crate::env::{ThreadCount, ThreadSource};
use crate::note::Note;
use crate::plan::{CpuPoolPlan, perf_core_count_in, physical_core_count_in};
use crate::request::PlanRequest;
use crate::this_process::cpu_threads;
use crate::topology::CpuTopology;

/// A fact or a decision, and why it is so.
///
/// ```
/// use cpu_topology::explain_cpu_pool;
///
/// for reason in explain_cpu_pool(0, false).reasons {
///     println!("{:>12}: {} ({})", reason.what, reason.value, reason.why);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// What it is about, in a word or two.
    pub what: &'static str,
    /// What was found or decided.
    pub value: String,
    /// Why.
    pub why: String,
}

/// A plan, the topology it was made for, and the reason of each number. Displayed as one line per reason.
///
/// ```
/// use cpu_topology::{CpuTopology, Quota, ThreadCount, explain_cpu_pool_in, resolve_cpu_threads_with};
///
/// let topology = CpuTopology::from_sibling_lists((0..16).map(|cpu| (cpu, vec![cpu])));
/// let topology = topology.with_quota(Quota::new(200_000, 100_000));
/// let threads = resolve_cpu_threads_with(|_| None, || 2);
/// let report = explain_cpu_pool_in(0, true, &topology, threads);
/// assert_eq!(report.plan.num_threads, 2);
/// println!("{report}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanReport {
    /// The plan.
    pub plan: CpuPoolPlan,
    /// The topology it was made for.
    pub topology: CpuTopology,
    /// What [`resolve_cpu_threads`](crate::resolve_cpu_threads) says, and why.
    pub cpu_threads: ThreadCount,
    /// What [`physical_core_count`](crate::physical_core_count) says.
    pub physical_cores: usize,
    /// What [`perf_core_count`](crate::perf_core_count) says.
    pub perf_cores: usize,
    /// Facts first, then what follows from them.
    pub reasons: Vec<Reason>,
}

impl fmt::Display for PlanReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Reason { what, value, why }) in self.reasons.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{what}: {value} ({why})")?;
        }
        Ok(())
    }
}

/// The plan of [`plan_cpu_pool`](crate::plan_cpu_pool) for this process, with its reasons.
///
/// Prints nothing: variables that are ignored are among the reasons.
///
/// ```
/// use cpu_topology::{explain_cpu_pool, plan_cpu_pool};
///
/// assert_eq!(explain_cpu_pool(2, false).plan, plan_cpu_pool(2, false));
/// ```
pub fn explain_cpu_pool(requested: usize, reserve_coordinator: bool) -> PlanReport {
    let topology = CpuTopology::detect();
    let threads = cpu_threads(|| perf_core_count_in(&topology));
    explain_cpu_pool_in(requested, reserve_coordinator, &topology, threads)
}

/// The plan of [`plan_cpu_pool_in`](crate::plan_cpu_pool_in) with its reasons, and those of a number of threads found beside it.
///
/// See [`PlanReport`] for an example.
pub fn explain_cpu_pool_in(
    requested: usize,
    reserve_coordinator: bool,
    topology: &CpuTopology,
    cpu_threads: ThreadCount,
) -> PlanReport {
    report(&PlanRequest::of_all_cores(requested, reserve_coordinator), topology, cpu_threads)
}

/// The plan of a request with its reasons, and those of a number of threads found beside it.
pub(crate) fn report(
    request: &PlanRequest,
    topology: &CpuTopology,
    cpu_threads: ThreadCount,
) -> PlanReport {
    let plan = request.plan(topology);
    let physical_cores = physical_core_count_in(topology);
    let perf_cores = perf_core_count_in(topology);
    let mut reasons = facts(topology);
    reasons.push(reason("performance cores", perf_cores, why_perf_cores(topology)));
    reasons.extend(variables(&cpu_threads));
    reasons.push(workers(&plan, request, topology));
    reasons.push(coordinator(&plan, request, topology));
    reasons.push(left_over(&plan, topology));
    PlanReport {
        plan,
        topology: topology.clone(),
        cpu_threads,
        physical_cores,
        perf_cores,
        reasons,
    }
}

fn reason(what: &'static str, value: impl fmt::Display, why: impl Into<String>) -> Reason {
    Reason { what, value: value.to_string(), why: why.into() }
}

fn facts(topology: &CpuTopology) -> Vec<Reason> {
    let shown =
        if topology.is_empty() { "none".to_owned() } else { topology.allowed_set().to_string() };
    let mut facts = vec![reason("allowed CPUs", shown, topology.allowed_source().to_string())];
    let guess = topology.notes().iter().find_map(|note| match note {
        Note::CoresGuessed { from } => Some(*from),
        _ => None,
    });
    let siblings = if topology.ids_are_real() { "sibling lists" } else { "the system's counts" };
    let by = guess.unwrap_or(siblings);
    let why = format!("{} grouped by {by}", counted_as(topology.len(), "CPU"));
    facts.push(reason("physical cores", topology.cores().len(), why));
    for (index, class) in topology.classes().iter().enumerate() {
        let kind = if class.is_efficiency() { "efficiency" } else { "performance" };
        let why = match topology.class_signal() {
            Some(signal) => {
                format!("{}, by {signal}", counted_as(class.n_cores(), &format!("{kind} core")))
            }
            None => format!("{}, no sign of different speeds", counted_as(class.n_cores(), "core")),
        };
        facts.push(reason("core class", format!("{index}: CPUs {}", class.cpus()), why));
    }
    facts.extend(places(topology));
    facts.push(match topology.quota() {
        None => reason("quota", "none", "no visible cgroup sets one"),
        Some(quota) => {
            let place =
                quota.path().map_or_else(|| "given".to_owned(), |path| path.display().to_string());
            let (time, period) = (quota.quota_us(), quota.period_us());
            let why = format!("{place}: {time} us in every {period} us, rounded down");
            reason(
                "quota",
                format!("{:.2} CPUs, {}", quota.ratio(), counted_as(quota.cpus(), "thread")),
                why,
            )
        }
    });
    facts
}

/// Caches and nodes, where there are several, and CPUs that need care.
fn places(topology: &CpuTopology) -> Vec<Reason> {
    let join = |sets: Vec<String>| {
        let more = if sets.len() > 16 { " ..." } else { "" };
        sets.into_iter().take(16).collect::<Vec<_>>().join(" ") + more
    };
    let mut places = Vec::new();
    let caches = topology.last_level_caches();
    if caches.len() > 1 {
        let sets = caches.iter().map(|cache| cache.cpus().to_string()).collect();
        let why = format!("{} last-level caches; workers fill one after the other", caches.len());
        places.push(reason("caches", join(sets), why));
    }
    let nodes = topology.numa_nodes();
    if nodes.len() > 1 {
        let sets = nodes.iter().map(|node| format!("{}:{}", node.id(), node.cpus())).collect();
        places.push(reason("NUMA nodes", join(sets), format!("{} of them", nodes.len())));
    }
    if !topology.isolated().is_empty() {
        let why = "threads stay where they start unless they are pinned";
        places.push(reason("isolated CPUs", topology.isolated(), why));
    }
    places
}

fn why_perf_cores(topology: &CpuTopology) -> String {
    let found = topology.perf_cores().count();
    let kinds = match topology.cores().len() - found {
        0 => "every core is one".to_owned(),
        efficiency => format!("all but {}", counted_as(efficiency, "efficiency core")),
    };
    match topology.thread_limit() {
        Some(limit) if limit < found => format!("{kinds}, limited to {limit} of {found}"),
        _ => kinds,
    }
}

/// A number with its noun.
fn counted_as(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn variables(count: &ThreadCount) -> Vec<Reason> {
    let why = match count.source {
        ThreadSource::Variable(name) => format!("environment variable {name}"),
        ThreadSource::PerfCores => {
            "as many as performance cores: no variable says otherwise".to_owned()
        }
    };
    let ignored = count.ignored.iter().map(|(name, value)| {
        reason("ignored variable", format!("{name}={value:?}"), "not a number of threads above 0")
    });
    ignored.chain([reason("compute threads", count.threads, why)]).collect()
}

fn workers(plan: &CpuPoolPlan, request: &PlanRequest, topology: &CpuTopology) -> Reason {
    let limit = topology.thread_limit();
    let why = match request.explicit() {
        0 => {
            let slots = request.slots(topology);
            let each = match request.threads_per_each_core() {
                1 => "one".to_owned(),
                n => format!("up to {n}"),
            };
            let kind = if request.takes_all_classes() { "physical" } else { "performance" };
            match limit {
                Some(limit) if limit < slots => {
                    format!("{each} per {kind} core, limited to {limit} of {slots}")
                }
                _ => format!("{each} per {kind} core"),
            }
        }
        count => {
            let throttled = limit.is_some_and(|limit| limit < count);
            let doubled = topology.len() < count && !topology.is_empty();
            let mut why = format!("{count} were asked for");
            if throttled {
                why += ", more than the quota lets run at once";
            }
            if doubled {
                why += ", more than there are CPUs";
            }
            why
        }
    };
    let ids = plan.core_ids.iter().take(64).map(usize::to_string).collect::<Vec<_>>().join(",");
    let more = if plan.core_ids.len() > 64 { ",..." } else { "" };
    reason("workers", format!("{} on CPUs {ids}{more}", plan.num_threads), why)
}

fn coordinator(plan: &CpuPoolPlan, request: &PlanRequest, topology: &CpuTopology) -> Reason {
    match plan.coordinator_cpu {
        Some(cpu) if request.slots(topology) == plan.num_threads => {
            reason("coordinator", format!("CPU {cpu}"), "on a core that no worker has")
        }
        Some(cpu) => {
            reason("coordinator", format!("CPU {cpu}"), "the last core, taken from the workers")
        }
        None if !request.wants_coordinator() => reason("coordinator", "none", "not asked for"),
        None if request.explicit() > 0 => {
            reason("coordinator", "none", "an explicit number of workers is not reduced")
        }
        None => reason("coordinator", "none", "too few workers to give one up"),
    }
}

fn left_over(plan: &CpuPoolPlan, topology: &CpuTopology) -> Reason {
    let left = plan.left_for_library(usize::MAX, topology);
    let cores = physical_core_count_in(topology);
    let used = plan.num_threads + usize::from(plan.coordinator_cpu.is_some());
    let why = format!(
        "{} less {used} of the pool and the calling thread, at least 1",
        counted_as(cores, "usable core")
    );
    reason("left for another library", counted_as(left, "thread"), why)
}
