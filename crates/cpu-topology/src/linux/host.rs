//! The name of the host in the names of cgroups, which may be called after it: replaced for a snapshot.
//!
//! A cgroup has its name in three places: the process's membership, the roots and points of mounts, and the directories
//! with its limits. The same is done to all three, so that they still fit together, and nothing is done to anything else.
#![forbid(unsafe_code)]

use crate::linux::cgroup::{escape, unescape};

/// Names that are part of the path on every machine, and tell nothing even if the host is called so.
const FIXED: [&str; 9] =
    ["sys", "fs", "cgroup", "unified", "cpu", "cpuacct", "cpu,cpuacct", "cpuacct,cpu", "cpuset"];

/// What is written in place of the name.
const REPLACEMENT: &str = "host";

/// How units of systemd write a dash inside of a name.
const ESCAPED_DASH: &str = "\\x2d";

/// What the kernel adds to the path of a cgroup that is gone.
const DELETED: &str = " (deleted)";

/// The name of the host, which may be empty.
pub(super) struct Host(pub(super) String);

impl Host {
    /// The path of a cgroup or of a directory of one.
    pub(super) fn in_directory(&self, path: &str) -> String {
        let names = path.split('/').map(|name| self.in_name(name));
        names.collect::<Vec<_>>().join("/")
    }

    /// The path of a file with a limit in it.
    pub(super) fn in_file(&self, path: &str) -> String {
        path.rsplit_once('/').map_or_else(
            || path.to_owned(),
            |(directory, file)| format!("{}/{file}", self.in_directory(directory)),
        )
    }

    /// A path that may be that of a cgroup that is gone, as `proc/self/cpuset` has it.
    pub(super) fn in_membership(&self, path: &str) -> String {
        match path.strip_suffix(DELETED) {
            Some(path) => self.in_directory(path) + DELETED,
            None => self.in_directory(path),
        }
    }

    /// A line `number:controllers:path`.
    pub(super) fn in_membership_line(&self, line: &str) -> String {
        match line.splitn(3, ':').collect::<Vec<_>>()[..] {
            [number, controllers, path] => {
                format!("{number}:{controllers}:{}", self.in_membership(path))
            }
            _ => line.to_owned(),
        }
    }

    /// A line of a table of mounts, in which these fields are paths.
    pub(super) fn in_mount_line(&self, line: &str, paths: &[usize]) -> String {
        let field = |(index, field): (usize, &str)| {
            if paths.contains(&index) {
                escape(&self.in_directory(&unescape(field)))
            } else {
                field.to_owned()
            }
        };
        line.split(' ').enumerate().map(field).collect::<Vec<_>>().join(" ")
    }

    /// Replaces the name where it is a word, so that a host called `100` leaves `user-1000.slice` alone.
    fn in_name(&self, name: &str) -> String {
        if self.0.is_empty() || FIXED.contains(&name) {
            return name.to_owned();
        }
        let (mut text, mut rest) = (String::with_capacity(name.len()), name);
        while let Some(at) = rest.find(&self.0) {
            let (before, found) = rest.split_at(at);
            let after = &found[self.0.len()..];
            text.push_str(before);
            let starts = text.ends_with(ESCAPED_DASH) || !text.ends_with(char::is_alphanumeric);
            let is_word = starts && !after.starts_with(char::is_alphanumeric);
            // What is no word may have one in it from the next character on.
            let first = found.chars().next().map_or(1, char::len_utf8);
            let len = if is_word { self.0.len() } else { first };
            text.push_str(if is_word { REPLACEMENT } else { &found[..len] });
            rest = &found[len..];
        }
        text + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_replaced() {
        /// Host, path, and the path without it.
        const CASES: &[(&str, &str, &str)] = &[
            ("box", "/lxc/box/job", "/lxc/host/job"),
            ("box", "/box.slice/a-box-1.scope/boxes", "/host.slice/a-host-1.scope/boxes"),
            ("box", "/machine-a\\x2dbox\\x2dc.scope", "/machine-a\\x2dhost\\x2dc.scope"),
            ("100", "/user.slice/user-1000.slice/100", "/user.slice/user-1000.slice/host"),
            ("aa", "/aaa/aa", "/aaa/host"),
            ("cpu", "sys/fs/cgroup/cpu/cpu-1", "sys/fs/cgroup/cpu/host-1"),
            ("é", "/éé/é", "/éé/host"),
            ("", "/a", "/a"),
        ];
        for (host, path, expected) in CASES {
            assert_eq!(Host((*host).to_owned()).in_directory(path), *expected, "host {host:?}");
        }
    }

    #[test]
    fn lines_keep_what_is_no_path() {
        let host = |name: &str| Host(name.to_owned());
        let line = "4:max:/max/a:max (deleted)";
        assert_eq!(host("max").in_membership_line(line), "4:max:/host/a:host (deleted)");
        assert_eq!(host("deleted").in_membership_line(line), line);
        assert_eq!(host("max").in_membership_line("max"), "max");
        let line = "30 23 0:26 /a\\040rw /rw\\134 rw - cgroup2 rw rw";
        let expected = "30 23 0:26 /a\\040host /host\\134 rw - cgroup2 rw rw";
        assert_eq!(host("rw").in_mount_line(line, &[3, 4]), expected);
        assert_eq!(host("040").in_mount_line(line, &[3, 4]), line);
        assert_eq!(host("max").in_file("a/max/cpu.max"), "a/host/cpu.max");
    }
}
