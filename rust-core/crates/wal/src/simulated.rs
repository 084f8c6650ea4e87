//! A simulated disk in memory that can lose unsynced data, run out of space, fail a sync, write
//! short, and crash at any call.
//!
//! After a crash, every file has its synced data and any subset of the sectors of its later writes.
//! Every directory has its synced entries and any prefix of its later changes, because metadata is
//! journalled in order.

mod calls;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Size of the pieces in which unsynced bytes survive or are lost.
const SECTOR: usize = 512;

/// A fault that is injected at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The machine crashes before the call does anything; every later call fails until [`SimulatedDisk::crash`].
    Crash,
    /// The call does nothing and returns this error. A failed sync also loses the data that it should have made
    /// durable, while the page cache still shows it.
    Error(io::ErrorKind),
    /// A write stops half way; other calls are unaffected.
    ShortWrite,
}

#[derive(Clone, Default)]
struct FileContents {
    /// Contents on the disk.
    disk: Vec<u8>,
    /// Contents that readers see.
    cache: Vec<u8>,
    /// Writes since the last sync.
    unsynced: Vec<FileChange>,
    /// Number of allocated bytes. Writes to them need no further space.
    allocated: u64,
    /// Number of bytes from the start that the page cache may drop.
    evicted: u64,
}

#[derive(Clone)]
enum FileChange {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl FileChange {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(offset, new) => write_bytes(bytes, *offset, new),
            Self::Length(len) => bytes.resize(*len, 0),
        }
    }
}

#[derive(Clone)]
enum DirectoryChange {
    Link(PathBuf, usize),
    Directory(PathBuf),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, usize),
}

#[derive(Default)]
struct State {
    files: Vec<FileContents>,
    names: BTreeMap<PathBuf, usize>,
    directories: Vec<PathBuf>,
    durable_names: BTreeMap<PathBuf, usize>,
    durable_directories: Vec<PathBuf>,
    /// Changes of directories since they were last synced, in order.
    directory_changes: Vec<DirectoryChange>,
    calls: u64,
    faults: BTreeMap<u64, InjectedFault>,
    crashed: bool,
    free_bytes: Option<u64>,
    /// Number of the handle that holds the lock of each file.
    locks: BTreeMap<usize, u64>,
    /// Whether locks are local to this node, as on some network file systems.
    locks_are_local: bool,
    handles: u64,
    /// Listings of directories that this node has cached until it changes the directory itself.
    cached_listings: BTreeMap<PathBuf, Vec<String>>,
    /// Whether syncs of files hang.
    syncs_hang: bool,
    hanging_syncs: u32,
}

/// A simulated disk. Clones share it.
#[derive(Clone)]
pub struct SimulatedDisk(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Condition variable that is notified when a sync starts to hang, and when hanging ends.
    hang_changed: Condvar,
}

impl Default for SimulatedDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimulatedDisk {
    /// Creates an empty disk with a root directory and unlimited space.
    #[must_use]
    pub fn new() -> Self {
        let root = vec![PathBuf::from("/")];
        let state = State {
            directories: root.clone(),
            durable_directories: root,
            ..State::default()
        };
        Self::from_state(state)
    }

    fn from_state(state: State) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            hang_changed: Condvar::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.0
            .hang_changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Same as [`Self::state`], but waits until syncs no longer hang.
    fn state_after_hanging(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        while state.syncs_hang {
            state.hanging_syncs += 1;
            self.0.hang_changed.notify_all();
            state = self.wait(state);
            state.hanging_syncs -= 1;
        }
        state
    }

    /// Sets whether syncs of files hang from now on.
    pub fn set_hanging_syncs(&self, hang: bool) {
        self.state().syncs_hang = hang;
        self.0.hang_changed.notify_all();
    }

    /// Waits until a sync hangs.
    pub fn wait_for_hanging_sync(&self) {
        let mut state = self.state();
        while state.hanging_syncs == 0 {
            state = self.wait(state);
        }
    }

    /// Returns the number of calls so far, including reads.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Injects a fault at call number `call` (0-based, over the life of the disk).
    pub fn inject_fault_at(&self, call: u64, fault: InjectedFault) {
        self.state().faults.insert(call, fault);
    }

    /// Injects a fault at the next call.
    pub fn inject_fault_now(&self, fault: InjectedFault) {
        let mut state = self.state();
        let call = state.calls;
        state.faults.insert(call, fault);
    }

    /// Limits the free space to this many bytes; `None` is unlimited.
    pub fn set_free(&self, bytes: Option<u64>) {
        self.state().free_bytes = bytes;
    }

    /// Makes locks visible to this node only, from now on.
    pub fn make_locks_local(&self) {
        self.state().locks_are_local = true;
    }

    /// Caches a directory listing for this node until it changes the directory itself, as network file systems do.
    pub fn cache_listing(&self, path: &Path, names: Vec<String>) {
        self.state().cached_listings.insert(path.to_owned(), names);
    }

    /// Crashes and restarts the machine. Part of the unsynced data is lost; `seed` decides which
    /// part. Existing handles show the surviving contents. Pending faults are cleared.
    pub fn crash(&self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut state = self.state();
        for file in &mut state.files {
            let mut disk = std::mem::take(&mut file.disk);
            let whole = random.random_range(0..4);
            for change in file.unsynced.drain(..) {
                let keep = |random: &mut StdRng| match whole {
                    0 => true,
                    1 => false,
                    _ => random.random_bool(0.5),
                };
                match change {
                    FileChange::Write(offset, bytes) => {
                        let mut at = 0;
                        while at < bytes.len() {
                            let end = ((offset + at) / SECTOR + 1) * SECTOR - offset;
                            let end = end.min(bytes.len());
                            if keep(&mut random) {
                                write_bytes(&mut disk, offset + at, &bytes[at..end]);
                            }
                            at = end;
                        }
                    }
                    FileChange::Length(len) => {
                        if keep(&mut random) {
                            disk.resize(len, 0);
                        }
                    }
                }
            }
            file.cache = disk.clone();
            file.disk = disk;
        }
        let entries = std::mem::take(&mut state.directory_changes);
        let kept = random.random_range(0..=entries.len());
        for entry in entries.into_iter().take(kept) {
            state.make_durable(entry);
        }
        state.names = state.durable_names.clone();
        state.directories = state.durable_directories.clone();
        state.locks.clear();
        state.faults.clear();
        state.crashed = false;
    }

