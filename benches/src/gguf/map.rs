//! A file in memory without reading it.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// A file mapped into memory: pages are read when they are touched, and shared with whoever else has it mapped.
///
/// ```
/// use benches::gguf::MappedFile;
/// # let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
/// // SAFETY: nobody changes this file while the example runs.
/// let mapped = unsafe { MappedFile::open(&file)? };
/// assert!(mapped.bytes().starts_with(b"[package]"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
}

impl MappedFile {
    /// Maps a whole file, which may be empty.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or mapped, or is a folder or a device.
    ///
    /// # Safety
    ///
    /// Nobody may write to the file or make it shorter as long as the map is there: its bytes are handed out as `&[u8]`, which
    /// the compiler takes as unchanging.
    pub unsafe fn open(path: &Path) -> io::Result<Self> {
        // Before it is opened: the other end of a pipe may never come.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        // SAFETY: the caller sees to it that the file stays as it is.
        let map = unsafe { Mmap::map(&file)? };
        Ok(Self { map })
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_mapped_and_empty_ones_are_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a file");
        // SAFETY: nobody else knows this folder.
        let open = |path: &Path| unsafe { MappedFile::open(path) };
        assert_eq!(open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(open(folder.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        for content in ["", "what is in it"] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(open(&path).unwrap().bytes(), content.as_bytes());
        }
    }
}
