//! The few things the log asks of a file system, as a trait, so that faults and crashes can be injected.
//!
//! All file I/O is positioned: no file has a cursor and none is opened for appending.

use rustix::fs::{Advice, FallocateFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A file system.
pub trait Storage: Send + Sync {
    /// Creates a directory, atomically: `AlreadyExists` when anything has that name.
    ///
    /// # Errors
    /// What the system says.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Opens a directory so that [`Directory::sync`] sees every failure since.
    ///
    /// # Errors
    /// What the system says.
    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>>;

    /// Creates a file for reading and writing: `AlreadyExists` when anything has that name.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>>;

    /// Opens an existing file for reading.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// What the system says.
    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>>;

    /// Names in a directory, sorted.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Renames a file over whatever has the new name.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// An open directory.
pub trait Directory: Send + Sync {
    /// Bytes that new files may still take on its file system. Others may take them first.
    ///
    /// # Errors
    /// What the system says.
    fn free(&self) -> io::Result<u64>;

    /// Makes creations, renames and removals in it durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&self) -> io::Result<()>;
}

/// An open file.
pub trait StoredFile: Send + Sync {
    /// One positioned write; returns the bytes written, which may be fewer than given.
    ///
    /// # Errors
    /// What the system says.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

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

    /// Allocates and zeroes `[0, bytes)`, so that writes there need no space. Where the file system cannot, the length
    /// is set and the promise is its own.
    ///
    /// # Errors
    /// What the system says; without space, a part may be left allocated.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Cuts or extends the file.
    ///
    /// # Errors
    /// What the system says.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Makes the contents, and the length needed to read them, durable (`fdatasync`).
    ///
    /// # Errors
    /// What the system says. After an error the page cache may claim contents that the disk does not have: never retry.
    fn sync(&self) -> io::Result<()>;

    /// Takes the only lock on the file, without waiting; `false` when another handle holds it. It lasts as long as this
    /// handle, and no longer than its process (`flock`).
    ///
    /// # Errors
    /// What the system says: not every file system knows locks.
    fn try_lock(&self) -> io::Result<bool>;

    /// Forgets cached clean pages, so that reads show what the disk holds (`posix_fadvise`, `DONTNEED`).
    ///
    /// # Errors
    /// What the system says.
    fn drop_cache(&self) -> io::Result<()>;
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileStorage;

impl Storage for FileStorage {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        Ok(Arc::new(OpenDirectory(File::open(path)?)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        Ok(Arc::new(OpenFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>> {
        Ok(Arc::new(OpenFile(File::open(path)?)))
    }

    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Arc::new(OpenFile(file)))
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

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
}

struct OpenDirectory(File);

impl Directory for OpenDirectory {
    fn free(&self) -> io::Result<u64> {
        let found = rustix::fs::fstatvfs(&self.0)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

struct OpenFile(File);

impl StoredFile for OpenFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        uninterrupted(|| self.0.write_at(bytes, offset))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        uninterrupted(|| self.0.read_at(into, offset))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.0.set_len(bytes),
            other => Ok(other?),
        }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn drop_cache(&self) -> io::Result<()> {
        Ok(rustix::fs::fadvise(&self.0, 0, None, Advice::DontNeed)?)
    }
}

fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Whether an error means that there is no room, which passes, rather than that the disk fails.
#[must_use]
pub fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Reads until `into` is full or the file ends; returns the bytes read.
pub(crate) fn read_full(file: &dyn StoredFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// Writes all of `bytes`, in as many calls as the system wants.
pub(crate) fn write_full(file: &dyn StoredFile, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => done += written,
        }
    }
    Ok(())
}
