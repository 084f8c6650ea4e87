//! In-memory state storage whose calls can fail.

use crate::StateStorage;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing was written.
    BeforeWrite,
    /// The file was written, but the caller gets an error.
    AfterWrite,
    /// Same as `AfterWrite`, but a power loss undoes the write, because it was not synced.
    Unsynced,
}

#[derive(Default)]
struct Files {
    files: BTreeMap<String, Vec<u8>>,
    writes: u64,
    fault: Option<(u64, Fault)>,
    /// The content on the disk of files whose last write was not synced.
    unsynced: BTreeMap<String, Option<Vec<u8>>>,
    /// All contents that each name has ever had.
    history: BTreeMap<String, BTreeSet<Vec<u8>>>,
}

/// Files in memory. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryStorage(Arc<Mutex<Files>>);

impl MemoryStorage {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes all writes fail, starting with the write with this number, counted from 0.
    pub fn fail_from(&self, write: u64, fault: Fault) {
        let mut files = self.files();
        files.writes = 0;
        files.fault = Some((write, fault));
    }

    /// Simulates a power loss: unsynced writes are lost.
    pub fn lose_power(&self) {
        let mut files = self.files();
        for (name, before) in std::mem::take(&mut files.unsynced) {
            match before {
                Some(bytes) => files.files.insert(name, bytes),
                None => files.files.remove(&name),
            };
        }
    }

    /// Makes writes succeed again.
    pub fn heal(&self) {
        self.files().fault = None;
    }

    /// Returns all texts that a name has ever had, sorted.
    #[must_use]
    pub fn history(&self, name: &str) -> Vec<String> {
        let files = self.files();
        let past = files.history.get(name).into_iter().flatten();
        past.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .collect()
    }

    /// Returns all names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.files().files.keys().cloned().collect()
    }

    /// Returns an independent copy of the files.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        let files = self.files().files.clone();
        Self(Arc::new(Mutex::new(Files {
            files,
            ..Files::default()
        })))
    }

    /// Removes a file and returns its content.
    pub fn delete(&self, name: &str) -> Option<Vec<u8>> {
        self.files().files.remove(name)
    }

    /// Returns an independent copy of the files.
    #[must_use]
    pub fn copy(&self) -> Self {
        let files = self.files().files.clone();
        Self(Arc::new(Mutex::new(Files {
            files,
            ..Files::default()
        })))
    }

    /// Inserts a file.
    pub fn insert(&self, name: &str, bytes: Vec<u8>) {
        self.files().files.insert(name.to_owned(), bytes);
    }
}

impl StateStorage for MemoryStorage {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.files().files.get(name).cloned())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut files = self.files();
        let fails = files.fault.filter(|(from, _)| files.writes >= *from);
        files.writes += 1;
        if let Some((from, fault)) = fails
            && (fault == Fault::BeforeWrite || files.writes > from + 1)
        {
            return Err(io::Error::other("injected"));
        }
        let before = files.files.insert(name.to_owned(), bytes.to_vec());
        match fails {
            Some((_, Fault::Unsynced)) => {
                files.unsynced.entry(name.to_owned()).or_insert(before);
            }
            _ => {
                files.unsynced.remove(name);
            }
        }
        files
            .history
            .entry(name.to_owned())
            .or_default()
            .insert(bytes.to_vec());
        match fails {
            Some(_) => Err(io::Error::other("injected")),
            None => Ok(()),
        }
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        let files = self.files();
        let below = files
            .files
            .keys()
            .filter_map(|file| file.strip_prefix(name)?.strip_prefix('/'));
        let names: BTreeSet<&str> = below.map(|rest| rest.split('/').next().unwrap_or(rest)).collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files().files.remove(name);
        Ok(())
    }
}
