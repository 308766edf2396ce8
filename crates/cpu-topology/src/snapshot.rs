//! The files of a Linux machine that matter here, in memory and as one text: for reports of bugs, and for tests.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::error::ParseError;
use crate::linux::{self, Collected};

/// No path can be longer (`PATH_MAX`).
pub(crate) const MAX_PATH: usize = 4096;

/// Names on a path. All directories on it are kept, so a text of deep paths would need many times its own length.
pub(crate) const MAX_DEPTH: usize = 64;

/// The few files of a Linux machine that describe its CPUs and the limits of a process.
///
/// As text it has one line for each file: the path without its leading slash, a tab, and the content, in which a newline is
/// written `\n` and a backslash `\\`. A path has at most 4,096 bytes and 64 names. A path with a slash at its end, and nothing after the tab, is a directory. Empty
/// lines and lines that start with `#` are comments.
///
/// ```
/// use cpu_topology::{AllowedFrom, CpuTopology, Snapshot};
///
/// let text = "# two CPUs of one core\n\
///     sys/devices/system/cpu/online\t0-1\\n\n\
///     sys/devices/system/cpu/cpu0/topology/core_cpus_list\t0-1\\n\n\
///     sys/devices/system/cpu/cpu1/topology/core_cpus_list\t0-1\\n\n";
/// let snapshot = Snapshot::parse(text)?;
/// let topology = CpuTopology::from_snapshot(&snapshot, &AllowedFrom::Online);
/// assert_eq!((topology.len(), topology.cores().len()), (2, 1));
/// assert_eq!(Snapshot::parse(&snapshot.to_string())?, snapshot);
/// # Ok::<(), cpu_topology::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Snapshot {
    files: Arc<BTreeMap<String, Vec<u8>>>,
    /// Directories, those of the files included, with the names in them.
    directories: Arc<BTreeMap<String, BTreeSet<String>>>,
}

impl Snapshot {
    /// Reads the text of a snapshot.
    ///
    /// # Errors
    ///
    /// [`ParseError::NotAFile`] with the number of the line; [`ParseError::Empty`] if there is no file in it.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let (mut files, mut folders) = (BTreeMap::new(), Vec::new());
        for (index, line) in text.split('\n').enumerate() {
            if line.is_empty() || line.starts_with('#') || line == "\r" {
                continue;
            }
            let malformed = || ParseError::NotAFile { line: index + 1 };
            let (path, content) = line.split_once('\t').ok_or_else(malformed)?;
            match path.strip_suffix('/') {
                Some(folder) if is_below_root(folder) && content.is_empty() => {
                    folders.push(folder.to_owned());
                }
                None if is_below_root(path) => {
                    let content = unescape(content).ok_or_else(malformed)?;
                    files.insert(path.to_owned(), content.into_bytes());
                }
                _ => return Err(malformed()),
            }
        }
        if files.is_empty() && folders.is_empty() {
            Err(ParseError::Empty)
        } else {
            Ok(Self::new(files, folders))
        }
    }

    /// The files of the running system, or of another one whose `sys/` and `proc/` lie under `root`.
    ///
    /// Of `/proc/cpuinfo`, of the process's status file and of its table of mounts only the lines that matter are taken,
    /// and of the flags of CPUs only whether there is a hypervisor. There is no serial number in it. The names of cgroups are, as
    /// limits are found by them, with `host` in place of the host's own name where that is a word of theirs: look before you
    /// publish.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use cpu_topology::Snapshot;
    ///
    /// assert!(Snapshot::take(Path::new("/no/such/directory")).is_empty());
    /// ```
    pub fn take(root: &Path) -> Self {
        let Collected { mut files, mut folders } = linux::collect(root);
        files.retain(|path, _| is_below_root(path));
        folders.retain(|path| is_below_root(path));
        Self::new(files, folders)
    }

    /// Whether there is no file in it.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn new(files: BTreeMap<String, Vec<u8>>, folders: Vec<String>) -> Self {
        let mut directories = BTreeMap::<String, BTreeSet<String>>::new();
        for path in files.keys().chain(&folders) {
            let mut path = path.as_str();
            while let Some((parent, name)) = path.rsplit_once('/') {
                let names = directories.entry(parent.to_owned()).or_default();
                if !names.insert(name.to_owned()) {
                    break; // its parents are there already
                }
                path = parent;
            }
        }
        for folder in folders {
            directories.entry(folder).or_default();
        }
        Self { files: Arc::new(files), directories: Arc::new(directories) }
    }

    /// The content of a file.
    pub(crate) fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    pub(crate) fn has_directory(&self, path: &str) -> bool {
        self.directories.contains_key(path)
    }

    /// The names in a directory; none if there is no such directory.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        self.directories.get(directory).into_iter().flatten().cloned().collect()
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, content) in self.files.iter() {
            let content = String::from_utf8_lossy(content);
            let content = content.replace('\\', "\\\\").replace('\n', "\\n");
            writeln!(formatter, "{path}\t{content}")?;
        }
        let empty = self.directories.iter().filter(|(_, names)| names.is_empty());
        for (path, _) in empty {
            writeln!(formatter, "{path}/\t")?;
        }
        Ok(())
    }
}

