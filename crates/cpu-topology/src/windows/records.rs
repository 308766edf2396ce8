//! The records of `SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX`, out of bytes of any content.
//!
//! Each starts with its relationship and its size in bytes, 4 bytes each; what follows is by Microsoft's documentation of
//! the structures `PROCESSOR_RELATIONSHIP`, `CACHE_RELATIONSHIP`, `NUMA_NODE_RELATIONSHIP` and `GROUP_RELATIONSHIP`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::cpu_set::CpuSet;
use crate::windows::GroupMask;

/// `RelationProcessorCore` and so on.
const CORE: u32 = 0;
const NODE: u32 = 1;
const CACHE: u32 = 2;
const PACKAGE: u32 = 3;
const GROUP: u32 = 4;
const DIE: u32 = 5;
/// What is asked for; the records of the answer are of the kind `NODE`.
const NODE_EX: u32 = 6;
const MODULE: u32 = 7;

/// Groups from this number on are not believed: Windows has a few dozen at most, and bytes of any content could name
/// enough processors to keep a computer busy.
const MAX_GROUPS: u16 = 256;

/// `CacheInstruction`.
const INSTRUCTION_CACHE: u32 = 1;

/// A core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Core {
    pub(super) cpus: CpuSet,
    /// Higher is faster.
    pub(super) efficiency_class: u8,
}

/// A cache that is not one of instructions only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cache {
    pub(super) level: u8,
    pub(super) size: u32,
    pub(super) cpus: CpuSet,
}

/// What the records say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    pub(super) cores: Vec<Core>,
    pub(super) caches: Vec<Cache>,
    /// Number and CPUs, by number.
    pub(super) nodes: Vec<(usize, CpuSet)>,
    pub(super) packages: Vec<CpuSet>,
    pub(super) dies: Vec<CpuSet>,
    pub(super) modules: Vec<CpuSet>,
    pub(super) n_groups: usize,
    /// The active processors of all groups; empty if no record tells.
    in_groups: CpuSet,
    /// Where reading ended before the end of the bytes.
    pub(super) cut_off: Option<usize>,
}

impl Records {
    /// `mask_len` is the length of a mask in bytes, 4 or 8.
    pub(super) fn parse(bytes: &[u8], mask_len: usize) -> Self {
        let mut records = Self::default();
        let mut at = 0;
        while at < bytes.len() {
            let size = Fields(&bytes[at..]).u32(4).and_then(|size| usize::try_from(size).ok());
            let end = size.filter(|size| *size >= 8).and_then(|size| at.checked_add(size));
            let record = end.and_then(|end| bytes.get(at..end));
            if record.and_then(|record| records.add(Fields(record), mask_len)).is_none() {
                records.cut_off = Some(at);
                break;
            }
            at = end.unwrap_or(bytes.len());
        }
        records.nodes = merged(records.nodes);
        records
    }

    /// The processors that are active: those of the groups, else those of the cores.
    pub(super) fn active(&self) -> CpuSet {
        if !self.in_groups.is_empty() {
            return self.in_groups.clone();
        }
        self.cores.iter().flat_map(|core| core.cpus.iter()).collect()
    }

    /// Adds one record; `None` if it is shorter than it should be.
    fn add(&mut self, record: Fields<'_>, mask_len: usize) -> Option<()> {
        let processor = || record.masks(30, 32, mask_len);
        match record.u32(0)? {
            CORE => {
                self.cores.push(Core { cpus: processor()?, efficiency_class: record.u8(9)? });
            }
            PACKAGE => self.packages.push(processor()?),
            DIE => self.dies.push(processor()?),
            MODULE => self.modules.push(processor()?),
            CACHE if record.u32(16)? != INSTRUCTION_CACHE => self.caches.push(Cache {
                level: record.u8(8)?,
                size: record.u32(12)?,
                cpus: record.masks(38, 40, mask_len)?,
            }),
            NODE | NODE_EX => {
                self.nodes.push((usize::try_from(record.u32(8)?).ok()?, processor()?));
            }
            GROUP => self.add_groups(record, mask_len)?,
            _ => {}
        }
        Some(())
    }

    /// The active groups, each of which has its mask after 40 bytes.
    fn add_groups(&mut self, record: Fields<'_>, mask_len: usize) -> Option<()> {
        let count = record.u16(10)?;
        self.n_groups = usize::from(count);
        let mask = |group: u16| {
            let mask = record.mask(32 + usize::from(group) * (40 + mask_len) + 40, mask_len)?;
            Some(GroupMask { group, mask })
        };
        self.in_groups = cpus((0..count).map(mask))?;
        Some(())
    }
}

/// The nodes by number, once each. A node is there twice where the system has two forms of it: the older one names its
/// processors in one group, the newer one those in all.
fn merged(nodes: Vec<(usize, CpuSet)>) -> Vec<(usize, CpuSet)> {
    let mut by_number = BTreeMap::<usize, Vec<CpuSet>>::new();
    for (number, cpus) in nodes {
        by_number.entry(number).or_default().push(cpus);
    }
    by_number.into_iter().map(|(number, sets)| (number, CpuSet::union_of(&sets))).collect()
}

/// Fields by their place in a record, in the order of bytes that Windows uses on every machine.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u8(&self, at: usize) -> Option<u8> {
        self.array::<1>(at).map(|[byte]| byte)
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn mask(&self, at: usize, mask_len: usize) -> Option<u64> {
        if mask_len == 8 {
            self.array(at).map(u64::from_le_bytes)
        } else {
            self.u32(at).map(u64::from)
        }
    }

    /// The processors of an array of `GROUP_AFFINITY` at `first`, whose length is at `count`. Older systems leave the
    /// length zero where there is one.
    fn masks(&self, count: usize, first: usize, mask_len: usize) -> Option<CpuSet> {
        let mask = |index: usize| {
            let at = first + index * (mask_len + 8);
            Some(GroupMask { mask: self.mask(at, mask_len)?, group: self.u16(at + mask_len)? })
        };
        let count = usize::from(self.u16(count)?.max(1));
        cpus((0..count).map(mask))
    }
}

/// The processors of these masks, `None` if one of them is not there.
fn cpus(masks: impl Iterator<Item = Option<GroupMask>>) -> Option<CpuSet> {
    let mut by_group = BTreeMap::<u16, u64>::new();
    for mask in masks {
        let GroupMask { group, mask } = mask?;
        if group < MAX_GROUPS {
            *by_group.entry(group).or_default() |= mask;
        }
    }
    Some(by_group.into_iter().flat_map(|(group, mask)| GroupMask { group, mask }.ids()).collect())
}
