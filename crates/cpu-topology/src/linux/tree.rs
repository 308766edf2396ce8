//! Reading files under a root: small, as text, and never an error.
#![forbid(unsafe_code)]

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::cores::PhysicalCore;
use crate::cpu_list::{MAX_CPU_ID, parse_decimal, trim};
use crate::cpu_set::CpuSet;
use crate::error::ParseError;
use crate::linux::files::Files;
use crate::note::Note;
use crate::source::AllowedSource;

/// No file that is read here is longer on any machine.
const MAX_LEN: u64 = 1 << 20;

/// A root folder, and what was odd about the files under it.
pub(super) struct Tree {
    files: Files,
    notes: RefCell<Vec<Note>>,
    /// Files that were opened, or would have been if they were there, and directories that were listed.
    n_opened: Cell<usize>,
    /// The online CPUs, once they have been asked for.
    pub(super) online: OnceCell<(CpuSet, AllowedSource)>,
}

impl Tree {
    pub(super) fn new(root: &Path) -> Self {
        Self::of(Files::Folder(root.to_owned()))
    }

    pub(super) fn of(files: Files) -> Self {
        Self { files, notes: RefCell::default(), n_opened: Cell::new(0), online: OnceCell::new() }
    }

    pub(super) fn n_opened(&self) -> usize {
        self.n_opened.get()
    }

    pub(super) fn into_notes(self) -> Vec<Note> {
        self.notes.into_inner()
    }

    pub(super) fn note(&self, note: Note) {
        self.notes.borrow_mut().push(note);
    }

    /// A file as text, without the white space and NULs around it; bytes that are no UTF-8 become replacement
    /// characters. `None` if it is absent, cannot be read or is too long, of which the last two are noted.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let bytes = self.bytes(path)?;
        if bytes.len() as u64 > MAX_LEN {
            self.malformed(path, ParseError::TooLong);
            return None;
        }
        Some(trim(&String::from_utf8_lossy(&bytes)).to_owned())
    }

    /// A file of lines, which may be absent. Of one that is too long the first lines count, and that is noted: tables
    /// of mounts grow with the containers of a machine.
    pub(super) fn table(&self, path: &str) -> Option<String> {
        let mut bytes = self.bytes(path)?;
        if bytes.len() as u64 > MAX_LEN {
            self.malformed(path, ParseError::TooLong);
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
            bytes.truncate(whole);
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first bytes of a file, as text.
    pub(super) fn head(&self, path: &str, max_len: u64) -> Option<String> {
        let bytes = self.read(path, max_len)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What `parse` makes of a file. `None` if there is no such file, or it is malformed, which is noted.
    pub(super) fn parsed<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Option<T> {
        parse(&self.text(path)?).map_err(|error| self.malformed(path, error)).ok()
    }

    /// A file with one number that is not negative; -1 is how the kernel says "none".
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.parsed(path, |text| match parse_decimal(text) {
            Some(number) => Ok(Some(number)),
            None if text == "-1" => Ok(None),
            None if text.is_empty() => Err(ParseError::Empty),
            None => Err(ParseError::not_a_number(text)),
        })
        .flatten()
    }

    pub(super) fn malformed(&self, path: &str, error: ParseError) {
        self.note(Note::Malformed { path: shown(path), error });
    }

    /// The numbers N of the entries `prefixN` of a directory; none if there is no such directory.
    pub(super) fn numbered(&self, directory: &str, prefix: &str) -> io::Result<CpuSet> {
        let number = |name: &str| usize::try_from(parse_decimal(name.strip_prefix(prefix)?)?).ok();
        self.n_opened.set(self.n_opened.get() + 1);
        let names = match self.files.names(directory) {
            Err(error) if is_absent(error.kind()) => return Ok(CpuSet::new()),
            names => names?,
        };
        let numbers = names.iter().filter_map(|name| number(name));
        Ok(numbers.filter(|number| *number <= MAX_CPU_ID).collect())
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.files.exists(path)
    }

    /// The content, up to one byte more than is believed. `None` if there is no file, or it cannot be read, which is
    /// noted.
    fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        self.read(path, MAX_LEN + 1)
    }

    fn read(&self, path: &str, max_len: u64) -> Option<Vec<u8>> {
        self.n_opened.set(self.n_opened.get() + 1);
        let kind = match self.files.read(path, max_len) {
            Ok(bytes) => return Some(bytes),
            Err(error) => error.kind(),
        };
        if !is_absent(kind) {
            self.note(Note::Unreadable { path: shown(path), kind });
        }
        None
    }
}

/// The directory of the CPUs, with one directory `cpuN` in it for each.
pub(super) struct CpuDirectory {
    path: &'static str,
    /// The CPUs that have one, if that could be listed.
    cpus: Option<CpuSet>,
}

impl CpuDirectory {
    /// `path` is relative to the root of the tree, and may be empty.
    pub(super) fn new(tree: &Tree, path: &'static str) -> Self {
        Self { path, cpus: tree.numbered(path, "cpu").ok() }
    }

    /// Whether it is worth asking for files of this CPU: a list of CPUs may be longer than a machine is large.
    pub(super) fn has(&self, cpu: usize) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(cpu))
    }

    /// The lowest CPU of a core that it is worth asking for files of.
    pub(super) fn first_of(&self, core: &PhysicalCore) -> Option<usize> {
        core.cpus().iter().find(|cpu| self.has(*cpu))
    }

    /// The CPUs that have a directory, as far as is known.
    pub(super) fn listed(&self) -> impl Iterator<Item = usize> + '_ {
        self.cpus.iter().flat_map(CpuSet::iter)
    }

    /// The path of a file of this CPU.
    pub(super) fn file(&self, cpu: usize, name: &str) -> String {
        if self.path.is_empty() {
            format!("cpu{cpu}/{name}")
        } else {
            format!("{}/cpu{cpu}/{name}", self.path)
        }
    }
}

/// Whether an error says that there is nothing at a path.
fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// A path as it is on the machine described: from its root.
pub(super) fn shown(path: &str) -> PathBuf {
    Path::new("/").join(path)
}
