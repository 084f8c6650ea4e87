//! The few things a writer asks of a file system beyond reading, as a trait, so that faults and crashes can be injected.
//!
//! All file I/O is positioned: no file has a cursor and none is opened for appending.

use crate::lock_reach;
use proofgate_evidence::{FileStorage, ReadFile, ReadStorage};
use rustix::fs::{Advice, FallocateFlags, OFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// A file system that is written, too.
pub trait Storage: ReadStorage {
    /// Creates a directory, atomically: `AlreadyExists` when anything has that name.
    ///
    /// # Errors
    /// What the system says.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Opens a directory so that [`PrefixIndex::sync`] sees every failure since.
    ///
    /// # Errors
    /// What the system says.
    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>>;

    /// Creates a file for reading and writing: `AlreadyExists` when anything has that name.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>>;

    /// Opens an existing file for reading what the disk holds: it is synced first, and dropped from the page cache
    /// where the system follows the advice.
    ///
    /// # Errors
    /// What the system says.
    fn open_synced(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;

    /// Opens an existing file for reading and writing; a link in its place is not followed.
    ///
    /// # Errors
    /// What the system says; `InvalidData` for a link and whatever else is no regular file.
    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>>;

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

    /// Removes an empty directory.
    ///
    /// # Errors
    /// What the system says, also when something is in it.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
}

/// An open directory.
pub trait Directory: Send + Sync {
    /// Bytes that new files may still take on its file system. Others may take them first.
    ///
    /// # Errors
    /// What the system says.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Whether a lock on a file in it is seen by everybody who could write the file.
    fn has_shared_locks(&self) -> bool;

    /// Makes creations, renames and removals in it durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&self) -> io::Result<()>;
}

/// An open file that can be written.
pub trait StoredFile: ReadFile {
    /// One positioned write; returns the bytes written, which may be fewer than given.
    ///
    /// # Errors
    /// What the system says.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

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

    /// Says that `[0, bytes)` is not read soon: what of it is on disk may leave the page cache (`posix_fadvise`). Advice,
    /// so it cannot fail.
    fn evict(&self, bytes: u64);

    /// Takes the only lock on the file, without waiting; `false` when another handle holds it. It lasts as long as this
    /// handle, and no longer than its process (`flock`).
    ///
    /// # Errors
    /// What the system says: not every file system knows locks.
    fn try_lock(&self) -> io::Result<bool>;
}

impl Storage for FileStorage {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        // A pipe in its place would be waited for.
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
        lock_reach::has_shared_locks(&self.0)
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

/// Whether an error means that there is no room, which passes, rather than that the disk fails.
#[must_use]
pub fn is_out_of_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Writes all of `bytes`, in as many calls as the system wants.
///
/// # Errors
/// What the system says, and `WriteZero` when it takes no more.
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