/// Whether every part of a path leads downwards, and it is one of those that a system can have and this text can hold.
fn is_below_root(path: &str) -> bool {
    path.len() <= MAX_PATH
        && path.split('/').count() <= MAX_DEPTH
        && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
        && !path.contains(['\t', '\n'])
}

/// Undoes `\n` and `\\`; `None` for any other escape.
fn unescape(content: &str) -> Option<String> {
    let mut text = String::with_capacity(content.len());
    let mut characters = content.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                '\\' => '\\',
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_files() {
        /// Text, and the number of the line at fault.
        const CASES: &[(&str, usize)] = &[
            ("no tab", 1),
            ("# fine\n\na/b\tx\nno tab\n", 4),
            ("/etc/passwd\tx", 1),
            ("a/../../b\tx", 1),
            ("a//b\tx", 1),
            ("\tx", 1),
            ("/\t", 1),
            ("a/\tx", 1),
            ("a\t\\x", 1),
            ("a\t\\", 1),
        ];
        for (text, line) in CASES {
            let expected = Err(ParseError::NotAFile { line: *line });
            assert_eq!(Snapshot::parse(text), expected, "text {text:?}");
        }
        assert_eq!(Snapshot::parse("# nothing\n\n"), Err(ParseError::Empty));
    }

    #[test]
    fn paths_that_no_system_has() {
        let deep = |names: usize| format!("{}\tx", vec!["a"; names].join("/"));
        let long = |bytes: usize| format!("a/{}\tx", "b".repeat(bytes - 2));
        for (fits, too_much) in [(deep(64), deep(65)), (long(4096), long(4097))] {
            assert!(Snapshot::parse(&fits).is_ok());
            let text = format!("{fits}\n{too_much}");
            assert_eq!(Snapshot::parse(&text), Err(ParseError::NotAFile { line: 2 }));
            let folder = too_much.replace("\tx", "/\t");
            assert_eq!(Snapshot::parse(&folder), Err(ParseError::NotAFile { line: 1 }));
        }
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let text = "a/b\t1\\n\na/c\tx\\\\y\tz\nd/e/\t\n";
        let snapshot = Snapshot::parse(text).unwrap();
        assert_eq!(snapshot.to_string(), text);
        assert_eq!(snapshot.file("a/c"), Some(b"x\\y\tz".as_slice()));
        assert_eq!(snapshot.names("a"), ["b", "c"]);
        assert_eq!(snapshot.names("d"), ["e"]);
        assert!(snapshot.names("d/e").is_empty() && snapshot.names("f").is_empty());
    }
}
