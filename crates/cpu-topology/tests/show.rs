//! The example `show` as a program: what it prints, what it writes, and how it answers bad input.

mod common;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use common::Machine;
use serde_json::{Value, json};

/// The program. Cargo builds it beside this test, but not if it is told to build tests alone; what is there then may be old.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let here = env::current_exe().expect("this program");
        let folder = here.ancestors().nth(2).expect("the folder of the profile");
        let target = folder.parent().expect("the target folder");
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        // What it is made of is there: this test is made of the same.
        let build =
            ["build", "-q", "--locked", "--offline", "-p", "cpu-topology", "--example", "show"];
        let places = ["--profile", profile, "--target-dir", path(target)];
        let status = Command::new(env!("CARGO")).args(build).args(places).status();
        assert!(status.expect("cargo").success());
        folder.join("examples").join(format!("show{}", env::consts::EXE_SUFFIX))
    })
}

fn show(arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).env_remove("FERROX_CPU_THREADS").env_remove("RAYON_NUM_THREADS");
    command.output().expect("the program")
}

fn printed(arguments: &[&str]) -> String {
    let output = show(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

fn json_of(arguments: &[&str]) -> Value {
    let text = printed(&[arguments, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// Four cores of two CPUs and a quota of one and a half.
fn four_cores() -> Machine {
    let machine = Machine::new();
    machine.online("0-7").cores(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]);
    for cpu in 0..8 {
        machine.cpu(cpu, "topology/physical_package_id", "0\n");
        machine.cpu(cpu, "cache/index3/level", "3\n").cpu(cpu, "cache/index3/type", "Unified\n");
        machine.cpu(cpu, "cache/index3/shared_cpu_list", "0-7\n");
    }
    machine.file("sys/devices/system/node/node0/cpulist", "0-7\n");
    machine.file("proc/self/status", "Cpus_allowed_list:\t0-7\n");
    machine.file("proc/self/cgroup", "0::/job\n");
    machine.file("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    machine.file("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    machine
}

#[test]
fn json_has_every_fact() {
    let machine = four_cores();
    let found = json_of(&["--root", path(machine.root())]);
    let expected = json!({
        "allowed": "0-7", "online": "0-7", "cores": ["0,4", "1,5", "2,6", "3,7"], "smt": 2,
        "packages": ["0-7"], "dies": null, "clusters": null,
        "numa_nodes": [{ "id": 0, "cpus": "0-7" }], "memory_nodes": [],
        "llcs": [{ "level": 3, "cpus": "0-7", "size": null }],
        "classes": [{ "cpus": "0-7", "cores": 4, "efficiency": false, "label": null }],
        "class_signal": null, "perf_cpus": "0-7", "perf_cores": 4, "isolated": "",
        "virtualized": null, "quota": 1.5,
        "plan": { "num_threads": 1, "core_ids": [0], "coordinator_cpu": null }, "notes": [],
    });
    assert_eq!(found, expected);

    let some = json_of(&["--root", path(machine.root()), "--allowed", "1-3,5", "--threads", "5"]);
    assert_eq!(some["cores"], json!(["1,5", "2", "3"]));
    assert_eq!(some["plan"]["core_ids"], json!([1, 2, 3, 5, 1]));
}

#[test]
fn a_snapshot_of_a_folder_is_read_back_as_the_same_machine() {
    let machine = four_cores();
    machine.file("proc/sys/kernel/hostname", "secret-host\n");
    machine.file("proc/self/cgroup", "4:memory:/secret/id\n0::/secret-host/job\n");
    machine.file("sys/fs/cgroup/secret-host/job/cpu.max", "250000 100000\n");
    machine.file("proc/cpuinfo", "processor\t: 0\nserial\t: 4711\nflags\t: fpu hypervisor\n");
    let file = machine.root().join("machine.sysfs");
    let root = ["--root", path(machine.root())];
    printed(&[&root[..], &["--snapshot", path(&file)]].concat());
    let text = fs::read_to_string(&file).expect("the snapshot");
    assert!(!text.contains("secret") && !text.contains("4711") && !text.contains("fpu"), "{text}");
    let found = json_of(&["--corpus", path(&file)]);
    assert_eq!((&found["quota"], &found["virtualized"]), (&json!(2.5), &json!(true)));
    let (mut left, mut right) = (found, json_of(&root));
    for object in [&mut left, &mut right] {
        object.as_object_mut().expect("an object").remove("notes");
    }
    assert_eq!(left, right);
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let machine = four_cores();
    let root = path(machine.root());
    let file = |name: &str, content: &[u8]| {
        machine.file(name, content);
        path(&machine.root().join(name)).to_owned()
    };
    let sys = format!("{root}/sys");
    let (junk, empty) = (file("junk", b"no tab\n"), file("empty", b"# nothing\n"));
    let binary = file("binary", &[0xFF, 0xFE, 0]);
    let cases: &[&[&str]] = &[
        &["--root"],
        &["--root", "/no/such/folder"],
        &["--root", &sys],
        &["--root", root, "--corpus", &junk],
        &["--corpus", "/no/such/file"],
        &["--corpus", root],
        &["--corpus", &junk],
        &["--corpus", &empty],
        &["--corpus", &binary],
        &["--root", root, "--allowed", "some"],
        &["--root", root, "--allowed", "3-0"],
        &["--root", root, "--allowed", ""],
        &["--root", root, "--allowed", "7-8"],
        &["--root", root, "--allowed", "0-99999999999"],
        &["--root", root, "--threads", "-1"],
        &["--root", root, "--threads", "99999999999"],
        &["--root", root, "--svg", "/no/such/folder/x.svg"],
        &["--root", root, "--snapshot", "/no/such/folder/x"],
        &["--frobnicate"],
        &["extra"],
    ];
    for arguments in cases {
        let output = show(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn this_machine_is_shown_and_help_is_given() {
    let text = printed(&[]);
    assert!(text.starts_with("Machine") && text.contains("workers: "), "{text}");
    assert!(json_of(&[])["plan"]["num_threads"].as_u64().is_some_and(|threads| threads >= 1));
    assert!(printed(&["--help"]).contains("--corpus <FILE>"));
}

/// The tags of a text that is well-formed as far as SVG written here needs it; an error names what is not.
fn tags(text: &str) -> Result<Vec<String>, String> {
    let (mut open, mut tags, mut rest) = (Vec::new(), Vec::new(), text);
    while let Some((before, after)) = rest.split_once('<') {
        for entity in before.split('&').skip(1) {
            let name = entity.split_once(';').map(|(name, _)| name);
            if !matches!(name, Some("amp" | "lt" | "gt" | "quot")) {
                return Err(format!("entity in {before:?}"));
            }
        }
        let (tag, after) = after.split_once('>').ok_or("a tag without an end")?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes something else"));
            }
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap_or("");
        let quotes = tag.matches('"').count();
        if name.is_empty() || quotes % 2 == 1 || quotes / 2 != tag.matches("=\"").count() {
            return Err(format!("tag <{tag}>"));
        }
        tags.push(tag.to_owned());
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    if open.is_empty() && rest.trim().is_empty() {
        Ok(tags)
    } else {
        Err(format!("{open:?} not closed"))
    }
}

#[test]
fn a_picture_is_well_formed_and_has_every_cpu() {
    assert!(
        tags("<a><b/></a>").is_ok() && tags("<a><b></a>").is_err() && tags("<a>&x</a>").is_err()
    );
    let machine = four_cores();
    let file = machine.root().join("machine.svg");
    let arguments = ["--threads", "3", "--svg", path(&file), "--root", path(machine.root())];
    for (allowed, n_cpus, n_withheld) in [("status", 8, 0), ("0-2,4", 4, 2)] {
        printed(&[&arguments[..], &["--allowed", allowed]].concat());
        let text = fs::read_to_string(&file).expect("the picture");
        let tags = tags(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
        let with = |part: &str| tags.iter().filter(|tag| tag.contains(part)).count();
        assert_eq!(with("text-anchor=\"middle\""), n_cpus);
        // One of each is in the legend.
        assert_eq!(with("fill=\"#264653\""), 3 + 1);
        assert_eq!(with("stroke-dasharray"), n_withheld + 1);
    }
}

/// Facts of a machine of the corpus that the JSON must agree with, as JSON.
fn expected(facts: &BTreeMap<&str, &str>) -> BTreeMap<&'static str, Value> {
    let lists = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let number = |text: &str| json!(text.parse::<u64>().expect("a number"));
    let mut expected = BTreeMap::new();
    for (fact, key) in [("online", "online"), ("perf_cpus", "perf_cpus")] {
        expected.extend(facts.get(fact).map(|value| (key, json!(value))));
    }
    for (fact, key) in [("smt", "smt"), ("perf_cores", "perf_cores")] {
        expected.extend(facts.get(fact).map(|value| (key, number(value))));
    }
    for (fact, key) in [("cores", "cores"), ("package_cpus", "packages")] {
        expected.extend(facts.get(fact).map(|value| (key, json!(lists(value)))));
    }
    expected
}

/// A set of CPUs has several spellings; the kernel's is taken.
fn spelled(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let set = cpu_topology::parse_cpu_list(text).expect("a list of CPUs");
            json!(set.to_string())
        }
        Value::Array(values) => values.iter().map(spelled).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_corpus_as_json() {
    let Some(folder) = env::var_os("CPU_TOPOLOGY_CORPUS").map(PathBuf::from) else {
        println!("CPU_TOPOLOGY_CORPUS is not set: no corpus was checked");
        return;
    };
    let entries =
        folder.read_dir().expect("the corpus").map(|entry| entry.expect("an entry").path());
    let files = entries.filter(|path| path.extension().is_some_and(|end| end == "sysfs"));
    let (mut n_machines, mut n_facts) = (0, 0);
    for file in files {
        let text = fs::read_to_string(&file).expect("a machine");
        let facts = text.lines().filter_map(|line| line.strip_prefix("#= ")?.split_once(' '));
        let facts = facts.collect::<BTreeMap<_, _>>();
        let name = file.display();
        if !facts.contains_key("online") && !text.contains("sys/devices/system/cpu") {
            // Nothing names a CPU: there is no machine to invent.
            let found = json_of(&["--corpus", path(&file)]);
            assert_eq!((&found["allowed"], &found["smt"]), (&Value::Null, &Value::Null), "{name}");
            continue;
        }
        let all = json_of(&["--corpus", path(&file), "--allowed", "all"]);
        for (key, value) in expected(&facts) {
            assert_eq!(spelled(&all[key]), spelled(&value), "{name}: {key}");
            n_facts += 1;
        }
        if let Some(domains) = facts.get("l3_domains") {
            let caches = all["llcs"].as_array().cloned().unwrap_or_default();
            let found = caches.iter().filter(|cache| cache["level"] == 3).count();
            assert_eq!(found.to_string(), *domains, "{name}");
        }
        if let Some(nodes) = facts.get("numa_nodes_with_cpus") {
            let found = all["numa_nodes"].as_array().map_or(0, Vec::len);
            assert_eq!(found.to_string(), *nodes, "{name}");
        }
        let own = json_of(&["--corpus", path(&file)]);
        if let Some(allowed) = facts.get("allowed_by_cgroup") {
            assert_eq!(spelled(&own["allowed"]), spelled(&json!(allowed)), "{name}");
        }
        n_machines += 1;
    }
    println!("{n_machines} machines, {n_facts} facts");
    assert!(n_facts > n_machines && n_machines > 0);
}
