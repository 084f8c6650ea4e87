//! File system operations for writers, as traits, so that tests can inject faults and crashes.
//!
//! All file I/O is positioned: no file has a cursor and none is opened for appending.

use crate::shared_locks;
use proofgate_evidence::{FileStorage, ReadFile, ReadStorage};
use rustix::fs::{Advice, FallocateFlags, OFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// A file system that supports reading and writing.
pub trait Storage: ReadStorage {
    /// Creates a directory atomically; `AlreadyExists` if the name is taken.
    ///
    /// # Errors
    /// The error of the system call.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Opens a directory so that [`Directory::sync`] reports every failure from then on.
    ///
    /// # Errors
    /// The error of the system call.
    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>>;

    /// Creates a file for reading and writing; `AlreadyExists` if the name is taken.
    ///
    /// # Errors
    /// The error of the system call.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>>;

    /// Opens an existing file to read the data on the disk: the file is first synced and then, if
    /// the system follows this advice, dropped from the page cache.
    ///
    /// # Errors
    /// The error of the system call.
    fn open_synced(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;

    /// Opens an existing file for reading and writing. A symbolic link is not followed.
    ///
    /// # Errors
    /// The error of the system call; `InvalidData` for a link or anything else that is not a regular file.
    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>>;

    /// Renames a file; an existing file with the new name is replaced.
    ///
    /// # Errors
    /// The error of the system call.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The error of the system call.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// The error of the system call, including the error for a directory that is not empty.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
}

/// An open directory.
pub trait Directory: Send + Sync {
    /// Returns the number of bytes that new files can still use on the directory's file system.
    /// Other processes may use them first.
    ///
    /// # Errors
    /// The error of the system call.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Returns whether a lock on a file in the directory is visible to every process that could
    /// write to the file.
    fn has_shared_locks(&self) -> bool;

    /// Makes file creations, renames and removals in the directory durable.
    ///
    /// # Errors
    /// The error of the system call.
    fn sync(&self) -> io::Result<()>;
}

/// An open file that can be written.
pub trait StoredFile: ReadFile {
    /// Writes once at an offset. Returns the number of bytes written, which may be less than the
    /// length of `bytes`.
    ///
    /// # Errors
    /// The error of the system call.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Allocates and zeroes `[0, bytes)`, so that writes to this range need no more space. If the
    /// file system cannot allocate, only the length is set, and writes may still need space.
    ///
    /// # Errors
    /// The error of the system call. After lack of space, a part may remain allocated.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Truncates or extends the file.
    ///
    /// # Errors
    /// The error of the system call.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Makes the contents, and the length needed to read them, durable (`fdatasync`).
    ///
    /// # Errors
    /// The error of the system call. Never retry after an error, because the page cache may then
    /// show contents that the disk does not have.
    fn sync(&self) -> io::Result<()>;

    /// Advises the system that `[0, bytes)` will not be read soon and that the part already on the
    /// disk may be dropped from the page cache (`posix_fadvise`). Advice cannot fail.
    fn evict(&self, bytes: u64);

    /// Takes the exclusive lock on the file without waiting; `false` when another handle holds the
    /// lock. The lock ends when this handle or the process ends (`flock`).
    ///
    /// # Errors
    /// The error of the system call. Not every file system supports locks.
    fn try_lock(&self) -> io::Result<bool>;
}

impl Storage for FileStorage {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        // Opening a FIFO at this path would block.
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::DIRECTORY.bits().cast_signed())
            .open(path)?;
        Ok(Arc::new(OpenDirectory(directory)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        Ok(Arc::new(file))
    }

    fn open_synced(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(not_regular_file_error());
        }
        file.sync_data()?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        Ok(Arc::new(file))
    }

    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path);
        let is_link = |error: &io::Error| Errno::from_io_error(error) == Some(Errno::LOOP);
        match file {
            Ok(file) if file.metadata()?.is_file() => Ok(Arc::new(file)),
            Err(error) if !is_link(&error) && error.kind() != io::ErrorKind::IsADirectory => Err(error),
            _ => Err(not_regular_file_error()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }
}

fn not_regular_file_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file")
}

struct OpenDirectory(File);

impl Directory for OpenDirectory {
    fn has_shared_locks(&self) -> bool {
        shared_locks::has_shared_locks(&self.0)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let found = rustix::fs::fstatvfs(&self.0)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

impl StoredFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        loop {
            match FileExt::write_at(self, bytes, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(self, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => File::set_len(self, bytes),
            other => Ok(other?),
        }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        File::set_len(self, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn evict(&self, bytes: u64) {
        if let Some(bytes) = NonZeroU64::new(bytes) {
            let _ = rustix::fs::fadvise(self, 0, Some(bytes), Advice::DontNeed);
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        match File::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Returns whether an error means lack of space, which is temporary, rather than a disk failure.
#[must_use]
pub fn is_out_of_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Writes all of `bytes`, in as many calls as needed.
///
/// # Errors
/// The error of the system call, or `WriteZero` when it writes no more bytes.
pub fn write_full(file: &dyn StoredFile, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => done += written,
        }
    }
    Ok(())
}
