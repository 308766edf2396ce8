//! Workers that bind themselves: where they are found, what stays as it was, and what is reported.

#![cfg(any(feature = "rayon", feature = "epoch-pool"))]

use std::sync::Mutex;

use cpu_topology::{CpuPoolPlan, CpuSet, current_thread_affinity, pin_current_thread};
use rowpar::{Placement, WorkerProblem, WorkerSetup};

/// A plan for three threads on the CPUs of this one, and these; `None` where threads cannot be bound.
fn plan() -> Option<(CpuPoolPlan, CpuSet)> {
    let here = current_thread_affinity().ok()?;
    let bindable = std::thread::scope(|scope| {
        scope.spawn(|| pin_current_thread(&here).is_ok()).join().expect("no panic")
    });
    let all: Vec<usize> = here.iter().collect();
    let core_ids = all.iter().copied().cycle().take(3).collect();
    let plan = CpuPoolPlan { num_threads: 3, core_ids, coordinator_cpu: None };
    bindable.then_some((plan, here))
}

/// The CPUs that a worker is to be found on.
fn expected(plan: &CpuPoolPlan, placement: Placement, worker: usize, here: &CpuSet) -> CpuSet {
    match placement {
        Placement::Set => plan.core_ids.iter().copied().collect(),
        Placement::OnePerCore => [plan.core_ids[worker]].into_iter().collect(),
        _ => here.clone(),
    }
}

const POLICIES: [Placement; 3] = [Placement::None, Placement::Set, Placement::OnePerCore];

/// Runs a job that says for each worker on which CPUs it may run.
type Look<'a> = &'a dyn Fn(&WorkerSetup) -> Vec<(usize, CpuSet)>;

fn check(look: Look<'_>) {
    let Some((plan, here)) = plan() else { return };
    for placement in POLICIES {
        let setup = WorkerSetup::new(plan.clone()).placement(placement);
        let found = look(&setup);
        assert!(found.len() >= 2, "{found:?}");
        for (worker, cpus) in found {
            assert_eq!(cpus, expected(&plan, placement, worker, &here), "{placement:?} {worker}");
        }
        assert!(setup.take_problems().is_empty());
        assert_eq!(current_thread_affinity().expect("was read before"), here, "the caller's own");
    }
}

/// The problems of workers that are told to run on CPUs that no machine has, and still do their work.
fn check_problems(look: Look<'_>) {
    let core_ids = vec![cpu_topology::MAX_CPU_ID; 3];
    let plan = CpuPoolPlan { num_threads: 3, core_ids, coordinator_cpu: None };
    for placement in [Placement::Set, Placement::OnePerCore] {
        let setup = WorkerSetup::new(plan.clone()).placement(placement);
        let workers: Vec<usize> = look(&setup).into_iter().map(|(worker, _)| worker).collect();
        let mut reported: Vec<usize> = setup
            .take_problems()
            .into_iter()
            .filter_map(|problem| match problem {
                WorkerProblem::Placement { worker, .. } => Some(worker),
                _ => None,
            })
            .collect();
        reported.sort_unstable();
        assert_eq!(reported, workers, "{placement:?}");
        assert!(setup.take_problems().is_empty(), "they were taken");
    }
}

/// Of each worker and its CPUs, in order.
fn sorted(found: Mutex<Vec<(usize, CpuSet)>>) -> Vec<(usize, CpuSet)> {
    let mut found = found.into_inner().expect("no panic");
    found.sort_unstable_by_key(|(worker, _)| *worker);
    found
}

fn here() -> CpuSet {
    current_thread_affinity().unwrap_or_default()
}

#[cfg(feature = "rayon")]
fn on_rayon(setup: &WorkerSetup) -> Vec<(usize, CpuSet)> {
    let pool = setup.rayon_builder().build().expect("threads can be spawned");
    let found = Mutex::new(Vec::new());
    pool.broadcast(|context| found.lock().unwrap().push((context.index(), here())));
    sorted(found)
}

#[cfg(feature = "epoch-pool")]
fn on_epoch_pool(setup: &WorkerSetup) -> Vec<(usize, CpuSet)> {
    let pool = setup.epoch_builder().build().expect("threads can be spawned");
    let found = Mutex::new(Vec::new());
    // The caller is participant 0, and no worker.
    pool.run(|participant, _| {
        if participant > 0 {
            found.lock().unwrap().push((participant, here()));
        }
    });
    sorted(found)
}

#[test]
fn a_caller_is_bound_as_participant_0_until_it_is_let_go() {
    let Some((plan, before)) = plan() else { return };
    for placement in POLICIES {
        let setup = WorkerSetup::new(plan.clone()).placement(placement);
        let bound = setup.bind_caller().expect("its own CPUs");
        assert_eq!(bound.is_some(), placement != Placement::None);
        assert_eq!(here(), expected(&plan, placement, 0, &before), "{placement}");
        drop(bound);
        assert_eq!(here(), before, "{placement}");
    }
    let nowhere = WorkerSetup::new(CpuPoolPlan::default()).placement(Placement::OnePerCore);
    assert!(nowhere.bind_caller().is_err());
    assert_eq!(here(), before);
}

#[test]
#[cfg(feature = "rayon")]
fn workers_of_rayon_are_where_they_belong() {
    check(&on_rayon);
    check_problems(&on_rayon);
}

#[test]
#[cfg(feature = "epoch-pool")]
fn workers_of_epoch_pool_are_where_they_belong() {
    check(&on_epoch_pool);
    check_problems(&on_epoch_pool);
}
