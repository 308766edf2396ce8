//! What holds for every topology, whatever it was read from. Fuzz targets check it as well.

use std::collections::BTreeSet;

use cpu_topology::{
    CpuGroup, CpuSet, CpuTopology, PlanRequest, perf_core_count_in, physical_core_count_in,
    physical_core_cpus_in, plan_cpu_pool_in,
};

/// What holds for every topology.
#[track_caller]
pub(crate) fn check_invariants(topology: &CpuTopology) {
    let allowed = topology.allowed_cpus();
    assert!(allowed.is_sorted_by(|left, right| left < right));
    assert_eq!(allowed.len(), topology.len());

    // Cores are a partition of the allowed CPUs, in the order of their lowest one; classes are one of the cores.
    let mut in_cores =
        topology.cores().iter().flat_map(|core| core.cpus().iter()).collect::<Vec<_>>();
    in_cores.sort_unstable();
    assert_eq!(in_cores, allowed);
    let mut in_classes =
        topology.classes().iter().flat_map(|class| class.cpus().iter()).collect::<Vec<_>>();
    in_classes.sort_unstable();
    assert_eq!(in_classes, allowed);
    assert!(topology.cores().is_sorted_by(|left, right| left.first_cpu() < right.first_cpu()));
    for core in topology.cores() {
        assert!(!core.cpus().is_empty() && core.siblings_total() >= core.cpus().len());
        assert!(topology.classes()[core.class()].cpus().contains(core.first_cpu()));
    }
    let n_cores = topology.classes().iter().map(|class| class.n_cores()).sum::<usize>();
    assert_eq!(n_cores, topology.cores().len());
    assert!(topology.classes().iter().all(|class| class.n_cores() > 0));
    assert_eq!(topology.is_empty(), topology.perf_cores().next().is_none());
    assert_eq!(topology.class_signal().is_some(), topology.classes().len() > 1);

    // Caches, nodes, packages: disjoint sets of allowed CPUs, in the order of their lowest one.
    let of =
        |groups: &[CpuGroup]| groups.iter().map(|group| group.cpus().clone()).collect::<Vec<_>>();
    let caches = topology.last_level_caches().iter().map(|cache| cache.cpus().clone()).collect();
    let places = [of(topology.packages()), of(topology.dies()), of(topology.clusters())];
    for sets in places.into_iter().chain([of(topology.numa_nodes()), caches]) {
        let mut members = sets.iter().flat_map(|set| set.iter()).collect::<Vec<_>>();
        let n_members = members.len();
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), n_members, "a CPU in two sets of {sets:?}");
        assert!(members.iter().all(|cpu| topology.allowed_set().contains(*cpu)));
        assert!(sets.is_sorted_by_key(|set| set.first()) && sets.iter().all(|set| !set.is_empty()));
    }
    assert!(topology.isolated().is_subset(topology.allowed_set()));

    // Counts and plans stay inside.
    let limit = topology.thread_limit().unwrap_or(usize::MAX);
    let physical = physical_core_count_in(topology);
    assert!((1..=limit).contains(&physical) && physical <= topology.cores().len().max(1));
    assert!((1..=physical).contains(&perf_core_count_in(topology)));
    assert_eq!(physical_core_cpus_in(topology).len(), topology.cores().len().max(1));
    for requested in [0, 1, 3, 4 * allowed.len()] {
        for reserve in [false, true] {
            let plan = plan_cpu_pool_in(requested, reserve, topology);
            assert_eq!(plan.num_threads, plan.core_ids.len());
            assert!(plan.num_threads >= 1);
            let used = plan.core_ids.iter().chain(&plan.coordinator_cpu);
            assert!(
                used.clone()
                    .all(|cpu| topology.allowed_set().contains(*cpu) || topology.is_empty())
            );
            if requested == 0 {
                let total = plan.num_threads + usize::from(plan.coordinator_cpu.is_some());
                assert_eq!(total, physical);
                assert_eq!(used.collect::<BTreeSet<_>>().len(), total);
            } else {
                assert_eq!(plan.num_threads, requested);
            }
        }
    }
    for (per_core, all, coordinator) in [(1, false, false), (2, false, true), (0, true, true)] {
        let request = PlanRequest::new().threads_per_core(per_core).all_classes(all);
        check_request(topology, &request.reserve_coordinator(coordinator), limit);
    }
}

/// A plan stays inside of the machine and its quota, and an explicit count is honoured exactly.
#[track_caller]
fn check_request(topology: &CpuTopology, request: &PlanRequest, limit: usize) {
    let plan = request.plan(topology);
    let used = plan.core_ids.iter().chain(&plan.coordinator_cpu).copied().collect::<Vec<_>>();
    let distinct = used.iter().copied().collect::<CpuSet>();
    assert_eq!((plan.num_threads, used.len()), (plan.core_ids.len(), distinct.len()));
    assert!(plan.num_threads >= 1 && used.len() <= limit);
    assert!(topology.is_empty() || distinct.is_subset(topology.allowed_set()));
    // What was found out beside it does not move a worker: the same request makes the same plan.
    assert_eq!(request.explain(topology).plan, plan);
    for threads in [2, topology.len() + 1] {
        let plan = request.clone().threads(threads).plan(topology);
        assert_eq!((plan.num_threads, plan.coordinator_cpu), (threads, None));
        let distinct = plan.core_ids.iter().copied().collect::<CpuSet>();
        // A CPU has a second worker only if each has one.
        assert_eq!(distinct.len(), threads.min(topology.len().max(1)));
    }
}
