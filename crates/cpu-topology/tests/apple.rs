//! Apple machines through a played source.

mod common;

use std::collections::BTreeMap;

use common::{check_invariants, classes};
use cpu_topology::{
    CpuTopology, Note, Signal, SysctlSource, perf_core_count_in, physical_core_count_in,
    plan_cpu_pool_in,
};

/// A table of values.
#[derive(Default)]
struct Played(BTreeMap<String, Vec<u8>>);

impl SysctlSource for Played {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.0.get(name).cloned()
    }
}

impl Played {
    fn int(mut self, name: &str, value: i32) -> Self {
        self.0.insert(name.to_owned(), value.to_ne_bytes().to_vec());
        self
    }

    fn long(mut self, name: &str, value: i64) -> Self {
        self.0.insert(name.to_owned(), value.to_ne_bytes().to_vec());
        self
    }

    fn bytes(mut self, name: &str, value: &[u8]) -> Self {
        self.0.insert(name.to_owned(), value.to_vec());
        self
    }

    /// A chip with these levels, the fastest first.
    fn chip(levels: &[(&str, i32)]) -> Self {
        let mut chip = Self::default().int("hw.nperflevels", levels.len() as i32);
        for (index, (name, cores)) in levels.iter().enumerate() {
            let key = |value: &str| format!("hw.perflevel{index}.{value}");
            chip = chip.int(&key("physicalcpu"), *cores).int(&key("logicalcpu"), *cores);
            chip = chip
                .int(&key("physicalcpu_max"), *cores)
                .bytes(&key("name"), format!("{name}\0").as_bytes());
        }
        chip
    }

    fn read_all(&self) -> CpuTopology {
        let topology = CpuTopology::from_sysctl(self);
        check_invariants(&topology);
        assert!(!topology.ids_are_real());
        topology
    }
}

#[test]
fn chips() {
    /// Levels with names and cores, the classes, and the performance cores.
    type Case = (&'static [(&'static str, i32)], &'static [&'static str], usize);
    const CASES: &[Case] = &[
        (&[("Performance", 4), ("Efficiency", 4)], &["0-3", "!4-7"], 4),
        (&[("Super", 4), ("Efficiency", 6)], &["0-3", "!4-9"], 4),
        (&[("Super", 5), ("Performance", 10)], &["0-4", "5-14"], 15),
        (&[("Super", 2), ("Performance", 4), ("Efficiency", 6)], &["0-1", "2-5", "!6-11"], 6),
        (&[("Performance", 8)], &["0-7"], 8),
        (&[("Efficiency", 4)], &["0-3"], 4),
        (&[("Super", 0), ("Efficiency", 4)], &["0-3"], 4),
        (&[("A", 1), ("B", 1), ("C", 1), ("Efficiency", 1)], &["0", "1", "2", "!3"], 3),
    ];
    for (levels, expected, perf) in CASES {
        let topology = Played::chip(levels).read_all();
        assert_eq!(classes(&topology), *expected, "levels {levels:?}");
        assert_eq!(perf_core_count_in(&topology), *perf, "levels {levels:?}");
        let cores = levels.iter().map(|(_, cores)| *cores as usize).sum::<usize>();
        assert_eq!(physical_core_count_in(&topology), cores, "levels {levels:?}");
    }
}

#[test]
fn names_are_kept_as_labels() {
    let topology = Played::chip(&[("Super", 2), ("Performance", 4), ("Efficiency", 6)]).read_all();
    let labels = topology.classes().iter().map(|class| class.label()).collect::<Vec<_>>();
    assert_eq!(labels, [Some("Super"), Some("Performance"), Some("Efficiency")]);
    assert_eq!(topology.class_signal(), Some(Signal::PerfLevels));
}

#[test]
fn level_2_caches_are_those_of_clusters() {
    let chip = Played::chip(&[("Performance", 8), ("Efficiency", 2)]);
    let chip = chip.int("hw.perflevel0.cpusperl2", 4).long("hw.perflevel0.l2cachesize", 12 << 20);
    let topology = chip.int("hw.perflevel1.cpusperl2", 4).read_all();
    let caches = topology.last_level_caches().iter();
    let caches = caches.map(|cache| (cache.cpus().to_string(), cache.size())).collect::<Vec<_>>();
    let size = Some(12 << 20);
    assert_eq!(caches, [("0-3".into(), size), ("4-7".into(), size), ("8-9".into(), None)]);
    assert_eq!(topology.online().map(|online| online.len()), Some(10));
    assert!(Played::chip(&[("Performance", 8)]).read_all().last_level_caches().is_empty());
}

