//! Descriptions of real machines, from the folder that `CPU_TOPOLOGY_CORPUS` names: each `.sysfs` file holds a tree and
//! the facts that must be found in it.
//!
//! ```text
//! # comment
//! #= fact value             an expected fact
//! path<TAB>content          one file; in the content \n is a newline and \\ a backslash
//! path/<TAB>                an empty folder
//! ```

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use common::{Machine, check_invariants};
use cpu_topology::{AllowedFrom, CpuSet, CpuTopology, Note, Snapshot, parse_cpu_list};

/// A machine of the corpus: its files laid out, and its facts.
fn load(path: &Path) -> (Machine, BTreeMap<String, String>) {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let machine = Machine::new();
    let mut facts = BTreeMap::new();
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        if let Some(fact) = line.strip_prefix("#= ") {
            let (name, value) = fact.split_once(' ').unwrap_or((fact, ""));
            facts.insert(name.to_owned(), value.to_owned());
        } else if !line.starts_with('#') {
            let (path, content) =
                line.split_once('\t').unwrap_or_else(|| panic!("no tab in {line:?}"));
            match path.strip_suffix('/') {
                Some(folder) => machine.folder(folder),
                None => machine.file(path, unescape(content)),
            };
        }
    }
    (machine, facts)
}

fn unescape(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    let mut characters = content.chars();
    while let Some(character) = characters.next() {
        text.push(match (character, character == '\\') {
            (_, true) if characters.next() == Some('n') => '\n',
            (character, _) => character,
        });
    }
    text
}

/// What was found, under the names of the facts. A value is computed only where the fact is given.
fn found(topology: &CpuTopology, fact: &str) -> Option<String> {
    let join = |lists: Vec<String>, separator: &str| lists.join(separator);
    let cpus_of = |efficiency: bool| {
        let classes = topology.classes().iter().filter(|class| class.is_efficiency() == efficiency);
        classes.flat_map(|class| class.cpus().iter()).collect::<CpuSet>()
    };
    let cores_of = |efficiency: bool| {
        let classes = topology.classes().iter().filter(|class| class.is_efficiency() == efficiency);
        classes.map(|class| class.n_cores()).sum::<usize>()
    };
    Some(match fact {
        "online" => topology.allowed_set().to_string(),
        "online_count" => topology.len().to_string(),
        "physical_cores" | "sysfs_cores" => topology.cores().len().to_string(),
        "smt" | "sysfs_smt" => {
            topology.cores().iter().map(|core| core.cpus().len()).max()?.to_string()
        }
        "first_siblings" => {
            topology.cores().iter().map(|core| core.first_cpu()).collect::<CpuSet>().to_string()
        }
        "cores" => join(common::cores(topology), " "),
        "perf_cores" => cores_of(false).to_string(),
        "perf_cpus" => cpus_of(false).to_string(),
        "eff_cores" => cores_of(true).to_string(),
        "eff_cpus" => cpus_of(true).to_string(),
        "packages" | "sysfs_package_ids" => packages(topology).len().to_string(),
        "package_cpus" => join(packages(topology), " "),
        "numa_nodes" | "sysfs_node_dirs" => {
            (topology.numa_nodes().len() + topology.other_numa_nodes().len()).to_string()
        }
        "numa_nodes_with_cpus" => topology.numa_nodes().len().to_string(),
        "numa_cpus" => join(nodes(topology), " "),
        "numa_uncovered" => {
            let inside = topology.numa_nodes().iter().flat_map(|node| node.cpus().iter()).collect();
            topology.allowed_set().difference(&inside).to_string()
        }
        "l3_domains" => level_3(topology).len().to_string(),
        "l3_cpus" => join(level_3(topology), " "),
        _ => return None,
    })
}

/// Packages, or if the CPUs have none (their number is -1) the one number that all of them have.
fn packages(topology: &CpuTopology) -> Vec<String> {
    let packages = topology.packages().iter().map(|package| package.cpus().to_string());
    let packages = packages.collect::<Vec<_>>();
    if packages.is_empty() { vec![topology.allowed_set().to_string()] } else { packages }
}

