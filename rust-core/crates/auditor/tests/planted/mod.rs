//! A disk with planted files that cost an attacker nothing: directories, and sparse files.

use proofgate_evidence::{ReadFile, ReadStorage};
use proofgate_wal::simulated::SimulatedDisk;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the calls to a disk.
#[derive(Clone, Default)]
pub struct Counts(Arc<[AtomicU64; 2]>);

impl Counts {
    /// Number of files opened and directories listed.
    pub fn calls(&self) -> u64 {
        self.0[0].load(Ordering::Relaxed)
    }

    /// Number of bytes read from planted files.
    pub fn bytes(&self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }

    pub fn reset(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    fn add(&self, count: usize, more: u64) {
        self.0[count].fetch_add(more, Ordering::Relaxed);
    }
}

pub struct Planted {
    disk: SimulatedDisk,
    /// Names of planted files, by directory.
    names: BTreeMap<PathBuf, Vec<String>>,
    /// The first bytes and the length of each file. The rest is zeros.
    files: BTreeMap<PathBuf, (Arc<[u8]>, u64)>,
    counts: Counts,
}

struct PlantedFile {
    bytes: Arc<[u8]>,
    len: u64,
    counts: Counts,
}

impl Planted {
    pub fn on(disk: &SimulatedDisk) -> Self {
        Self {
            disk: disk.clone(),
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    pub fn counts(&self) -> Counts {
        self.counts.clone()
    }

    fn name(&mut self, path: &Path) {
        let (parent, name) = (path.parent().unwrap(), path.file_name().unwrap());
        let names = self.names.entry(parent.to_owned()).or_default();
        names.push(name.to_str().unwrap().to_owned());
    }

    pub fn directory(&mut self, path: &Path) {
        self.name(path);
        self.names.entry(path.to_owned()).or_default();
    }

    pub fn file(&mut self, path: &Path, len: u64, bytes: Vec<u8>) {
        self.name(path);
        self.files.insert(path.to_owned(), (bytes.into(), len));
    }
}

impl ReadStorage for Planted {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.counts.add(0, 1);
        match self.files.get(path) {
            Some((bytes, len)) => Ok(Arc::new(PlantedFile {
                bytes: Arc::clone(bytes),
                len: *len,
                counts: self.counts.clone(),
            })),
            None => self.disk.open(path),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.counts.add(0, 1);
        let mut names = match (self.disk.list(path), self.names.get(path)) {
            (Ok(names), planted) => [names, planted.cloned().unwrap_or_default()].concat(),
            (Err(_), Some(planted)) => planted.clone(),
            (Err(error), None) => return Err(error),
        };
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

impl ReadFile for PlantedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = into.len().min(self.len.saturating_sub(offset) as usize);
        into[..read].fill(0);
        let held = self.bytes.get(offset as usize..).unwrap_or_default();
        let held = &held[..held.len().min(read)];
        into[..held.len()].copy_from_slice(held);
        self.counts.add(1, read as u64);
        Ok(read)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}
