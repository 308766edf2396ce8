//! FreeBSD machines from `kern.sched.topology_spec`, the scheduler's groups of CPUs as XML. Built and tested on every OS.
//!
//! A group has the level of the cache that its CPUs share (0 for none), a list of CPUs, flags (`THREAD`, `SMT` or `HTT`:
//! its CPUs are one core; `NODE`: a NUMA node) and groups inside of it.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::apple::{SysctlSource, integer, text};
use crate::class::Speeds;
use crate::cores::is_core;
use crate::cpu_list::parse_cpu_list;
use crate::cpu_set::CpuSet;
use crate::note::Note;
use crate::places::{CacheDomain, Places, cache_domains, numa_nodes};
use crate::source::AllowedSource;
use crate::topology::CpuTopology;

const TOPOLOGY: &str = "kern.sched.topology_spec";

/// More CPUs than any such machine has.
const MAX_CPUS: usize = 4096;

/// More groups than such a machine can have, which are cores, their caches and nodes, most of them the same twice at most.
const MAX_GROUPS: usize = 4 * MAX_CPUS;

/// A group of CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Group {
    cache_level: usize,
    cpus: CpuSet,
    is_core: bool,
    is_node: bool,
}

/// The machine that `source` describes, for the CPUs of the affinity mask if that is known; empty if it tells nothing.
pub(crate) fn read(source: &impl SysctlSource, mask: Option<&CpuSet>) -> CpuTopology {
    let groups = source.read(TOPOLOGY).and_then(|bytes| text(&bytes)).map(|text| groups(&text));
    let groups = groups.unwrap_or_default();
    let online = online(source, &groups);
    let mask = mask.filter(|mask| !mask.is_empty());
    let (allowed, found) = match mask {
        Some(mask) => (mask.clone(), AllowedSource::AffinityMask),
        None if online.is_empty() => (CpuSet::new(), AllowedSource::Nowhere),
        None => (online.clone(), AllowedSource::Sysctl),
    };

    let mut siblings = allowed.iter().map(|cpu| (cpu, CpuSet::new())).collect::<BTreeMap<_, _>>();
    let mut notes = Vec::new();
    for core in groups.iter().filter(|group| group.is_core) {
        if !is_core(&core.cpus) {
            let cpu = core.cpus.first().unwrap_or(0);
            notes.push(Note::CoreTooLarge { cpu, count: core.cpus.len() });
            continue;
        }
        for cpu in core.cpus.iter() {
            if let Some(of_cpu) = siblings.get_mut(&cpu) {
                of_cpu.clone_from(&core.cpus);
            }
        }
    }
    let mut topology = CpuTopology::build(&siblings, found, &Speeds::unknown());
    if mask.is_none() {
        notes.push(Note::AllowedGuessed { source: found });
    }
    if groups.is_empty() && allowed.len() > 1 {
        notes.push(Note::SiblingsUnknown);
    }
    // The last level is the highest one; of groups inside each other with the same one, the inner.
    let last_level = |core: &crate::cores::PhysicalCore| {
        let around = groups.iter().filter(|group| group.cpus.contains(core.first_cpu()));
        let group = around
            .filter(|group| group.cache_level > 0)
            .max_by_key(|group| (group.cache_level, std::cmp::Reverse(group.cpus.len())))?;
        Some(CacheDomain { level: group.cache_level, cpus: group.cpus.clone(), size: None })
    };
    let caches = cache_domains(&topology.cores, &allowed, last_level, |note| notes.push(note));
    let nodes = groups.iter().filter(|group| group.is_node).map(|group| group.cpus.clone());
    let (nodes, other_nodes) = numa_nodes(nodes.enumerate(), &allowed, |note| notes.push(note));
    let online = Some(online).filter(|online| !online.is_empty());
    topology.places = Places { caches, nodes, other_nodes, online, ..Places::default() };
    topology.notes.extend(notes);
    topology
}

/// The CPUs of all groups, else as many as there are.
fn online(source: &impl SysctlSource, groups: &[Group]) -> CpuSet {
    let grouped = CpuSet::union_of(groups.iter().map(|group| &group.cpus));
    if !grouped.is_empty() {
        return grouped;
    }
    let count = integer(source, "kern.smp.cpus").or_else(|| integer(source, "hw.ncpu"));
    let count = count.and_then(|count| usize::try_from(count).ok());
    (0..count.filter(|count| *count <= MAX_CPUS).unwrap_or(0)).collect()
}

/// The groups in the text, whatever it holds: what is no tag of these is passed over, and so are CPUs and groups of which there
/// are more than any machine has.
fn groups(text: &str) -> Vec<Group> {
    let possible = CpuSet::from_ranges(vec![(0, MAX_CPUS - 1)]);
    let (mut done, mut open) = (Vec::new(), Vec::<Group>::new());
    for piece in text.split('<').skip(1) {
        let Some((tag, content)) = piece.split_once('>') else { continue };
        let name = tag.split_ascii_whitespace().next().unwrap_or("");
        let n_groups = done.len() + open.len();
        match (name, open.last_mut()) {
            ("group", _) if n_groups == MAX_GROUPS => break,
            ("group", _) => {
                let level = attribute(tag, "cache-level").and_then(|level| level.parse().ok());
                open.push(Group { cache_level: level.unwrap_or(0), ..Group::default() });
            }
            ("cpu", Some(group)) => {
                group.cpus = parse_cpu_list(content).unwrap_or_default().intersection(&possible);
            }
            ("flag", Some(group)) => match attribute(tag, "name") {
                Some("THREAD" | "SMT" | "HTT") => group.is_core = true,
                Some("NODE") => group.is_node = true,
                _ => {}
            },
            ("/group", Some(_)) => done.extend(open.pop()),
            _ => {}
        }
    }
    done
}