/// `id:cpus` of every node, by id.
fn nodes(topology: &CpuTopology) -> Vec<String> {
    let with_cpus = topology.numa_nodes().iter().map(|node| (node.id(), node.cpus().to_string()));
    let without = topology.other_numa_nodes().iter().map(|id| (*id, "-".to_owned()));
    let all = with_cpus.chain(without).collect::<BTreeMap<_, _>>();
    all.into_iter().map(|(id, cpus)| format!("{id}:{cpus}")).collect()
}

fn level_3(topology: &CpuTopology) -> Vec<String> {
    let caches = topology.last_level_caches().iter().filter(|cache| cache.level() == 3);
    caches.map(|cache| cache.cpus().to_string()).collect()
}

/// Kinds that the data tells apart are classes apart; of one kind no core is an efficiency core, whatever its clock rate.
fn check_kinds(topology: &CpuTopology, kinds: &str, shown: bool) -> Result<(), String> {
    let efficiency = topology.classes().iter().any(|class| class.is_efficiency());
    match kinds {
        "1" if efficiency => Err("one kind of core, and efficiency cores found".to_owned()),
        "1" => Ok(()),
        _ if shown && topology.classes().len() < 2 => Err(format!("{kinds} kinds, one class")),
        _ => Ok(()),
    }
}

/// A fact that lists CPUs may write them in another way.
fn same(expected: &str, found: &str) -> bool {
    let sets = |text: &str| text.split(' ').map(parse_cpu_list).collect::<Result<Vec<_>, _>>();
    expected == found
        || matches!((sets(expected), sets(found)), (Ok(left), Ok(right)) if left == right)
}

/// Tiers are the distinct values of one number. A class may join tiers, and never cuts or reorders them.
fn check_tiers(topology: &CpuTopology, tiers: &str) -> Result<(), String> {
    if topology.classes().len() < 2 {
        return Ok(());
    }
    let mut classes = topology.classes().iter().map(|class| class.cpus());
    let mut left = CpuSet::new();
    for tier in tiers.split('|') {
        let tier = parse_cpu_list(tier).map_err(|error| error.to_string())?;
        if left.is_empty() {
            left = classes.next().cloned().unwrap_or_default();
        }
        if tier.intersection(&left) != tier {
            return Err(format!("tier {tier} is not inside of class {left}"));
        }
        left = left.iter().filter(|cpu| !tier.contains(*cpu)).collect();
    }
    Ok(())
}

/// A folder, a text and a snapshot taken of the folder describe one machine.
fn same_in_all(left: &CpuTopology, right: &CpuTopology, path: &Path) {
    assert_eq!(left, right, "{}", path.display());
    assert_eq!(left.region(), right.region(), "{}", path.display());
    assert_eq!(left.online(), right.online(), "{}", path.display());
    assert_eq!(left.isolated(), right.isolated(), "{}", path.display());
    assert_eq!(left.notes(), right.notes(), "{}", path.display());
}

/// How many files are enough for a machine: a fixed number, a few for each core, two for each CPU (siblings, and whether it
/// is online where no list tells), and those of each cache
/// (of each core where sharing is unknown). Where cores have to be guessed, the caches of each CPU.
fn few_files(topology: &CpuTopology) -> usize {
    let (n_cpus, n_cores) = (topology.len(), topology.cores().len());
    let is_guess = |note: &Note| matches!(note, Note::CoresGuessed { .. } | Note::SiblingsUnknown);
    let per_cpu = if topology.notes().iter().any(is_guess) { 9 } else { 2 };
    let unknown = |note: &&Note| matches!(note, Note::CacheSharingUnknown { .. });
    let n_unknown = topology.notes().iter().filter(unknown).count();
    let n_caches = topology.last_level_caches().len() + n_unknown;
    48 + per_cpu * n_cpus + 5 * n_cores + 10 * n_caches
}

