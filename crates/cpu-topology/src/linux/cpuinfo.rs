//! `/proc/cpuinfo`: what it says of each processor, in the words of whichever architecture.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::cpu_list::{MAX_CPU_ID, parse_decimal};
use crate::linux::tree::Tree;

/// Enough for the lines of the first processors. The kernel makes up the file as it is read, and asks every CPU for its
/// clock rate on the way, so what is not read costs nothing.
const HEAD_LEN: u64 = 16 << 10;

/// What the file says of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Processor {
    pub(super) package: Option<usize>,
    pub(super) core: Option<usize>,
    /// Implementer and part number of an ARM design.
    pub(super) design: Option<Design>,
}

/// An ARM design: implementer and part number, as in the register MIDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Design {
    pub(super) implementer: u8,
    pub(super) part: u16,
}

impl Design {
    /// The fields of `MIDR_EL1`.
    pub(super) fn of_midr(midr: u64) -> Self {
        Self { implementer: (midr >> 24) as u8, part: (midr >> 4 & 0xFFF) as u16 }
    }
}

/// The processors by id. Old kernels print the design once, after the last processor, whose it then is.
pub(super) fn processors(tree: &Tree) -> BTreeMap<usize, Processor> {
    let mut found = BTreeMap::new();
    let mut current = None;
    let mut implementer = None;
    for line in tree.table("proc/cpuinfo").unwrap_or_default().lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let number = || usize::try_from(parse_decimal(value)?).ok();
        if name.trim() == "processor" {
            (current, implementer) = (number().filter(|id| *id <= MAX_CPU_ID), None);
        }
        let Some(id) = current else { continue };
        let processor: &mut Processor = found.entry(id).or_default();
        match name.trim() {
            "physical id" => processor.package = number(),
            "core id" => processor.core = number(),
            "CPU implementer" => implementer = hex(value).and_then(|id| u8::try_from(id).ok()),
            "CPU part" => {
                let part = hex(value).and_then(|part| u16::try_from(part).ok());
                processor.design =
                    implementer.zip(part).map(|(implementer, part)| Design { implementer, part });
            }
            _ => {}
        }
    }
    found
}

/// Whether the file is one of an ARM machine, and whether its flags are those of a virtual machine (x86 only).
pub(super) struct Head {
    pub(super) is_arm: bool,
    pub(super) hypervisor: Option<bool>,
}

pub(super) fn head(tree: &Tree) -> Head {
    let text = tree.head("proc/cpuinfo", HEAD_LEN).unwrap_or_default();
    let flags = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == "flags")
        .map(|(_, flags)| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"));
    Head {
        is_arm: text.contains("CPU part") || text.contains("CPU implementer"),
        hypervisor: flags,
    }
}

/// A hexadecimal number with its prefix.
pub(super) fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
