//! Requests for plans of machines described in code.

use super::*;
use crate::class::{Signal, Speeds};
use crate::places::CacheDomain;
use crate::quota::Quota;
use crate::source::AllowedSource;

/// Cores of these CPUs with this speed each, and last-level caches.
fn machine(cores: &[(&[usize], u64)], caches: &[&[usize]]) -> CpuTopology {
    let siblings = cores
        .iter()
        .flat_map(|(cpus, _)| cpus.iter().map(|cpu| (*cpu, cpus.iter().copied().collect())))
        .collect();
    let number = |signal: Signal, core: &PhysicalCore| {
        let (_, speed) = cores.iter().find(|(cpus, _)| cpus.contains(&core.first_cpu()))?;
        (signal == Signal::CpuCapacity).then_some(*speed)
    };
    let speeds = Speeds { number: Box::new(number), ..Speeds::unknown() };
    let mut topology = CpuTopology::build(&siblings, AllowedSource::Given, &speeds);
    let domain = |cpus: &&[usize]| CacheDomain {
        level: 3,
        cpus: cpus.iter().copied().collect(),
        size: None,
    };
    topology.places.caches = caches.iter().map(domain).collect();
    topology
}

/// Two fast cores of two CPUs, three slow ones.
fn hybrid() -> CpuTopology {
    machine(
        &[(&[0, 1], 1024), (&[2, 3], 1024), (&[4], 400), (&[5], 400), (&[6], 400)],
        &[&[0, 1, 2, 3, 4, 5, 6]],
    )
}

