//! Small files that are replaced atomically and durably, for the state to which an auditor or a
//! witness has committed. They are stored apart from the audited data, so that a rollback of the
//! data does not roll back the state.
#![forbid(unsafe_code)]

#[cfg(feature = "testing")]
pub mod memory;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const LOCK_FILE: &str = "lock";
const TEMP_SUFFIX: &str = ".tmp";

/// A store of named files that are replaced atomically. Names are relative paths with `/`.
pub trait StateStorage: Send + Sync {
    /// Reads a file; `None` when it does not exist.
    ///
    /// # Errors
    /// The error of the system call.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Replaces a file, or creates it together with its parent directories. The file is on the disk when this returns;
    /// after an error, the old or the new version may be in place.
    ///
    /// # Errors
    /// The error of the system call.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Lists the names in a directory, sorted; empty when it does not exist.
    ///
    /// # Errors
    /// The error of the system call.
    fn list(&self, name: &str) -> io::Result<Vec<String>>;

    /// Removes a file, which may reappear after a crash. A missing file is no error.
    ///
    /// # Errors
    /// The error of the system call.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A directory, locked as long as this value lives.
#[derive(Debug)]
pub struct StateDirectory {
    path: PathBuf,
    _lock: File,
}

impl StateDirectory {
    /// Creates the directory if it does not exist, and locks it; `None` when another process holds the lock.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        std::fs::create_dir_all(path)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK_FILE))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self {
                path: path.to_owned(),
                _lock: lock,
            })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Creates the parent directories of a file, each durably.
    fn create_parent_dirs(&self, name: &str) -> io::Result<()> {
        let mut at = self.path.clone();
        let Some((above, _)) = name.rsplit_once('/') else {
            return Ok(());
        };
        for part in above.split('/') {
            let below = at.join(part);
            match std::fs::create_dir(&below) {
                Ok(()) => sync_directory(&at)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            at = below;
        }
        Ok(())
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

impl StateStorage for StateDirectory {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(self.path.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.create_parent_dirs(name)?;
        let path = self.path.join(name);
        let temporary = self.path.join(format!("{name}{TEMP_SUFFIX}"));
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)?;
        sync_directory(path.parent().unwrap_or(&self.path))
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.path.join(name)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = entry?.file_name().into_string()
                && !name.ends_with(TEMP_SUFFIX)
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
