//! Calls that a program makes to the simulated disk. Each call is counted and may have an injected
//! fault. The contents that readers see are separate from the contents that survive a crash.

use super::{DirectoryChange, FileChange, FileContents, InjectedFault, SimulatedDisk, State, write_bytes};
use crate::storage::{Directory, Storage, StoredFile};
use proofgate_evidence::{ReadFile, ReadStorage};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl ReadStorage for SimulatedDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        Ok(self.open_writable(path)?)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.plain_call()?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !state.exists(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Some(names) = state.cached_listings.get(path) {
            return Ok(names.clone());
        }
        let all = state.names.keys().chain(&state.directories);
        let mut names: Vec<String> = all
            .filter(|entry| entry.parent() == Some(path))
            .filter_map(|entry| Some(entry.file_name()?.to_str()?.to_owned()))
            .collect();
        names.sort_unstable();
        Ok(names)
    }
}

impl Storage for SimulatedDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.plain_call()?;
        state.check_parent(path)?;
        if state.exists(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.directories.push(path.to_owned());
        state.record_change(path, DirectoryChange::Directory(path.to_owned()));
        Ok(())
    }

    fn open_dir(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        let mut state = self.state();
        state.plain_call()?;
        if !state.directories.iter().any(|directory| directory == path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Arc::new(SimulatedDirectory {
            disk: self.clone(),
            path: path.to_owned(),
        }))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>> {
        let mut state = self.state();
        state.plain_call()?;
        state.check_parent(path)?;
        if state.exists(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.files.len();
        state.files.push(FileContents::default());
        state.names.insert(path.to_owned(), file);
        state.record_change(path, DirectoryChange::Link(path.to_owned(), file));
        Ok(self.handle(&mut state, file))
    }

    fn open_synced(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = self.open_writable(path)?;
        file.sync()?;
        self.drop_cache(path)?;
        Ok(file)
    }

    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn StoredFile>> {
        let mut state = self.state();
        state.plain_call()?;
        if state.directories.iter().any(|directory| directory == path) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let file = *state
            .names
            .get(path)
            .ok_or_else(|| state.missing_error_kind(path))?;
        Ok(self.handle(&mut state, file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.plain_call()?;
        state.check_not_directory(to)?;
        let file = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), file);
        state.record_change(to, DirectoryChange::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.plain_call()?;
        state.check_not_directory(path)?;
        let file = state.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        let freed = state.files[file].allocated;
        if let Some(free) = &mut state.free_bytes {
            *free += freed;
        }
        state.record_change(path, DirectoryChange::Unlink(path.to_owned()));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.plain_call()?;
        let holds = |inner: &PathBuf| inner.parent() == Some(path);
        if state.names.keys().any(holds) || state.directories.iter().any(holds) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let at = state.directories.iter().position(|directory| directory == path);
        state.directories.remove(at.ok_or(io::ErrorKind::NotFound)?);
        state.record_change(path, DirectoryChange::Unlink(path.to_owned()));
        Ok(())
    }
}

struct SimulatedDirectory {
    disk: SimulatedDisk,
    path: PathBuf,
}

impl Directory for SimulatedDirectory {
    fn has_shared_locks(&self) -> bool {
        !self.disk.state().locks_are_local
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.plain_call()?;
        Ok(state.free_bytes.unwrap_or(u64::MAX))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.plain_call()?;
        let entries = std::mem::take(&mut state.directory_changes);
        for entry in entries {
            let path = match &entry {
                DirectoryChange::Link(path, _) | DirectoryChange::Rename(_, path, _) => path,
                DirectoryChange::Directory(path) | DirectoryChange::Unlink(path) => path,
            };
            if path.parent() == Some(&self.path) {
                state.make_durable(entry);
            } else {
                state.directory_changes.push(entry);
            }
        }
        Ok(())
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    file: usize,
    /// Number of this handle, which identifies the owner of a lock.
    handle: u64,
}

impl SimulatedDisk {
    /// Resets the cached view of a file to the disk contents plus the writes since the last sync.
    fn drop_cache(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.plain_call()?;
        let file = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let file = &mut state.files[file];
        let mut seen = file.disk.clone();
        for change in &file.unsynced {
            change.apply(&mut seen);
        }
        file.cache = seen;
        Ok(())
    }

    fn handle(&self, state: &mut State, file: usize) -> Arc<dyn StoredFile> {
        state.handles += 1;
        Arc::new(SimulatedFile {
            disk: self.clone(),
            file,
            handle: state.handles,
        })
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locks.get(&self.file) == Some(&self.handle) {
            state.locks.remove(&self.file);
        }
    }
}

impl ReadFile for SimulatedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.plain_call()?;
        let cache = &state.files[self.file].cache;
        let rest = cache.get(offset as usize..).unwrap_or(&[]);
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.plain_call()?;
        Ok(state.files[self.file].cache.len() as u64)
    }
}

impl StoredFile for SimulatedFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        let bytes = match state.count_call()? {
            Some(InjectedFault::Error(kind)) => return Err(kind.into()),
            Some(_) => &bytes[..bytes.len() / 2],
            None => bytes,
        };
        let end = offset + bytes.len() as u64;
        let more = end.saturating_sub(state.files[self.file].allocated);
        state.use_space(more)?;
        let file = &mut state.files[self.file];
        file.allocated = file.allocated.max(end);
        write_bytes(&mut file.cache, offset as usize, bytes);
        file.unsynced
            .push(FileChange::Write(offset as usize, bytes.to_vec()));
        Ok(bytes.len())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.plain_call()?;
        let more = bytes.saturating_sub(state.files[self.file].allocated);
        state.use_space(more)?;
        let file = &mut state.files[self.file];
        file.allocated = file.allocated.max(bytes);
        file.cache.resize(bytes as usize, 0);
        file.unsynced.push(FileChange::Length(bytes as usize));
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.plain_call()?;
        let file = &mut state.files[self.file];
        file.cache.resize(bytes as usize, 0);
        file.unsynced.push(FileChange::Length(bytes as usize));
        let freed = file.allocated.saturating_sub(bytes);
        file.allocated -= freed;
        if let Some(free) = &mut state.free_bytes {
            *free += freed;
        }
        Ok(())
    }

    fn evict(&self, bytes: u64) {
        let mut state = self.disk.state();
        let forgotten = &mut state.files[self.file].evicted;
        *forgotten = bytes.max(*forgotten);
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.disk.state();
        state.plain_call()?;
        Ok(*state.locks.entry(self.file).or_insert(self.handle) == self.handle)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state_after_hanging();
        let fault = state.count_call()?;
        let file = &mut state.files[self.file];
        if let Some(InjectedFault::Error(kind)) = fault {
            file.unsynced.clear();
            return Err(kind.into());
        }
        // Data that an earlier failed sync lost remains lost, although the cache shows it.
        for change in std::mem::take(&mut file.unsynced) {
            change.apply(&mut file.disk);
        }
        Ok(())
    }
}
