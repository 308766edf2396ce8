//! FreeBSD's groups of CPUs: pieces of XML in any order, under any affinity mask.

#![no_main]

mod support;

use cpu_topology::{CpuSet, CpuTopology, SysctlSource};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    pieces: Vec<Piece>,
    n_cpus: Option<Vec<u8>>,
    mask: Option<Vec<u16>>,
}

#[derive(Arbitrary, Debug)]
enum Piece {
    Open(u8),
    Close,
    Cpus(Vec<(u16, u8)>),
    Flag(u8),
    Raw(String),
}

const FLAGS: [&str; 5] = ["THREAD", "SMT", "HTT", "NODE", "OTHER"];

struct Played<'a> {
    text: String,
    n_cpus: Option<&'a [u8]>,
}

impl SysctlSource for Played<'_> {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        match name {
            "kern.sched.topology_spec" => Some(self.text.clone().into_bytes()),
            "kern.smp.cpus" => self.n_cpus.map(<[u8]>::to_vec),
            _ => None,
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(input) = Unstructured::new(data).arbitrary::<Input>() else { return };
    let text = input.pieces.iter().map(Piece::text).collect();
    let source = Played { text, n_cpus: input.n_cpus.as_deref() };
    let mask = input
        .mask
        .as_ref()
        .map(|cpus| cpus.iter().map(|cpu| usize::from(*cpu)).collect::<CpuSet>());
    let topology = CpuTopology::from_freebsd(&source, mask.as_ref());
    match mask.filter(|mask| !mask.is_empty()) {
        Some(mask) => assert_eq!(*topology.allowed_set(), mask),
        None => assert!(topology.len() <= 4096),
    }
    support::check_topology(&topology);
});

impl Piece {
    fn text(&self) -> String {
        match self {
            Self::Open(level) => format!("<group level=\"1\" cache-level=\"{level}\">\n"),
            Self::Close => "</group>".to_owned(),
            Self::Cpus(ranges) => {
                let range = |&(first, more): &(u16, u8)| {
                    format!("{first}-{}", u32::from(first) + u32::from(more))
                };
                let ranges = ranges.iter().map(range).collect::<Vec<_>>().join(", ");
                format!("<cpu count=\"1\" mask=\"f\">{ranges}</cpu>")
            }
            Self::Flag(index) => {
                format!(
                    "<flag name=\"{}\">a group</flag>",
                    FLAGS[usize::from(*index) % FLAGS.len()]
                )
            }
            Self::Raw(text) => text.clone(),
        }
    }
}
