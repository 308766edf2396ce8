//! Records of Windows: bytes of any content, and records that are whole with any content.

#![no_main]

mod support;

use cpu_topology::{CpuTopology, GroupMask, WindowsFacts};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    records: Vec<Record>,
    is_32_bit: bool,
    affinity: Vec<(u8, u64)>,
    cpu_rate: Option<(u32, u32)>,
}

#[derive(Arbitrary, Debug)]
enum Record {
    /// Core, package, die or module: efficiency class and masks.
    Processor(u8, u8, Vec<(u8, u64)>),
    Cache(u8, u8, u32, (u8, u64)),
    Node(u8, bool, Vec<(u8, u64)>),
    Groups(Vec<u64>),
    /// A relationship and what follows, of the size that is said.
    Whole(u32, Vec<u8>),
    /// Anything.
    Raw(Vec<u8>),
}

fuzz_target!(|data: &[u8]| {
    let Ok(input) = Unstructured::new(data).arbitrary::<Input>() else { return };
    let mask_len = if input.is_32_bit { 4 } else { 8 };
    let affinity =
        input.affinity.iter().map(|&(group, mask)| GroupMask { group: group.into(), mask });
    let mut facts = WindowsFacts::default();
    facts.records = input.records.iter().flat_map(|record| record.bytes(mask_len)).collect();
    facts.is_32_bit = input.is_32_bit;
    facts.affinity = affinity.collect();
    facts.cpu_rate = input.cpu_rate;
    let topology = CpuTopology::from_windows(&facts);
    // 16 bytes name at most 64 processors.
    assert!(topology.len() <= 64 * (facts.records.len() / 8 + 1));
    support::check_topology(&topology);
});

impl Record {
    /// Fields where Microsoft's documentation has them, in records that are longer for it where the lengths of arrays say so.
    fn bytes(&self, mask_len: usize) -> Vec<u8> {
        let (kind, body) = match self {
            Self::Raw(bytes) => return bytes.clone(),
            Self::Whole(kind, body) => (*kind, body.clone()),
            Self::Processor(kind, class, masks) => {
                let mut body = vec![0; 24];
                body[1] = *class;
                body[22..].copy_from_slice(&(masks.len() as u16).to_le_bytes());
                body.extend(affinities(masks, mask_len));
                (u32::from([0_u8, 3, 5, 7][usize::from(kind % 4)]), body)
            }
            Self::Cache(level, kind, size, mask) => {
                let mut body = vec![0; 32];
                body[0] = *level;
                body[4..8].copy_from_slice(&size.to_le_bytes());
                body[8] = kind % 4;
                body.extend(affinities(&[*mask], mask_len));
                (2, body)
            }
            Self::Node(number, is_new, masks) => {
                let mut body = vec![0; 24];
                body[0] = *number;
                body[22..].copy_from_slice(&(masks.len() as u16).to_le_bytes());
                body.extend(affinities(masks, mask_len));
                (if *is_new { 6 } else { 1 }, body)
            }
            Self::Groups(masks) => {
                let mut body = vec![0; 24];
                body[2..4].copy_from_slice(&(masks.len() as u16).to_le_bytes());
                for mask in masks {
                    body.extend([0; 40]);
                    body.extend(&mask.to_le_bytes()[..mask_len]);
                }
                (4, body)
            }
        };
        let size = (8 + body.len()) as u32;
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), &body].concat()
    }
}

fn affinities(masks: &[(u8, u64)], mask_len: usize) -> Vec<u8> {
    let bytes = masks.iter().flat_map(|(group, mask)| {
        let group = u16::from(*group).to_le_bytes();
        [&mask.to_le_bytes()[..mask_len], &group, &[0; 6]].concat()
    });
    bytes.collect()
}
