//! Limits of the process's cgroups: CPU time and cpuset, version 1, version 2 and both at once.
//!
//! `proc/self/cgroup` names the cgroup in each hierarchy, `proc/self/mountinfo` says where that hierarchy is mounted and
//! from which of its cgroups downwards. A limit of CPU time holds for all cgroups below, so the tightest from the
//! process's own up to the mount counts; what lies above the mount cannot be seen.
//! Sources: kernel documentation `cgroup-v2`, `cgroup-v1`, `sched-bwc`; `proc_pid_mountinfo(5)`, `cgroups(7)`.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use crate::cpu_list::parse_cpu_list;
use crate::cpu_set::CpuSet;
use crate::linux::tree::{Tree, shown};
use crate::quota::Quota;
use crate::snapshot::{MAX_DEPTH, MAX_PATH};

/// Places where one hierarchy is mounted that are looked at; a container has one or two.
const MAX_MOUNTS: usize = 64;

/// Names on the path of a directory that is looked at: with a file in it, it is one that a snapshot holds.
const MAX_NAMES: usize = MAX_DEPTH - 1;

/// A hierarchy that may hold the limits in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hierarchy {
    /// Version 1 with this controller.
    V1(&'static str),
    /// Version 2.
    V2,
}

/// Those that may.
const HIERARCHIES: [Hierarchy; 3] = [Hierarchy::V1("cpu"), Hierarchy::V1("cpuset"), Hierarchy::V2];

/// A cgroup by the names on its path, or one that cannot be told from here: outside of the namespace, as `/..` says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cgroup {
    At(Vec<String>),
    Elsewhere,
}

/// A mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// The cgroup that is seen at the mount point.
    root: Cgroup,
    /// The mount point.
    point: Vec<String>,
}

/// The tightest quota on the way from the process's cgroups up to where their hierarchies are mounted.
pub(super) fn tightest_quota(tree: &Tree) -> Option<Quota> {
    let v1 = directories(tree, Hierarchy::V1("cpu")).into_iter().filter_map(|directory| {
        let path = format!("{directory}/cpu.cfs_quota_us");
        let quota = tree.text(&path)?;
        let period = tree.text(&format!("{directory}/cpu.cfs_period_us"));
        let parsed = Quota::parse_cfs(&quota, period.as_deref())
            .map_err(|error| tree.malformed(&path, error));
        Some(parsed.ok().flatten()?.with_path(shown(&path)))
    });
    let v2 = directories(tree, Hierarchy::V2).into_iter().filter_map(|directory| {
        let path = format!("{directory}/cpu.max");
        Some(tree.parsed(&path, Quota::parse_cpu_max)??.with_path(shown(&path)))
    });
    v1.chain(v2).min_by(Quota::cmp_ratio)
}

/// The CPUs that the cpuset of the process's nearest cgroup with one leaves; `None` if there is none.
pub(super) fn cpuset(tree: &Tree) -> Option<CpuSet> {
    cpuset_files(tree)
        .into_iter()
        .filter_map(|path| tree.parsed(&path, parse_cpu_list))
        .find(|set| !set.is_empty())
}

/// The files of cpusets from the process's cgroup upwards, whether or not they are there.
fn cpuset_files(tree: &Tree) -> Vec<String> {
    const NAMES: [&str; 4] =
        ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus", "cpus"];
    // The old file names the cgroup of the cpuset, in whichever hierarchy that is.
    let old = || tree.text("proc/self/cpuset").map(|path| cgroup(&path));
    let old = if tree.exists("proc/self/cgroup") { None } else { old() };
    let hierarchies = [Hierarchy::V1("cpuset"), Hierarchy::V2];
    let directories = hierarchies.into_iter().flat_map(|hierarchy| match &old {
        Some(cgroup) => visible(cgroup, &mounts(tree, hierarchy)),
        None => directories(tree, hierarchy),
    });
    directories.flat_map(|directory| NAMES.map(|name| format!("{directory}/{name}"))).collect()
}

/// Every file that limits may be in, whether or not it is there.
pub(super) fn files(tree: &Tree) -> Vec<String> {
    let v1 = directories(tree, Hierarchy::V1("cpu")).into_iter().flat_map(|directory| {
        ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map(|name| format!("{directory}/{name}"))
    });
    let v2 = directories(tree, Hierarchy::V2).into_iter();
    let v2 = v2.map(|directory| format!("{directory}/cpu.max"));
    v1.chain(v2).chain(cpuset_files(tree)).collect()
}

/// Whether a line of `proc/self/mountinfo`, or of `proc/mounts`, is of a hierarchy that may hold limits.
pub(super) fn is_mount_of_limits(line: &str) -> bool {
    HIERARCHIES.into_iter().any(|hierarchy| {
        mountinfo_line(line, hierarchy).or_else(|| mounts_line(line, hierarchy)).is_some()
    })
}

/// The directories of the process's cgroup and its visible ancestors in this hierarchy, from the cgroup upwards.
fn directories(tree: &Tree, hierarchy: Hierarchy) -> Vec<String> {
    membership(tree, hierarchy)
        .map_or_else(Vec::new, |cgroup| visible(&cgroup, &mounts(tree, hierarchy)))
}

