//! What several targets check.

#![allow(dead_code, reason = "each target uses its own part")]

#[path = "../../../crates/cpu-topology/tests/common/invariants.rs"]
mod invariants;

use cpu_topology::{CpuTopology, MAX_CPU_ID};

/// Larger machines are read, and not looked at from all sides.
const MANY: usize = 2048;

/// Whether it was looked at from all sides, and found sound.
pub(crate) fn check_topology(topology: &CpuTopology) -> bool {
    let is_small = topology.len() <= MANY;
    if is_small {
        invariants::check_invariants(topology);
    }
    is_small
}

/// Whether a range in this text may name very many CPUs. Up to a million are read, in a second and more: that is linear, and no
/// news to a fuzzer.
pub(crate) fn has_long_range(text: &str) -> bool {
    let ends = text.split('-').skip(1);
    let number = |end: &str| {
        let end = end.trim_start_matches([' ', '\t', '\n', '\r', '\x0C', '\0', '\\', 'n']);
        let digits = end.split(|character: char| !character.is_ascii_digit()).next()?;
        digits.parse::<usize>().ok()
    };
    ends.filter_map(number).any(|end| (10_000..=MAX_CPU_ID).contains(&end))
}
