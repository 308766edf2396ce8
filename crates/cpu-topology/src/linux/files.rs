//! Where files come from: a folder, or a snapshot in memory.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use crate::snapshot::Snapshot;

/// A source of files by path, relative to its root.
pub(super) enum Files {
    Folder(PathBuf),
    Memory(Snapshot),
}

impl Files {
    /// The first bytes of a file.
    pub(super) fn read(&self, path: &str, max_len: u64) -> io::Result<Vec<u8>> {
        let root = match self {
            Self::Folder(root) => root,
            Self::Memory(snapshot) => {
                let content = snapshot.file(path).ok_or(ErrorKind::NotFound)?;
                let len = usize::try_from(max_len).unwrap_or(usize::MAX).min(content.len());
                return Ok(content[..len].to_vec());
            }
        };
        let path = root.join(path);
        // Opening a pipe would wait for somebody to write to it.
        if !path.metadata()?.is_file() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(max_len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The names in a directory.
    pub(super) fn names(&self, directory: &str) -> io::Result<Vec<String>> {
        match self {
            Self::Folder(root) => {
                let entries = root.join(directory).read_dir()?;
                Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
            }
            Self::Memory(snapshot) => Ok(snapshot.names(directory)),
        }
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        match self {
            Self::Folder(root) => root.join(path).exists(),
            Self::Memory(snapshot) => snapshot.file(path).is_some() || snapshot.has_directory(path),
        }
    }
}
