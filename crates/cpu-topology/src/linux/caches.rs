//! The last-level cache of a CPU: the highest level that its `cache` directory describes.
#![forbid(unsafe_code)]

use crate::cpu_list::{parse_cpu_list, parse_cpu_mask, parse_decimal};
use crate::linux::tree::{CpuDirectory, Tree};
use crate::places::CacheDomain;

/// The cache of the highest level of a CPU that holds data, with all CPUs that are said to share it.
pub(super) fn last_level(tree: &Tree, directory: &CpuDirectory, cpu: usize) -> Option<CacheDomain> {
    if !directory.has(cpu) {
        return None;
    }
    let caches = directory.file(cpu, "cache");
    let indexes = tree.numbered(&caches, "index").ok()?;
    let level =
        |index: usize| usize::try_from(tree.number(&format!("{caches}/index{index}/level"))?).ok();
    let mut levels =
        indexes.iter().filter_map(|index| Some((level(index)?, index))).collect::<Vec<_>>();
    levels.sort_unstable_by(|left, right| right.cmp(left));
    levels.into_iter().find_map(|(level, index)| {
        let path = |name: &str| format!("{caches}/index{index}/{name}");
        if tree.text(&path("type")).as_deref() == Some("Instruction") {
            return None;
        }
        let cpus = tree
            .parsed(&path("shared_cpu_list"), parse_cpu_list)
            .or_else(|| tree.parsed(&path("shared_cpu_map"), parse_cpu_mask))
            .unwrap_or_default();
        let size = tree.text(&path("size")).and_then(|text| bytes(&text));
        Some(CacheDomain { level, cpus, size })
    })
}

/// `32768K` as the kernel prints sizes, in bytes. Nothing, or zero, is unknown.
fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    parse_decimal(digits)?.checked_mul(unit).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        /// Text of a size file, and bytes.
        const CASES: &[(&str, Option<u64>)] = &[
            ("32768K", Some(32 << 20)),
            ("32M", Some(32 << 20)),
            ("512", Some(512)),
            ("0K", None),
            ("", None),
            ("K", None),
            ("-1K", None),
            ("18446744073709551615K", None),
        ];
        for (text, expected) in CASES {
            assert_eq!(bytes(text), *expected, "text {text:?}");
        }
    }
}