    /// Kills the process but not the machine: no data is lost, and pending faults are cleared.
    pub fn restart(&self) {
        let mut state = self.state();
        state.locks.clear();
        state.faults.clear();
        state.crashed = false;
    }

    /// Returns the bytes of a file as readers see them.
    #[must_use]
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(path).map(|file| state.files[*file].cache.clone())
    }

    /// Returns the number of bytes from the start of a file that the page cache may drop; `None` if
    /// there is no such file.
    pub fn evicted_bytes(&self, path: &Path) -> Option<u64> {
        let state = self.state();
        state.names.get(path).map(|file| state.files[*file].evicted)
    }

    /// Returns the byte ranges written to a file since its last sync; `None` if there is no such
    /// file.
    pub fn unsynced_ranges(&self, path: &Path) -> Option<Vec<Range<usize>>> {
        let state = self.state();
        let file = &state.files[*state.names.get(path)?];
        let writes = file.unsynced.iter().filter_map(|change| match change {
            FileChange::Write(at, bytes) => Some(*at..at + bytes.len()),
            FileChange::Length(_) => None,
        });
        Some(writes.collect())
    }

    /// Replaces a file's bytes on the disk and in the cache, as bit rot or tampering would.
    pub fn corrupt(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        if let Some(file) = state.names.get(path).copied() {
            let file = &mut state.files[file];
            change(&mut file.cache);
            file.disk = file.cache.clone();
            file.unsynced.clear();
        }
    }

    /// Removes an empty directory, as an operator would.
    pub fn remove_dir(&self, path: &Path) {
        let mut state = self.state();
        state.directories.retain(|directory| directory != path);
        state.durable_directories.retain(|directory| directory != path);
    }

    /// Returns the paths of all files, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// Returns an independent copy of this disk.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        let state = self.state();
        Self::from_state(State {
            files: state.files.clone(),
            names: state.names.clone(),
            directories: state.directories.clone(),
            durable_names: state.durable_names.clone(),
            durable_directories: state.durable_directories.clone(),
            directory_changes: state.directory_changes.clone(),
            free_bytes: state.free_bytes,
            locks_are_local: state.locks_are_local,
            ..State::default()
        })
    }
}

fn write_bytes(bytes: &mut Vec<u8>, offset: usize, new: &[u8]) {
    if bytes.len() < offset + new.len() {
        bytes.resize(offset + new.len(), 0);
    }
    bytes[offset..offset + new.len()].copy_from_slice(new);
}

impl State {
    /// Counts a call and applies its fault. Returns a fault that the call itself must carry out.
    fn count_call(&mut self) -> io::Result<Option<InjectedFault>> {
        if self.crashed {
            return Err(io::Error::other("the machine is dead"));
        }
        let fault = self.faults.remove(&self.calls);
        self.calls += 1;
        match fault {
            Some(InjectedFault::Crash) => {
                self.crashed = true;
                Err(io::Error::other("the machine dies"))
            }
            other => Ok(other),
        }
    }

    fn plain_call(&mut self) -> io::Result<()> {
        match self.count_call()? {
            Some(InjectedFault::Error(kind)) => Err(kind.into()),
            _ => Ok(()),
        }
    }

    fn use_space(&mut self, bytes: u64) -> io::Result<()> {
        match &mut self.free_bytes {
            Some(free) if *free < bytes => Err(io::ErrorKind::StorageFull.into()),
            Some(free) => {
                *free -= bytes;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn make_durable(&mut self, entry: DirectoryChange) {
        match entry {
            DirectoryChange::Link(path, file) => {
                self.durable_names.insert(path, file);
            }
            DirectoryChange::Unlink(path) => {
                self.durable_names.remove(&path);
                self.durable_directories.retain(|directory| *directory != path);
            }
            DirectoryChange::Rename(from, to, file) => {
                self.durable_names.remove(&from);
                self.durable_names.insert(to, file);
            }
            DirectoryChange::Directory(path) => self.durable_directories.push(path),
        }
    }

    fn exists(&self, path: &Path) -> bool {
        self.names.contains_key(path) || self.directories.iter().any(|directory| directory == path)
    }

    /// Returns the error kind for a missing file.
    fn missing_error_kind(&self, path: &Path) -> io::ErrorKind {
        match path
            .parent()
            .is_some_and(|parent| self.names.contains_key(parent))
        {
            true => io::ErrorKind::NotADirectory,
            false => io::ErrorKind::NotFound,
        }
    }

    fn check_not_directory(&self, path: &Path) -> io::Result<()> {
        match self.directories.iter().any(|directory| directory == path) {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok(()),
        }
    }

    /// Records a change that this node makes to the parent directory of `path`.
    fn record_change(&mut self, path: &Path, entry: DirectoryChange) {
        if let Some(parent) = path.parent() {
            self.cached_listings.remove(parent);
        }
        self.directory_changes.push(entry);
    }

    fn check_parent(&self, path: &Path) -> io::Result<()> {
        let found = path
            .parent()
            .is_some_and(|parent| self.directories.iter().any(|dir| dir == parent));
        if found {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}
