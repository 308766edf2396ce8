//! Apple's performance levels: any values under any of the names that are asked for.

#![no_main]

mod support;

use std::collections::BTreeMap;

use cpu_topology::{CpuTopology, SysctlSource};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Value {
    Small(u8),
    Four(i32),
    Eight(i64),
    Name(u8),
    Raw(Vec<u8>),
}

const NAMES: [&str; 5] = ["Super\0", "Performance\0", "Efficiency\0", "\0", "efficiency"];
const OF_LEVEL: [&str; 5] = ["physicalcpu", "logicalcpu", "name", "cpusperl2", "l2cachesize"];
const OF_MACHINE: [&str; 6] = [
    "hw.nperflevels",
    "hw.physicalcpu",
    "hw.logicalcpu",
    "hw.ncpu",
    "kern.hv_vmm_present",
    "sysctl.proc_translated",
];

struct Played(BTreeMap<String, Vec<u8>>);

impl SysctlSource for Played {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.0.get(name).cloned()
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(values) = Unstructured::new(data).arbitrary::<Vec<(Option<u8>, u8, Value)>>() else {
        return;
    };
    let name = |level: Option<u8>, index: u8| match level {
        Some(level) => {
            format!("hw.perflevel{}.{}", level % 66, OF_LEVEL[usize::from(index) % OF_LEVEL.len()])
        }
        None => OF_MACHINE[usize::from(index) % OF_MACHINE.len()].to_owned(),
    };
    let values = values.iter().map(|(level, index, value)| (name(*level, *index), value.bytes()));
    let topology = CpuTopology::from_sysctl(&Played(values.collect()));
    assert!(topology.len() <= 4096 && !topology.ids_are_real());
    support::check_topology(&topology);
});

impl Value {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Small(number) => i32::from(*number).to_ne_bytes().to_vec(),
            Self::Four(number) => number.to_ne_bytes().to_vec(),
            Self::Eight(number) => number.to_ne_bytes().to_vec(),
            Self::Name(index) => NAMES[usize::from(*index) % NAMES.len()].as_bytes().to_vec(),
            Self::Raw(bytes) => bytes.clone(),
        }
    }
}
