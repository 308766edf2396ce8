//! The text of a snapshot: what is read is printed so that it is read again as the same, and is a machine.

#![no_main]

mod support;

use cpu_topology::{AllowedFrom, CpuTopology, Snapshot};
use libfuzzer_sys::fuzz_target;
use support::{check_topology, has_long_range};

fuzz_target!(|text: &str| {
    let Ok(snapshot) = Snapshot::parse(text) else { return };
    let printed = snapshot.to_string();
    assert_eq!(Snapshot::parse(&printed).as_ref(), Ok(&snapshot));
    assert!(printed.len() <= 2 * text.len() + 2);
    if has_long_range(text) {
        return;
    }
    for from in [AllowedFrom::Process, AllowedFrom::Online] {
        check_topology(&CpuTopology::from_snapshot(&snapshot, &from));
    }
});
