//! `cargo xtask topology`: what this machine looks like and what pool follows, with the reasons.

use std::fmt::Write;

use crate::output::print;
use cpu_topology::{CpuTopology, PlanRequest, Reason, draw_tree};

/// Prints the tree, the plan and the notes.
pub(crate) fn run() -> anyhow::Result<()> {
    let topology = CpuTopology::detect();
    let request = PlanRequest::new().variables(|name| std::env::var_os(name));
    let report = request.explain(&topology);
    print("This machine, as this process may use it (*: a CPU of a worker)");
    print(&draw_tree(&topology, &report.plan));
    print(&format!("The pool that follows\n{}", reasons(&report.reasons)));
    let with_coordinator = request.reserve_coordinator(true).explain(&topology);
    let differences = changed(&report.reasons, with_coordinator.reasons);
    print(&format!("With a core kept free for a coordinator:\n{differences}"));
    for note in topology.notes() {
        print(&format!("note: {note}"));
    }
    Ok(())
}

/// One line per reason, in columns.
fn reasons(reasons: &[Reason]) -> String {
    let width = |text: fn(&Reason) -> usize| reasons.iter().map(text).max().unwrap_or(0);
    let what_width = width(|reason| reason.what.chars().count());
    let value_width = width(|reason| reason.value.chars().count()).min(24);
    let mut text = String::new();
    for Reason { what, value, why, .. } in reasons {
        let _ = writeln!(text, "  {what:what_width$}  {value:value_width$}  {why}");
    }
    text
}

/// The lines that differ.
fn changed(without: &[Reason], with: Vec<Reason>) -> String {
    let changed: Vec<Reason> =
        with.into_iter().filter(|reason| !without.contains(reason)).collect();
    match changed.as_slice() {
        [] => "  the same".into(),
        changed => reasons(changed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_gets_a_line() {
        let topology = CpuTopology::from_sibling_lists((0..4).map(|cpu| (cpu, vec![cpu])));
        let report = PlanRequest::new().explain(&topology);
        assert_eq!(reasons(&report.reasons).lines().count(), report.reasons.len());
    }

    #[test]
    fn only_what_differs_is_told_again() {
        let explain = |n_cores: usize, coordinator: bool| {
            let cores = (0..n_cores).map(|cpu| (cpu, vec![cpu]));
            let request = PlanRequest::new().reserve_coordinator(coordinator);
            request.explain(&CpuTopology::from_sibling_lists(cores)).reasons
        };
        let reserved = changed(&explain(4, false), explain(4, true));
        assert!(reserved.contains("coordinator  CPU 3"), "{reserved}");
        assert!(!reserved.contains("allowed CPUs"), "{reserved}");
        assert_eq!(changed(&explain(1, false), explain(1, false)), "  the same");
    }
}