/// The directories of a cgroup and its ancestors below these mounts, each once. Of a path that is deeper than any the
/// part nearest to the mount counts.
fn visible(cgroup: &Cgroup, mounts: &[Mount]) -> Vec<String> {
    let mut found = Vec::new();
    let mounts = mounts.iter().filter(|mount| mount.point.len() <= MAX_NAMES).take(MAX_MOUNTS);
    for mount in mounts.clone() {
        let (Cgroup::At(path), Cgroup::At(root)) = (cgroup, &mount.root) else { continue };
        let Some(rest) = path.strip_prefix(root.as_slice()) else { continue };
        let full = [mount.point.as_slice(), rest].concat();
        let depths = mount.point.len()..=full.len().min(MAX_NAMES);
        found.extend(depths.rev().map(|depth| full[..depth].join("/")));
    }
    if found.is_empty() {
        // The names are those of another namespace. What is seen at the mount point is our cgroup or above it.
        found.extend(mounts.map(|mount| mount.point.join("/")));
    }
    let mut seen = BTreeSet::new();
    found.retain(|directory| seen.insert(directory.clone()));
    found
}

/// Whether a line of `proc/self/cgroup` is of a hierarchy that may hold limits.
pub(super) fn is_membership(line: &str) -> bool {
    HIERARCHIES.into_iter().any(|hierarchy| path_in(line, hierarchy).is_some())
}

/// The process's cgroup in this hierarchy; `None` if it has none there.
fn membership(tree: &Tree, hierarchy: Hierarchy) -> Option<Cgroup> {
    let lines = tree.table("proc/self/cgroup")?;
    let path = lines.lines().find_map(|line| path_in(line, hierarchy))?;
    Some(cgroup(path.strip_suffix(" (deleted)").unwrap_or(path)))
}

/// The path of `number:controllers:path`, if that is a line of this hierarchy. The path may have colons in it.
fn path_in(line: &str, hierarchy: Hierarchy) -> Option<&str> {
    let mut fields = line.splitn(3, ':');
    let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let is_ours = match hierarchy {
        Hierarchy::V2 => id == "0" && controllers.is_empty(),
        Hierarchy::V1(controller) => controllers.split(',').any(|name| name == controller),
    };
    is_ours.then_some(path)
}

/// Where the hierarchy is mounted, as far as can be told; the usual places if nothing tells.
fn mounts(tree: &Tree, hierarchy: Hierarchy) -> Vec<Mount> {
    if let Some(text) = tree.table("proc/self/mountinfo") {
        return distinct(text.lines().filter_map(|line| mountinfo_line(line, hierarchy)));
    }
    if let Some(text) = tree.table("proc/mounts") {
        return distinct(text.lines().filter_map(|line| mounts_line(line, hierarchy)));
    }
    let usual: &[&str] = match hierarchy {
        Hierarchy::V1("cpu") => &["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"],
        Hierarchy::V1(_) => &["sys/fs/cgroup/cpuset"],
        Hierarchy::V2 => &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
    };
    let mount =
        |path: &&str| Some(Mount { root: Cgroup::At(Vec::new()), point: components(path)? });
    usual.iter().filter(|path| tree.exists(path)).filter_map(mount).collect()
}

/// The first so many different ones.
fn distinct(mounts: impl Iterator<Item = Mount>) -> Vec<Mount> {
    let mut found = Vec::new();
    for mount in mounts {
        if found.len() < MAX_MOUNTS && !found.contains(&mount) {
            found.push(mount);
        }
    }
    found
}

/// `36 35 98:0 /root /point rw - type source options`, with any number of fields before the dash.
fn mountinfo_line(line: &str, hierarchy: Hierarchy) -> Option<Mount> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point) = (mount.next()?, mount.next()?);
    let mut kind = kind.split(' ');
    let (kind, options) = (kind.next()?, kind.nth(1).unwrap_or(""));
    is_of(hierarchy, kind, options).then(|| {
        Some(Mount { root: cgroup(&unescape(root)), point: components(&unescape(point))? })
    })?
}

/// `source /point type options 0 0`, which does not tell the root.
fn mounts_line(line: &str, hierarchy: Hierarchy) -> Option<Mount> {
    let mut fields = line.split(' ').skip(1);
    let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
    is_of(hierarchy, kind, options).then(|| {
        Some(Mount { root: Cgroup::At(Vec::new()), point: components(&unescape(point))? })
    })?
}

fn is_of(hierarchy: Hierarchy, kind: &str, options: &str) -> bool {
    match hierarchy {
        Hierarchy::V2 => kind == "cgroup2",
        Hierarchy::V1(controller) => {
            kind == controller
                || (kind == "cgroup" && options.split(',').any(|option| option == controller))
        }
    }
}

fn cgroup(path: &str) -> Cgroup {
    components(path).map_or(Cgroup::Elsewhere, Cgroup::At)
}