#[test]
fn translated_processes_and_guests_see_levels_and_say_what_they_are() {
    let chip = Played::chip(&[("Performance", 4), ("Efficiency", 4)]);
    let topology = chip.int("sysctl.proc_translated", 1).int("kern.hv_vmm_present", 0).read_all();
    assert_eq!(perf_core_count_in(&topology), 4);
    assert_eq!((topology.is_virtualized(), topology.notes().len()), (Some(false), 2));
    assert!(topology.notes().contains(&Note::Translated));
    let guest = Played::chip(&[("Standard", 4)]).int("kern.hv_vmm_present", 1).read_all();
    assert!(guest.notes().contains(&Note::Virtualized));
}

#[test]
fn integers_of_four_and_eight_bytes() {
    let chip = Played::default().long("hw.nperflevels", 2);
    let chip = chip.long("hw.perflevel0.physicalcpu", 8).int("hw.perflevel1.physicalcpu", 2);
    let topology = chip.bytes("hw.perflevel1.name", b"Efficiency").read_all();
    assert_eq!((perf_core_count_in(&topology), topology.cores().len()), (8, 10));
}

#[test]
fn levels_without_names() {
    let chip = Played::default().int("hw.nperflevels", 2);
    let chip = chip.int("hw.perflevel0.physicalcpu", 6).int("hw.perflevel1.physicalcpu", 2);
    assert_eq!(perf_core_count_in(&chip.read_all()), 6);
}

#[test]
fn levels_without_their_number() {
    let chip =
        Played::default().int("hw.perflevel0.physicalcpu", 2).int("hw.perflevel1.physicalcpu", 4);
    let chip =
        chip.int("hw.perflevel2.physicalcpu", 6).bytes("hw.perflevel1.name", b"Performance\0");
    assert_eq!(classes(&chip.read_all()), ["0-1", "2-5", "!6-11"]);
}

#[test]
fn machines_without_levels() {
    let mac = Played::default().int("hw.physicalcpu", 4).int("hw.logicalcpu", 8);
    let topology = mac.read_all();
    assert_eq!((topology.len(), topology.cores().len(), topology.classes().len()), (8, 4, 1));
    assert_eq!(perf_core_count_in(&topology), 4);
    assert_eq!(Played::default().int("hw.ncpu", 6).read_all().cores().len(), 6);
    assert!(Played::default().read_all().is_empty());
    assert_eq!(plan_cpu_pool_in(0, true, &Played::default().read_all()).core_ids, [0]);
}

#[test]
fn values_that_make_no_sense() {
    let levels = |value: &[u8]| Played::default().bytes("hw.nperflevels", value);
    for value in
        [&[][..], &[1], &[1, 2, 3], &[0xFF; 4], &[0xFF; 8], &[0xFF; 9], &i32::MAX.to_ne_bytes()]
    {
        let topology = levels(value).int("hw.perflevel0.physicalcpu", 4).read_all();
        assert_eq!(topology.cores().len(), 4, "levels {value:?}");
    }
    for cores in [0, -1, i32::MIN, i32::MAX, 100_000] {
        let chip = Played::chip(&[("Super", cores), ("Efficiency", 3)]);
        assert_eq!(chip.read_all().cores().len(), 3, "cores {cores}");
    }
    // Fewer logical CPUs than cores, or a number of them that does not divide.
    let odd = Played::default().int("hw.physicalcpu", 4).int("hw.logicalcpu", 2);
    assert_eq!(odd.read_all().len(), 4);
    let odd = Played::default().int("hw.physicalcpu", 4).int("hw.logicalcpu", 6);
    assert_eq!(common::cores(&odd.read_all()), ["0-1", "2-3", "4", "5"]);
    let name =
        Played::chip(&[("x", 2), ("y", 2)]).bytes("hw.perflevel1.name", b" \xFF\0Efficiency\0");
    assert_eq!(perf_core_count_in(&name.read_all()), 4);
}