/// The differences between a machine's facts and what is found in its files.
fn differences(path: &Path) -> (usize, Vec<String>) {
    let (machine, facts) = load(path);
    let topology = machine.read_online();
    let text = fs::read_to_string(path).expect("the file");
    let snapshot =
        Snapshot::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for (allowed, folder) in
        [(AllowedFrom::Online, topology.clone()), (AllowedFrom::Process, machine.read())]
    {
        let memory = CpuTopology::from_snapshot(&snapshot, &allowed);
        same_in_all(&memory, &folder, path);
        let again = Snapshot::take(machine.root());
        same_in_all(&CpuTopology::from_snapshot(&again, &allowed), &folder, path);
    }
    check_invariants(&topology);
    check_invariants(&machine.read());
    check_invariants(&CpuTopology::read_from(
        &machine.root().join(common::CPU),
        &topology.allowed_cpus(),
    ));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut checked = 0;
    let mut wrong = Vec::new();
    for (fact, expected) in &facts {
        if let Some(found) = found(&topology, fact) {
            checked += 1;
            if !same(expected, &found) {
                wrong.push(format!("{name}: {fact} is {expected:?}, found {found:?}"));
            }
        }
    }
    let (asked, few) = (topology.n_files_asked(), few_files(&topology));
    if asked > few {
        wrong.push(format!("{name}: {asked} files were asked for, more than {few}"));
    }
    if let Some(tiers) = facts.get("tiers") {
        checked += 1;
        wrong.extend(check_tiers(&topology, tiers).err().map(|error| format!("{name}: {error}")));
    }
    if let Some(kinds) = facts.get("core_kinds") {
        checked += 1;
        let shown = facts.contains_key("kind_data");
        let result = check_kinds(&topology, kinds, shown);
        wrong.extend(result.err().map(|error| format!("{name}: {error}")));
    }
    if let Some(allowed) = facts.get("allowed_by_cgroup") {
        checked += 1;
        let found = machine.read().allowed_set().to_string();
        if !same(allowed, &found) {
            wrong.push(format!("{name}: the cgroup allows {allowed:?}, found {found:?}"));
        }
    }
    (checked, wrong)
}

#[test]
fn every_machine_of_the_corpus_is_described_by_its_facts() {
    let Some(folder) = env::var_os("CPU_TOPOLOGY_CORPUS").map(PathBuf::from) else {
        println!("CPU_TOPOLOGY_CORPUS is not set: no corpus was checked");
        return;
    };
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files = entries.map(|entry| entry.expect("an entry").path());
    let mut files =
        files.filter(|path| path.extension().is_some_and(|end| end == "sysfs")).collect::<Vec<_>>();
    files.sort_unstable();
    assert!(!files.is_empty(), "no machine in {}", folder.display());

    let mut checked = 0;
    let mut wrong = Vec::new();
    for path in &files {
        let (n, differences) = differences(path);
        checked += n;
        wrong.extend(differences);
    }
    println!("{} machines, {checked} facts", files.len());
    assert!(wrong.is_empty(), "{} of {checked} facts differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn contents_are_unescaped() {
    assert_eq!(unescape(r"0-3\n"), "0-3\n");
    assert_eq!(unescape(r"a\\nb\n"), "a\\nb\n");
    assert_eq!(unescape("a\tb"), "a\tb");
}

#[test]
fn the_format_of_the_corpus_is_read() {
    let text = "# a machine\n#= online 0-1\n#= physical_cores 1\n#= cores 0-1\n#@ file x\nsys/devices/system/cpu/online\t0-1\\n\n\
        sys/devices/system/cpu/cpu0/topology/thread_siblings_list\t0-1\\n\n\
        sys/devices/system/cpu/cpu1/topology/thread_siblings\t3\\n\nsys/devices/system/node/node0/\t\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("two.sysfs");
    fs::write(&path, text).expect("a file");
    assert_eq!(differences(&path), (3, Vec::new()));
    fs::write(&path, text.replace("physical_cores 1", "physical_cores 2")).expect("a file");
    assert_eq!(differences(&path).1.len(), 1);
}
