//! Windows machines as the bytes of their records.

mod common;

use common::{check_invariants, classes, cores};
use cpu_topology::{
    AllowedSource, CpuTopology, GroupMask, Note, Signal, WindowsFacts, perf_core_count_in,
    plan_cpu_pool_in,
};

/// Records under construction, with masks of this many bytes.
struct Buffer {
    bytes: Vec<u8>,
    mask_len: usize,
}

impl Buffer {
    fn new() -> Self {
        Self { bytes: Vec::new(), mask_len: 8 }
    }

    fn record(&mut self, relationship: u32, body: &[u8]) -> &mut Self {
        self.bytes.extend(relationship.to_le_bytes());
        self.bytes.extend((body.len() as u32 + 8).to_le_bytes());
        self.bytes.extend(body);
        self
    }

    fn mask(&self, mask: u64) -> Vec<u8> {
        mask.to_le_bytes()[..self.mask_len].to_vec()
    }

    /// Count and array of `GROUP_AFFINITY`.
    fn affinities(&self, masks: &[(u16, u64)]) -> Vec<u8> {
        let mut bytes = (masks.len() as u16).to_le_bytes().to_vec();
        for (group, mask) in masks {
            bytes.extend(self.mask(*mask));
            bytes.extend(group.to_le_bytes());
            bytes.extend([0; 6]);
        }
        bytes
    }

    /// A core (0), package (3), die (5) or module (7): flags, efficiency class, 20 reserved bytes.
    fn processor(&mut self, relationship: u32, class: u8, masks: &[(u16, u64)]) -> &mut Self {
        let flags = u8::from(masks.iter().map(|(_, mask)| mask.count_ones()).sum::<u32>() > 1);
        let mut body = vec![flags, class];
        body.extend([0xEE; 20]);
        body.extend(self.affinities(masks));
        self.record(relationship, &body)
    }

    fn core(&mut self, class: u8, group: u16, mask: u64) -> &mut Self {
        self.processor(0, class, &[(group, mask)])
    }

    /// Kind 0 is unified, 1 instructions, 2 data.
    fn cache(&mut self, level: u8, kind: u32, size: u32, masks: &[(u16, u64)]) -> &mut Self {
        let mut body = vec![level, 8, 64, 0];
        body.extend(size.to_le_bytes());
        body.extend(kind.to_le_bytes());
        body.extend([0xEE; 18]);
        body.extend(self.affinities(masks));
        self.record(2, &body)
    }

    fn node(&mut self, relationship: u32, number: u32, masks: &[(u16, u64)]) -> &mut Self {
        let mut body = number.to_le_bytes().to_vec();
        body.extend([0xEE; 18]);
        body.extend(self.affinities(masks));
        self.record(relationship, &body)
    }

    fn groups(&mut self, masks: &[u64]) -> &mut Self {
        let count = (masks.len() as u16).to_le_bytes();
        let mut body = [count, count].concat();
        body.extend([0xEE; 20]);
        for mask in masks {
            body.extend([64, mask.count_ones() as u8]);
            body.extend([0xEE; 38]);
            body.extend(self.mask(*mask));
        }
        self.record(4, &body)
    }

    fn facts(&self) -> WindowsFacts {
        let is_32_bit = self.mask_len == 4;
        let mut facts = WindowsFacts::default();
        (facts.records, facts.is_32_bit) = (self.bytes.clone(), is_32_bit);
        facts
    }

    fn read(&self) -> CpuTopology {
        read(&self.facts())
    }
}

fn read(facts: &WindowsFacts) -> CpuTopology {
    let topology = CpuTopology::from_windows(facts);
    check_invariants(&topology);
    topology
}

/// Two fast cores of two processors, eight slow ones, clusters of four of which share a level 2.
fn laptop_2p8e(mask_len: usize) -> Buffer {
    let mut laptop = Buffer { bytes: Vec::new(), mask_len };
    laptop.core(1, 0, 0b11).core(1, 0, 0b1100);
    (4..12).for_each(|cpu| {
        laptop.core(0, 0, 1 << cpu);
    });
    laptop.cache(3, 0, 12 << 20, &[(0, 0xFFF)]).cache(1, 2, 48 << 10, &[(0, 0b11)]);
    laptop.cache(4, 1, 1 << 20, &[(0, 0xFFF)]);
    laptop.processor(3, 0, &[(0, 0xFFF)]).node(1, 0, &[(0, 0xFFF)]).groups(&[0xFFF]);
    laptop
}

