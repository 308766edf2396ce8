//! What befalls a pool in a process that lives long and does not belong to it alone: the table "In a server" of the README, line by
//! line. What needs processes of its own is in `tests/server_processes.rs`.

#![cfg(all(feature = "rayon", feature = "epoch-pool"))]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    thread,
};

use cpu_qos::{Current, QosClass};
use cpu_topology::{
    CpuPoolPlan, CpuSet, current_thread_affinity, pin_current_thread, plan_cpu_pool,
};
use rowpar::{Placement, RowPool, WorkerSetup, for_each_range_mut};

/// Runs a test on a thread of its own, so that what it does to its thread is gone with it.
fn on_a_thread<R: Send>(test: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(test).join().expect("the thread does not panic"))
}

/// A plan for three participants, on the CPUs of this process.
fn three() -> CpuPoolPlan {
    plan_cpu_pool(3, false)
}

/// What `look` finds on each worker of each pool that there is a builder for.
fn on_workers<R: Send>(setup: &WorkerSetup, look: impl Fn() -> R + Sync) -> Vec<R> {
    let found = Mutex::new(Vec::new());
    let epoch = setup.epoch_builder().build().expect("threads can be spawned");
    epoch.run(|participant, _| {
        if participant > 0 {
            found.lock().unwrap().push(look());
        }
    });
    let rayon = setup.rayon_builder().build().expect("threads can be spawned");
    rayon.broadcast(|_| found.lock().unwrap().push(look()));
    found.into_inner().unwrap()
}

/// Checks that a pool does its work.
fn check(pool: &dyn RowPool) {
    let mut out = vec![0; 1000];
    for_each_range_mut(pool, &mut out, 1, |rows, out| {
        out.iter_mut().zip(rows).for_each(|(out, row)| *out = row);
    });
    assert!(out.iter().copied().eq(0..1000));
}

#[test]
fn on_a_demoted_thread_workers_are_raised_and_the_thread_is_not() {
    let class = |class| Current::Class { class, relative_priority: 0 };
    on_a_thread(|| {
        let is_demoted = cpu_qos::set_current(QosClass::Background).is_ok();
        let before = cpu_qos::current();
        let setup = WorkerSetup::new(three());
        let expected = match is_demoted {
            true => class(QosClass::UserInitiated),
            false => Current::Unsupported,
        };
        let found = on_workers(&setup, cpu_qos::current);
        assert_eq!(found, vec![expected; 5]);
        assert!(setup.take_problems().is_empty());
        assert_eq!(cpu_qos::current(), before);
    });
}

/// Linux has no classes; what it has is inherited.
#[test]
fn a_scheduling_policy_is_that_of_the_thread_that_builds() {
    use cpu_qos::linux::{Policy, policy, set_policy};
    on_a_thread(|| {
        let is_set = set_policy(Policy::Batch).is_ok();
        let here = policy();
        assert!(!is_set || here == Ok(Some(Policy::Batch)));
        assert_eq!(on_workers(&WorkerSetup::new(three()), policy), vec![here; 5]);
    });
}

/// What OpenMP's libraries do to a thread that has taken part in a region of theirs, with `OMP_PROC_BIND` or without.
#[test]
fn under_a_narrowed_mask_the_plan_is_of_the_process_and_only_placed_workers_are_where_it_says() {
    let plan_before = on_a_thread(|| plan_cpu_pool(3, false));
    let cpus_before = cpu_topology::process_affinity_cpus();
    on_a_thread(|| {
        let Ok(here) = current_thread_affinity() else { return };
        let narrow: CpuSet = here.first().into_iter().collect();
        let Ok(guard) = pin_current_thread(&narrow) else { return };
        guard.keep();
        assert_eq!(plan_cpu_pool(3, false), plan_before);
        assert_eq!(cpu_topology::process_affinity_cpus(), cpus_before);

        let find = |placement| {
            let setup = WorkerSetup::new(three()).placement(placement);
            let found = on_workers(&setup, || current_thread_affinity().expect("was read before"));
            assert!(setup.take_problems().is_empty(), "{placement}");
            assert_eq!(current_thread_affinity().expect("was read before"), narrow, "{placement}");
            found
        };
        let planned: CpuSet = plan_before.core_ids.iter().copied().collect();
        assert_eq!(find(Placement::None), vec![narrow.clone(); 5], "inherited");
        assert_eq!(find(Placement::Set), vec![planned.clone(); 5]);
        for cpus in find(Placement::OnePerCore) {
            assert!(cpus.len() == 1 && cpus.is_subset(&planned), "{cpus}");
        }
    });
}

#[test]
fn a_pool_is_built_used_and_outlived_in_blocking_tasks() {
    // One blocking thread, so that each task finds what the one before has left behind on it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()
        .expect("a runtime without drivers needs nothing");
    let setup = Arc::new(WorkerSetup::new(three()).placement(Placement::OnePerCore));
    let run = |task: Box<dyn FnOnce() + Send>| runtime.block_on(runtime.spawn_blocking(task));

    let built = {
        let setup = setup.clone();
        let build =
            move || Arc::new(setup.epoch_builder().build().expect("threads can be spawned"));
        runtime.block_on(runtime.spawn_blocking(build)).expect("no panic")
    };
    let (pool, before) = (built.clone(), current_thread_affinity().ok());
    run(Box::new(move || {
        // Where threads cannot be bound there is nothing to give back.
        let bound = setup.bind_caller();
        check(&*pool);
        drop(bound);
    }))
    .expect("no panic");

    let pool = built.clone();
    let panicked = run(Box::new(move || pool.run_rows(1000, |_| panic!("on purpose"))));
    assert!(panicked.expect_err("the job panicked").is_panic());

    let pool = built.clone();
    run(Box::new(move || {
        assert_eq!(
            current_thread_affinity().ok(),
            before,
            "the runtime's thread got its CPUs back"
        );
        check(&*pool);
    }))
    .expect("the pool has survived a panic");

    drop(runtime);
    check(&*built);
    let pool = Arc::into_inner(built).expect("the tasks are gone");
    assert!(catch_unwind(AssertUnwindSafe(|| drop(pool))).is_ok());
}
