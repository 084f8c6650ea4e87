//! The few things a reader asks of a file system, as a trait, so that faults and moments can be injected.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A file system that is only read.
pub trait ReadStorage: Send + Sync {
    /// Opens an existing file for reading.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;

    /// Names in a directory, sorted.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
}

/// An open file. It has no cursor: every read names its place.
pub trait ReadFile: Send + Sync {
    /// One positioned read; 0 at the end of the file.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Length in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn len(&self) -> io::Result<u64>;

    /// Whether the length is 0.
    ///
    /// # Errors
    /// What the system says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileStorage;

impl ReadStorage for FileStorage {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(File::open(path)?))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl ReadFile for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match FileExt::read_at(self, into, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// Reads until `into` is full or the file ends; returns the bytes read.
///
/// # Errors
/// What the system says.
pub fn read_full(file: &dyn ReadFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}