#[test]
fn a_hybrid_laptop() {
    for mask_len in [4, 8] {
        let topology = laptop_2p8e(mask_len).read();
        assert_eq!(classes(&topology), ["0-3", "!4-11"]);
        assert_eq!(cores(&topology)[..3], ["0-1", "2-3", "4"]);
        assert_eq!(topology.class_signal(), Some(Signal::EfficiencyClass));
        assert_eq!(topology.allowed_source(), AllowedSource::ProcessorGroups);
        let caches = topology.last_level_caches();
        assert_eq!((caches.len(), caches[0].level(), caches[0].size()), (1, 3, Some(12 << 20)));
        assert_eq!((topology.packages().len(), topology.numa_nodes().len()), (1, 1));
        assert_eq!(perf_core_count_in(&topology), 2);
        assert!(topology.notes().is_empty() && topology.ids_are_real());
    }
}

#[test]
fn a_higher_class_is_faster_and_there_may_be_three() {
    let mut machine = Buffer::new();
    machine.core(0, 0, 0b1).core(1, 0, 0b10).core(1, 0, 0b100).core(2, 0, 0b1000);
    assert_eq!(classes(&machine.read()), ["3", "1-2", "!0"]);
    // Equal classes say nothing, whatever their number.
    let mut machine = Buffer::new();
    machine.core(5, 0, 0b1).core(5, 0, 0b10);
    let topology = machine.read();
    assert_eq!((classes(&topology), topology.class_signal()), (vec!["0-1".to_owned()], None));
}

/// `n` processors from 0 on in a group.
fn low(n: u32) -> u64 {
    u64::MAX >> (64 - n)
}

/// Two groups of cores of two processors.
fn groups_of(left: u32, right: u32) -> Buffer {
    let mut server = Buffer::new();
    for (group, n) in [(0, left), (1, right)] {
        (0..n / 2).for_each(|core| {
            server.core(0, group, 0b11 << (2 * core));
        });
        server.cache(3, 0, 32 << 20, &[(group, low(n))]).processor(3, 0, &[(group, low(n))]);
        server.node(1, u32::from(group), &[(group, low(n))]);
    }
    server.groups(&[low(left), low(right)]);
    server
}

#[test]
fn all_groups_count() {
    for (left, right) in [(48, 48), (48, 16), (64, 64)] {
        let topology = groups_of(left, right).read();
        let expected = (0..left as usize).chain(64..64 + right as usize).collect::<Vec<_>>();
        assert_eq!(topology.allowed_cpus(), expected);
        assert_eq!(topology.cores().len(), (left + right) as usize / 2);
        let sets = topology.last_level_caches().iter().map(|cache| cache.cpus().len());
        assert_eq!(sets.collect::<Vec<_>>(), [left as usize, right as usize]);
        assert_eq!((topology.packages().len(), topology.numa_nodes().len()), (2, 2));
        assert!(topology.notes().contains(&Note::SeveralGroups { count: 2 }));
        // Workers fill one cache before the next.
        let plan = plan_cpu_pool_in(0, false, &topology);
        assert_eq!(plan.core_ids[..2], [0, 2]);
        assert_eq!(plan.num_threads, (left + right) as usize / 2);
    }
}

#[test]
fn the_affinity_of_the_process_restricts() {
    let facts = |affinity: &[(u16, u64)]| {
        let mut facts = laptop_2p8e(8).facts();
        facts.affinity = affinity.iter().map(|&(group, mask)| GroupMask { group, mask }).collect();
        facts
    };
    let topology = read(&facts(&[(0, 0b1_0000_0110)]));
    assert_eq!(topology.allowed_cpus(), [1, 2, 8]);
    assert_eq!(topology.cores()[0].siblings_total(), 2);
    assert_eq!(topology.online().map(|online| online.len()), Some(12));
    // Efficiency cores alone are what there is.
    assert_eq!(classes(&read(&facts(&[(0, 0xFF0)]))), ["4-11"]);
    // What is not there restricts nothing.
    assert_eq!(read(&facts(&[(1, 0xFF)])).len(), 12);
    assert_eq!(read(&facts(&[(u16::MAX, u64::MAX)])).len(), 12);
}

#[test]
fn the_rate_of_a_job_is_a_quota() {
    /// Flags, rate, and CPUs in hundredths, of a machine with 12.
    const CASES: &[(u32, u32, Option<u64>)] = &[
        (1 | 4, 2_500, Some(300)),
        (1 | 4, 2_000, Some(240)),
        (1 | 4, 1, Some(0)),
        (1 | 4, 10_000, None),
        (1 | 16, 5_000 << 16 | 1_000, Some(600)),
        (1 | 16, 10_000 << 16, None),
        (1 | 2, 5, None), // a weight is no limit
        (1, 2_500, None), // nor is a rate without a hard cap
        (4, 2_500, None),
        (1 | 4, 0, None),
        (0, u32::MAX, None),
    ];
    for (flags, rate, expected) in CASES {
        let mut facts = laptop_2p8e(8).facts();
        facts.cpu_rate = Some((*flags, *rate));
        let topology = read(&facts);
        let found = topology.quota().map(|quota| quota.quota_us() * 100 / quota.period_us());
        assert_eq!(found, *expected, "flags {flags}, rate {rate}");
    }
}

