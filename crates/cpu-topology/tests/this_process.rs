//! What the crate says about the process it runs in, on whatever machine that is.

mod common;

use std::env;
use std::process::Command;
use std::thread::available_parallelism;

use common::check_invariants;
use cpu_topology::{
    CpuTopology, Note, explain_cpu_pool, perf_core_count, perf_core_count_in, physical_core_count,
    physical_core_cpus, plan_cpu_pool, plan_cpu_pool_in, process_affinity_cpus,
    resolve_cpu_threads, resolve_threads_and_affinity,
};

#[test]
fn the_topology_of_this_process_is_sound() {
    let topology = CpuTopology::detect();
    check_invariants(&topology);
    assert!(!topology.is_empty());
    if topology.ids_are_real() {
        assert_eq!(topology.allowed_cpus(), process_affinity_cpus());
    }
}

#[test]
fn all_functions_count_the_same() {
    let parallelism = available_parallelism().map_or(1, |n| n.get());
    let cores = physical_core_count();
    // The standard library counts one processor group of Windows.
    let groups = |note: &Note| matches!(note, Note::SeveralGroups { .. });
    let all_counted = !CpuTopology::detect().notes().iter().any(groups);
    assert!(cores >= 1 && (cores <= parallelism || !all_counted));
    assert!((1..=cores).contains(&perf_core_count()));
    assert!(cores <= physical_core_cpus().len());
    assert_eq!(resolve_threads_and_affinity(0).0, cores);
    assert_eq!(plan_cpu_pool(0, false).num_threads, cores);
    let topology = CpuTopology::detect();
    assert_eq!(perf_core_count_in(&topology), perf_core_count());
    assert_eq!(plan_cpu_pool_in(0, true, &topology), plan_cpu_pool(0, true));
}

#[test]
fn a_report_agrees_with_the_functions() {
    for (requested, reserve) in [(0, false), (0, true), (3, true)] {
        let report = explain_cpu_pool(requested, reserve);
        assert_eq!(report.plan, plan_cpu_pool(requested, reserve));
        assert_eq!(report.physical_cores, physical_core_count());
        assert_eq!(report.perf_cores, perf_core_count());
        assert_eq!(report.to_string().lines().count(), report.reasons.len());
    }
}

/// The part of the next test that runs in a process of its own, with other variables.
#[test]
fn in_a_child() {
    if let Ok(expected) = env::var("CPU_TOPOLOGY_TEST_THREADS") {
        let expected = expected.parse::<usize>().expect("a number");
        for _ in 0..3 {
            let found = resolve_cpu_threads();
            assert_eq!(found, if expected == 0 { perf_core_count() } else { expected });
        }
    }
}

#[test]
fn variables_decide_and_junk_in_them_is_reported_once() {
    /// Ours, rayon's, threads (0: as many as there are performance cores), reports about ours.
    type Case = (Option<&'static str>, Option<&'static str>, usize, usize);
    const CASES: &[Case] = &[
        (None, None, 0, 0),
        (Some("3"), Some("5"), 3, 0),
        (Some("abc"), Some("5"), 5, 1),
        (Some("-1"), None, 0, 1),
    ];
    for (ours, rayon, threads, reports) in CASES {
        let mut child = Command::new(env::current_exe().expect("this program"));
        child
            .args(["--exact", "in_a_child", "--nocapture"])
            .env("CPU_TOPOLOGY_TEST_THREADS", threads.to_string());
        for (name, value) in [("FERROX_CPU_THREADS", ours), ("RAYON_NUM_THREADS", rayon)] {
            match value {
                Some(value) => child.env(name, value),
                None => child.env_remove(name),
            };
        }
        let output = child.output().expect("a child");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{ours:?}, {rayon:?}: {errors}");
        assert_eq!(
            errors.matches("FERROX_CPU_THREADS").count(),
            *reports,
            "{ours:?}, {rayon:?}: {errors}"
        );
    }
}
