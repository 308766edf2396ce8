//! Plans for small machines, with and without a quota.

use super::*;
use crate::cpu_list::MAX_CPU_ID;
use crate::quota::Quota;

/// Eight CPUs on four cores, siblings side by side.
fn eight_on_four() -> CpuTopology {
    CpuTopology::from_sibling_lists((0..8).map(|cpu| (cpu, vec![cpu & !1, cpu | 1])))
}

fn singles(n: usize) -> CpuTopology {
    CpuTopology::from_sibling_lists((0..n).map(|cpu| (cpu, vec![cpu])))
}

#[test]
fn threads_and_ids() {
    /// Requested, threads, ids.
    const CASES: &[(usize, usize, &[usize])] = &[
        (0, 4, &[0, 2, 4, 6]),
        (1, 1, &[0]),
        (4, 4, &[0, 2, 4, 6]),
        (6, 6, &[0, 2, 4, 6, 1, 3]),
        (8, 8, &[0, 2, 4, 6, 1, 3, 5, 7]),
        (10, 10, &[0, 2, 4, 6, 1, 3, 5, 7, 0, 2]),
    ];
    for (requested, threads, ids) in CASES {
        assert_eq!(
            resolve_threads_and_affinity_in(*requested, &eight_on_four()),
            (*threads, ids.to_vec())
        );
    }
    assert_eq!(resolve_threads_and_affinity_in(0, &CpuTopology::default()), (1, vec![0]));
    assert_eq!(resolve_threads_and_affinity_in(2, &CpuTopology::default()), (2, vec![0, 0]));
}

#[test]
fn a_count_beyond_reason_is_cut() {
    let (threads, ids) = resolve_threads_and_affinity_in(usize::MAX, &eight_on_four());
    assert_eq!((threads, ids.len()), (MAX_CPU_ID + 1, MAX_CPU_ID + 1));
}

#[test]
fn representatives_are_the_lowest_allowed() {
    let part = CpuTopology::from_sibling_lists([
        (1, vec![0, 1]),
        (3, vec![2, 3]),
        (4, vec![4, 5]),
        (5, vec![4, 5]),
    ]);
    assert_eq!(physical_core_cpus_in(&part), [1, 3, 4]);
    let split =
        (0..2).flat_map(|cpu| [(cpu, vec![cpu, cpu + 64]), (cpu + 64, vec![cpu, cpu + 64])]);
    assert_eq!(physical_core_cpus_in(&CpuTopology::from_sibling_lists(split)), [0, 1]);
    assert_eq!(physical_core_cpus_in(&CpuTopology::default()), [0]);
}

#[test]
fn a_coordinator_takes_the_last_core_of_an_automatic_plan() {
    /// Cores, requested, reserve, ids of the workers, coordinator.
    type Case = (usize, usize, bool, &'static [usize], Option<usize>);
    const CASES: &[Case] = &[
        (4, 0, true, &[0, 1, 2], Some(3)),
        (4, 0, false, &[0, 1, 2, 3], None),
        (3, 0, true, &[0, 1], Some(2)),
        (2, 0, true, &[0, 1], None),
        (1, 0, true, &[0], None),
        (0, 0, true, &[0], None),
        (4, 4, true, &[0, 1, 2, 3], None),
        (4, 3, true, &[0, 1, 2], None),
    ];
    for (cores, requested, reserve, ids, coordinator) in CASES {
        let plan = plan_cpu_pool_in(*requested, *reserve, &singles(*cores));
        assert_eq!(plan.core_ids, *ids, "{cores} cores, {requested} requested");
        assert_eq!(plan.num_threads, ids.len());
        assert_eq!(plan.coordinator_cpu, *coordinator, "{cores} cores, {requested} requested");
    }
}

#[test]
fn a_quota_counts_the_same_everywhere() {
    let topology = singles(16).with_quota(Quota::new(200_000, 100_000));
    assert_eq!(physical_core_count_in(&topology), 2);
    assert_eq!(perf_core_count_in(&topology), 2);
    assert_eq!(resolve_threads_and_affinity_in(0, &topology), (2, vec![0, 1]));
    let plan = plan_cpu_pool_in(0, true, &topology);
    assert_eq!((plan.num_threads, plan.coordinator_cpu), (2, None));
    // The coordinator runs on the same quota: three CPUs' worth are two workers and it.
    let topology = topology.with_quota(Quota::new(399_000, 100_000));
    let plan = plan_cpu_pool_in(0, true, &topology);
    assert_eq!((plan.core_ids, plan.coordinator_cpu), (vec![0, 1], Some(2)));
    // An explicit count is honoured.
    assert_eq!(plan_cpu_pool_in(5, true, &topology).num_threads, 5);
    let tiny = singles(16).with_quota(Quota::new(1, 100_000));
    assert_eq!(plan_cpu_pool_in(0, true, &tiny).num_threads, 1);
    assert_eq!(perf_core_count_in(&CpuTopology::default()), 1);
}

#[test]
fn what_is_left_for_a_library() {
    let plan = |workers: usize, coordinator: Option<usize>| CpuPoolPlan {
        num_threads: workers,
        core_ids: (0..workers).collect(),
        coordinator_cpu: coordinator,
    };
    /// Configured, workers, coordinator, cores, expected.
    const CASES: &[(usize, usize, Option<usize>, usize, usize)] = &[
        (16, 3, Some(3), 16, 11),
        (4, 3, Some(3), 16, 4),
        (4, 3, Some(3), 4, 1),
        (4, 3, Some(3), 0, 1),
        (0, 3, Some(3), 16, 1),
        (16, 3, None, 16, 12),
        (1, 0, None, 16, 1),
        (usize::MAX, 0, None, usize::MAX, usize::MAX - 1),
    ];
    for (configured, workers, coordinator, cores, expected) in CASES {
        let found = clamp_intra_op_threads(*configured, &plan(*workers, *coordinator), *cores);
        assert_eq!(found, *expected, "configured {configured}, {cores} cores");
    }
    let broken = CpuPoolPlan { num_threads: usize::MAX, ..CpuPoolPlan::default() };
    assert_eq!(clamp_intra_op_threads(8, &broken, 8), 1);
}