/// The value of an attribute in a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group as the kernel prints one.
    fn group(cache_level: usize, cpus: &str, flags: &[&str], children: &[String]) -> String {
        let flag = |name: &&str| format!("<flag name=\"{name}\">{name} group</flag>");
        let flags = flags.iter().map(flag).collect::<String>();
        format!(
            " <group level=\"1\" cache-level=\"{cache_level}\">\n  <cpu count=\"9\" mask=\"f,0,0,0\">{cpus}</cpu>\n\
             <flags>{flags}</flags>\n<children>\n{}</children>\n </group>\n",
            children.concat()
        )
    }

    struct Played(Vec<(&'static str, Vec<u8>)>);

    impl SysctlSource for Played {
        fn read(&self, name: &str) -> Option<Vec<u8>> {
            self.0.iter().find(|(of, _)| *of == name).map(|(_, value)| value.clone())
        }
    }

    fn read_text(text: &str, mask: Option<&str>) -> CpuTopology {
        let source =
            Played(vec![(TOPOLOGY, format!("<groups>\n{text}</groups>\n\0").into_bytes())]);
        read(&source, mask.map(|mask| parse_cpu_list(mask).unwrap()).as_ref())
    }

    fn cores(topology: &CpuTopology) -> Vec<String> {
        topology.cores().iter().map(|core| core.cpus().to_string()).collect()
    }

    /// Two nodes, each with a level 3 around two cores of two CPUs.
    fn server() -> String {
        let core = |cpus: &str| group(2, cpus, &["THREAD", "SMT"], &[]);
        let node = |cpus: &str, inner: [&str; 2]| group(3, cpus, &["NODE"], &inner.map(core));
        let nodes = [node("0, 1, 2, 3", ["0, 1", "2, 3"]), node("4, 5, 6, 7", ["4, 5", "6, 7"])];
        group(0, "0, 1, 2, 3, 4, 5, 6, 7", &[], &nodes)
    }

    #[test]
    fn cores_caches_and_nodes_are_groups() {
        let topology = read_text(&server(), None);
        assert_eq!(cores(&topology), ["0-1", "2-3", "4-5", "6-7"]);
        let caches = topology.last_level_caches().iter();
        let caches = caches.map(|cache| (cache.level(), cache.cpus().to_string()));
        assert_eq!(caches.collect::<Vec<_>>(), [(3, "0-3".to_owned()), (3, "4-7".to_owned())]);
        assert_eq!(topology.numa_nodes().len(), 2);
        assert_eq!(topology.allowed_source(), AllowedSource::Sysctl);

        let some = read_text(&server(), Some("1,4-5"));
        assert_eq!(cores(&some), ["1", "4-5"]);
        assert_eq!(some.cores()[0].siblings_total(), 2);
        assert_eq!(some.online().map(CpuSet::len), Some(8));
        assert!(some.notes().is_empty());
    }

    #[test]
    fn without_flags_each_cpu_is_a_core() {
        let topology = read_text(&group(2, "0, 1, 2", &[], &[]), None);
        assert_eq!(cores(&topology), ["0", "1", "2"]);
        assert_eq!(topology.last_level_caches()[0].cpus().len(), 3);
    }

    #[test]
    fn without_groups_there_is_a_count() {
        let counted =
            |value: u32| read(&Played(vec![("kern.smp.cpus", value.to_ne_bytes().to_vec())]), None);
        assert_eq!(cores(&counted(3)), ["0", "1", "2"]);
        assert!(counted(3).notes().contains(&Note::SiblingsUnknown));
        assert!(counted(0).is_empty() && counted(u32::MAX).is_empty());
        assert!(read(&Played(Vec::new()), None).is_empty());
        let mask = [2, 5].into_iter().collect();
        assert_eq!(cores(&read(&Played(Vec::new()), Some(&mask))), ["2", "5"]);
    }

    #[test]
    fn more_than_any_machine_has_is_left_out() {
        let topology = read_text(&group(3, "0-1048575", &["THREAD"], &[]), None);
        assert_eq!((topology.len(), topology.cores().len()), (MAX_CPUS, MAX_CPUS));
        assert!(topology.notes().contains(&Note::CoreTooLarge { cpu: 0, count: MAX_CPUS }));
        assert!(read_text(&group(3, "4096-5000", &[], &[]), None).is_empty());

        assert_eq!(groups(&"<group></group>".repeat(MAX_GROUPS + 1)).len(), MAX_GROUPS);
        let nested = format!("{}{}", "<group>".repeat(100_000), "</group>".repeat(100_000));
        assert!(groups(&nested).len() <= MAX_GROUPS);
        // Groups that name the same CPUs again cost no more than once for each CPU.
        let same = group(3, "0-4095", &[], &[]).repeat(1_000);
        assert_eq!(read_text(&same, None).len(), MAX_CPUS);
    }

    #[test]
    fn text_that_is_broken_anywhere_is_no_panic() {
        let whole = server();
        for end in 0..whole.len() {
            let topology = read_text(&whole[..end], None);
            assert!(topology.len() <= 8);
            read_text(&whole[end..], Some("0-7"));
        }
    }
}