/// The names on a path. `None` for what is no path, or leads upwards: nothing outside of the root is read.
fn components(path: &str) -> Option<Vec<String>> {
    let names = || path.split('/').filter(|name| !matches!(*name, "" | "."));
    let sound = path.len() <= MAX_PATH && !path.contains('\0') && names().all(|name| name != "..");
    sound.then(|| names().map(str::to_owned).collect())
}

/// Writes a path as mount tables do.
pub(super) fn escape(path: &str) -> String {
    path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012")
}

/// Undoes the octal escapes of mount tables: `\040` is a space.
pub(super) fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|digits| byte == b'\\' && digits.iter().all(|d| matches!(d, b'0'..=b'7')));
        let value = octal.map(|digits| {
            digits.iter().fold(0_u32, |sum, digit| sum * 8 + u32::from(digit - b'0'))
        });
        match value.and_then(|value| u8::try_from(value).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_lines() {
        /// Line, hierarchy, and root and point of the mount, if it is one of it.
        type Case = (&'static str, Hierarchy, Option<(&'static str, &'static str)>);
        const CPU: Hierarchy = Hierarchy::V1("cpu");
        const CASES: &[Case] = &[
            (
                "41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw",
                Hierarchy::V2,
                Some(("", "sys/fs/cgroup")),
            ),
            (
                "41 31 0:38 / /sys/fs/cgroup rw shared:9 master:1 - cgroup2 none rw",
                Hierarchy::V2,
                Some(("", "sys/fs/cgroup")),
            ),
            ("32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct", CPU, Some(("", "cg/cpu"))),
            ("32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu", Hierarchy::V2, None),
            ("41 31 0:38 / /cg rw - cgroup2 cgroup2 rw,cpu", CPU, None),
            ("32 31 0:29 / /cg/cpuacct rw - cgroup cgroup rw,cpuacct", CPU, None),
            ("32 31 0:29 /docker/1 /cg rw - cgroup cgroup rw,cpu", CPU, Some(("docker/1", "cg"))),
            ("32 31 0:29 / /a\\040b rw - cgroup cgroup rw,cpu", CPU, Some(("", "a b"))),
            ("32 31 0:29 /../.. /cg rw - cgroup cgroup rw,cpu", CPU, Some(("elsewhere", "cg"))),
            ("32 31 0:29 / /../cg rw - cgroup cgroup rw,cpu", CPU, None),
            ("32 31 0:29 / /cg rw - tmpfs cpu rw,cpu", CPU, None),
            ("32 31 0:29 / /cg rw - cgroup", CPU, None),
            ("- - -", CPU, None),
            ("", CPU, None),
            (" - ", Hierarchy::V2, None),
        ];
        for (line, hierarchy, expected) in CASES {
            let found = mountinfo_line(line, *hierarchy).map(|mount| {
                let root = match mount.root {
                    Cgroup::At(names) => names.join("/"),
                    Cgroup::Elsewhere => "elsewhere".to_owned(),
                };
                (root, mount.point.join("/"))
            });
            assert_eq!(
                found,
                expected.map(|(root, point)| (root.into(), point.into())),
                "line {line:?}"
            );
        }
    }

    #[test]
    fn hostile_tables_name_few_directories() {
        let at = |names: usize| vec!["a".to_owned(); names];
        let mount = |point: &str| Mount {
            root: Cgroup::At(Vec::new()),
            point: vec!["cg".to_owned(), point.to_owned()],
        };
        let same = vec![mount("x"); 10_000];
        assert_eq!(visible(&Cgroup::At(at(2)), &same), ["cg/x/a/a", "cg/x/a", "cg/x"]);
        assert_eq!(visible(&Cgroup::Elsewhere, &same), ["cg/x"]);

        let many = (0..10_000).map(|index| mount(&index.to_string())).collect::<Vec<_>>();
        assert_eq!(visible(&Cgroup::At(at(1)), &many).len(), 2 * MAX_MOUNTS);
        let deep = visible(&Cgroup::At(at(2_000)), &many);
        assert_eq!(deep.len(), MAX_MOUNTS * (MAX_NAMES - 1));
        assert!(deep.iter().all(|directory| directory.split('/').count() <= MAX_NAMES));
        assert!(deep.contains(&"cg/0".to_owned()));

        let point = at(MAX_NAMES + 1);
        let too_deep = Mount { root: Cgroup::At(Vec::new()), point };
        assert!(visible(&Cgroup::Elsewhere, &[too_deep]).is_empty());
    }

    #[test]
    fn escapes() {
        const CASES: &[(&str, &str)] = &[
            ("a\\040b", "a b"),
            ("\\134", "\\"),
            ("\\04", "\\04"),
            ("\\999", "\\999"),
            ("\\777", "\\777"),
            ("\\", "\\"),
        ];
        for (field, expected) in CASES {
            assert_eq!(unescape(field), *expected);
        }
        for path in ["a b", "\\", "\\040", "\t\n", "ab"] {
            assert_eq!(unescape(&escape(path)), path);
            assert!(!escape(path).contains([' ', '\t', '\n']));
        }
    }
}
