//! `cargo xtask topology`: what this machine looks like and what pool follows, with the reasons.

use std::fmt::Write;

use crate::output::print;
use cpu_topology::{CpuTopology, Reason, explain_cpu_pool, resolve_threads_and_affinity_in};

/// Prints the tree, the plan and the notes.
pub(crate) fn run() -> anyhow::Result<()> {
    let report = explain_cpu_pool(0, false);
    print(&format!("This machine, as this process may use it\n{}", tree(&report.topology)));
    print(&format!("The pool that follows\n{}", reasons(&report.reasons)));
    let (threads, cpus) =
        resolve_threads_and_affinity_in(report.cpu_threads.threads, &report.topology);
    if cpus != report.plan.core_ids {
        print(&format!(
            "A pool of {threads} compute threads, pinned, would take CPUs {}.",
            list(&cpus)
        ));
    }
    print(&format!("With a core kept free for a coordinator:\n{}", coordinator_plan()));
    for note in report.topology.notes() {
        print(&format!("note: {note}"));
    }
    Ok(())
}

/// Core classes, their physical cores, and the logical CPUs of each.
fn tree(topology: &CpuTopology) -> String {
    let mut text = String::new();
    for (class, facts) in topology.classes().iter().enumerate() {
        let kind = if facts.is_efficiency() { "efficiency" } else { "performance" };
        let label = facts.label().map(|label| format!(" \"{label}\"")).unwrap_or_default();
        let _ = writeln!(text, "  class {class}{label}: {} {kind} cores", facts.n_cores());
        for core in topology.cores().iter().filter(|core| core.class() == class) {
            let others = core.siblings_total().saturating_sub(core.cpus().len());
            let others = match others {
                0 => String::new(),
                n => format!(" (and {n} that this process may not use)"),
            };
            let plural = if core.cpus().len() == 1 { "" } else { "s" };
            let _ = writeln!(text, "    core of CPU{plural} {}{others}", core.cpus());
        }
    }
    text
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

/// The lines that differ when a coordinator gets a core of its own.
fn coordinator_plan() -> String {
    let without = explain_cpu_pool(0, false).reasons;
    let with = explain_cpu_pool(0, true).reasons;
    let changed: Vec<Reason> =
        with.into_iter().filter(|reason| !without.contains(reason)).collect();
    match changed.as_slice() {
        [] => "  the same".into(),
        changed => reasons(changed),
    }
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_shows_cores_and_what_is_withheld() {
        let topology =
            CpuTopology::from_sibling_lists([(0, vec![0, 4]), (1, vec![1, 5]), (4, vec![0, 4])]);
        let expected = "  class 0: 2 performance cores\n    core of CPUs 0,4\n    \
                        core of CPU 1 (and 1 that this process may not use)\n";
        assert_eq!(tree(&topology), expected);
    }

    #[test]
    fn every_reason_gets_a_line() {
        let report = explain_cpu_pool(0, false);
        assert_eq!(reasons(&report.reasons).lines().count(), report.reasons.len());
    }
}