#[test]
fn the_size_is_that_of_performance_cores_within_the_quota() {
    /// Threads per core, all classes, quota in hundredths, CPUs.
    type Case = (usize, bool, Option<u64>, &'static [usize]);
    const CASES: &[Case] = &[
        (1, false, None, &[0, 2]),
        (2, false, None, &[0, 2, 1, 3]),
        (9, false, None, &[0, 2, 1, 3]),
        (0, false, None, &[0, 2]),
        (1, true, None, &[0, 2, 4, 5, 6]),
        (2, true, None, &[0, 2, 4, 5, 6, 1, 3]),
        (2, false, Some(399), &[0, 2, 1]),
        (2, false, Some(150), &[0]),
        (1, false, Some(10), &[0]),
        (1, false, Some(1000), &[0, 2]),
    ];
    for (per_core, all, quota, expected) in CASES {
        let topology = hybrid().with_quota(quota.and_then(|quota| Quota::new(quota, 100)));
        let request = PlanRequest::new().threads_per_core(*per_core).all_classes(*all);
        let plan = request.plan(&topology);
        assert_eq!(plan.core_ids, *expected, "{per_core} per core, all: {all}, quota {quota:?}");
        assert_eq!((plan.num_threads, plan.coordinator_cpu), (expected.len(), None));
    }
}

#[test]
fn explicit_counts_are_honoured_exactly() {
    let topology = hybrid().with_quota(Quota::new(1, 1));
    let ids = |request: &PlanRequest| request.plan(&topology).core_ids;
    let one = PlanRequest::new().reserve_coordinator(true);
    assert_eq!(ids(&one.clone().threads(3)), [0, 2, 4]);
    assert_eq!(ids(&one.clone().threads(9)), [0, 2, 4, 5, 6, 1, 3, 0, 2]);
    // Both CPUs of the fast cores are wanted before slow cores.
    assert_eq!(ids(&one.clone().threads_per_core(2).threads(5)), [0, 2, 1, 3, 4]);
    assert_eq!(one.threads(usize::MAX).plan(&topology).num_threads, MAX_CPU_ID + 1);
    assert_eq!(PlanRequest::new().plan(&CpuTopology::default()).core_ids, [0]);
}

#[test]
fn workers_fill_one_cache_after_the_other() {
    let alternating = machine(
        &[(&[0, 4], 1024), (&[1, 5], 1024), (&[2, 6], 1024), (&[3, 7], 1024)],
        &[&[0, 2, 4, 6], &[1, 3, 5, 7]],
    );
    let plan = PlanRequest::new().threads(8).plan(&alternating);
    assert_eq!(plan.core_ids, [0, 2, 1, 3, 4, 6, 5, 7]);
    // Faster cores first, wherever they are.
    let mixed = machine(
        &[(&[0], 400), (&[1], 1024), (&[2], 1024), (&[3], 400), (&[4], 1024)],
        &[&[0, 4], &[1, 3], &[2]],
    );
    assert_eq!(PlanRequest::new().threads(5).plan(&mixed).core_ids, [4, 1, 2, 0, 3]);
}

#[test]
fn siblings_get_work_rank_by_rank() {
    let power = machine(&[(&[0, 1, 2, 3], 1), (&[4, 5, 6, 7], 1)], &[]);
    let plan = PlanRequest::new().threads(8).plan(&power);
    assert_eq!(plan.core_ids, [0, 4, 1, 5, 2, 6, 3, 7]);
}

#[test]
fn a_coordinator_gets_a_spare_core_or_that_of_the_last_worker() {
    let three_fast =
        || machine(&[(&[0], 1024), (&[1], 1024), (&[2], 1024), (&[3], 400), (&[4], 400)], &[]);
    let request = PlanRequest::new().reserve_coordinator(true);
    /// Whether all classes are wanted, quota, workers, coordinator.
    type Case = (bool, Option<u64>, &'static [usize], Option<usize>);
    const CASES: &[Case] = &[
        (false, None, &[0, 1, 2], Some(3)),
        (false, Some(4), &[0, 1, 2], Some(3)),
        (false, Some(3), &[0, 1], Some(2)),
        (false, Some(2), &[0, 1], None),
        (true, None, &[0, 1, 2, 3], Some(4)),
        (true, Some(4), &[0, 1, 2], Some(3)),
    ];
    for (all, quota, workers, coordinator) in CASES {
        let topology = three_fast().with_quota(quota.and_then(|quota| Quota::new(quota, 1)));
        let plan = request.clone().all_classes(*all).plan(&topology);
        let found = (plan.core_ids.as_slice(), plan.coordinator_cpu);
        assert_eq!(found, (*workers, *coordinator), "all: {all}, quota {quota:?}");
        assert_eq!(plan.num_threads, workers.len());
    }
    assert_eq!(request.plan(&hybrid()).coordinator_cpu, None);
    assert_eq!(request.threads(4).plan(&three_fast()).coordinator_cpu, None);
}

#[test]
fn with_two_workers_per_core_the_coordinator_may_share_a_core() {
    let two_cores = machine(&[(&[0, 1], 1), (&[2, 3], 1)], &[]);
    let plan = PlanRequest::new().threads_per_core(2).reserve_coordinator(true).plan(&two_cores);
    assert_eq!((plan.core_ids.as_slice(), plan.coordinator_cpu), (&[0, 2, 1][..], Some(3)));
}

#[test]
fn variables_decide_where_no_number_was_given() {
    let ours = |value: &'static str| {
        move |name: &str| (name == "FERROX_CPU_THREADS").then(|| OsString::from(value))
    };
    let topology = hybrid();
    let request = PlanRequest::new().variables(ours("5"));
    assert_eq!(request.plan(&topology).num_threads, 5);
    assert_eq!(request.threads(1).plan(&topology).num_threads, 1);
    let junk = PlanRequest::new().variables(ours("five"));
    assert_eq!(junk.plan(&topology).num_threads, 2);
    let report = junk.explain(&topology);
    assert_eq!((report.cpu_threads.threads, report.cpu_threads.ignored.len()), (2, 1));
    assert!(report.reasons.iter().any(|reason| reason.what == "ignored variable"));
}

#[test]
fn a_report_has_the_plan_of_its_request() {
    let requests = [
        PlanRequest::new(),
        PlanRequest::new().threads(40),
        PlanRequest::new().threads_per_core(2).reserve_coordinator(true),
        PlanRequest::new().all_classes(true).reserve_coordinator(true),
    ];
    for topology in [hybrid(), hybrid().with_quota(Quota::new(3, 1)), CpuTopology::default()] {
        for request in &requests {
            let report = request.explain(&topology);
            assert_eq!(report.plan, request.plan(&topology));
            assert_eq!(report.to_string().lines().count(), report.reasons.len());
        }
    }
}