#[test]
fn a_node_that_comes_twice_is_one_node_with_all_its_processors() {
    // As Windows answers: all records, in which a node names one group, then the newer form of the nodes, of the same kind.
    for newer in [1, 6] {
        let mut server = Buffer::new();
        server.node(1, 0, &[(0, low(64))]).node(1, 1, &[(2, low(8))]);
        server.groups(&[low(64), low(64), low(8)]);
        server.node(newer, 0, &[(0, low(64)), (1, low(64))]).node(newer, 1, &[(2, low(8))]);
        let topology = server.read();
        let nodes = topology.numa_nodes().iter().map(|node| (node.id(), node.cpus().to_string()));
        assert_eq!(nodes.collect::<Vec<_>>(), [(0, "0-127".into()), (1, "128-135".into())]);
        assert_eq!(topology.notes(), [Note::SeveralGroups { count: 3 }]);
    }
}

#[test]
fn the_same_nodes_twice_are_the_nodes() {
    let mut server = groups_of(48, 16);
    let once = server.read();
    server.node(1, 0, &[(0, low(48))]).node(1, 1, &[(1, low(16))]);
    assert_eq!(server.read().numa_nodes(), once.numa_nodes());
    assert_eq!((once.numa_nodes().len(), server.read().notes()), (2, once.notes()));
}

#[test]
fn a_size_as_large_as_can_be_is_cut_off() {
    let mut machine = Buffer::new();
    machine.core(0, 0, 0b1).core(0, 0, 0b10);
    machine.bytes[48 + 4..48 + 8].fill(0xFF);
    let topology = machine.read();
    assert_eq!(topology.notes(), [Note::RecordsCutOff { at: 48 }]);
    assert_eq!(cores(&topology), ["0"]);
}

#[test]
fn a_count_of_zero_is_one() {
    let mut machine = Buffer::new();
    machine.core(0, 0, 0b1).node(1, 3, &[(0, 0b1)]);
    let count_of_node = machine.bytes.len() - 16 - 2;
    machine.bytes[count_of_node] = 0;
    assert_eq!(machine.read().numa_nodes()[0].id(), 3);
}

#[test]
fn dies_modules_and_unknown_records() {
    let mut machine = Buffer::new();
    machine.core(0, 0, 0b1).core(0, 0, 0b10).record(77, &[1, 2, 3]);
    machine.processor(5, 0, &[(0, 0b11)]).processor(7, 0, &[(0, 0b1)]).processor(
        7,
        0,
        &[(0, 0b10)],
    );
    let topology = machine.read();
    assert_eq!((topology.dies().len(), topology.clusters().len()), (1, 2));
    assert!(topology.notes().is_empty());
}

#[test]
fn cores_that_overlap_or_are_missing() {
    let mut machine = Buffer::new();
    machine.core(0, 0, 0b011).core(0, 0, 0b110).groups(&[0b1111]);
    assert_eq!(cores(&machine.read()), ["0-1", "2", "3"]);
}

#[test]
fn a_core_as_large_as_a_record_can_be_is_none() {
    let mut machine = Buffer::new();
    machine.core(0, 0, 0b11);
    // A quarter of a megabyte in which every other processor of every group is of the second core.
    let masks = (0..16_384).map(|group| (group, 0x5555_5555_5555_5550)).collect::<Vec<_>>();
    machine.processor(0, 0, &masks);
    let topology = CpuTopology::from_windows(&machine.facts());
    // Groups above 255 are none.
    assert_eq!(topology.len(), 256 * 30 + 2);
    assert_eq!(topology.cores().len(), 256 * 30 + 1);
    assert_eq!(topology.notes(), [Note::CoreTooLarge { cpu: 4, count: 256 * 30 }]);
}

#[test]
fn bytes_that_end_early_or_make_no_sense() {
    let whole = laptop_2p8e(8).facts();
    for length in 0..whole.records.len() {
        let mut cut = whole.clone();
        cut.records.truncate(length);
        let topology = read(&cut);
        let cut_off =
            topology.notes().iter().any(|note| matches!(note, Note::RecordsCutOff { .. }));
        assert!(cut_off || topology.notes().is_empty());
        // Reading with the wrong length of masks finds something else, and stays inside.
        cut.is_32_bit = true;
        read(&cut);
    }
    for at in 0..whole.records.len() {
        for value in [0, 0xFF] {
            let mut facts = whole.clone();
            facts.records[at] = value;
            read(&facts);
        }
    }
    let mut stuck = Buffer::new();
    stuck.core(0, 0, 0b1).bytes.extend([0; 64]); // a record of no size
    assert_eq!(stuck.read().notes(), [Note::RecordsCutOff { at: 48 }]);
}
