//! The `checkpoint` file: the newest signed note of a log, replaced whole by write, sync, rename, directory sync.

use crate::WalError;
use crate::storage::{Directory, Storage, read_full, write_full};
use proofgate_ledger::MAX_NOTE;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file.
pub(crate) const CHECKPOINT: &str = "checkpoint";
const TEMPORARY: &str = "checkpoint.tmp";
/// Name of the note that covers all that the preceding incarnation left, signed by its successor and kept there.
const PREDECESSOR: &str = "predecessor.checkpoint";

/// Replaces the checkpoint of an incarnation. `directory` must have been open throughout, so that its sync sees every
/// failure. An error from the call `sync` means that nothing is known about the disk any more.
pub(crate) fn replace(
    storage: &dyn Storage,
    directory: &dyn Directory,
    dir: &Path,
    note: &str,
) -> Result<(), WalError> {
    let (temporary, path) = (dir.join(TEMPORARY), dir.join(CHECKPOINT));
    let file = match storage.create(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Left by an attempt that found no space.
            storage
                .remove(&temporary)
                .map_err(WalError::io("remove", &temporary))?;
            storage.create(&temporary)
        }
        other => other,
    }
    .map_err(WalError::io("create", &temporary))?;
    write_full(&*file, note.as_bytes(), 0).map_err(WalError::io("write", &temporary))?;
    file.sync().map_err(WalError::io("sync", &temporary))?;
    storage
        .rename(&temporary, &path)
        .map_err(WalError::io("rename", &temporary))?;
    directory.sync().map_err(WalError::io("sync", dir))
}

/// Stores, in the directory of an incarnation that has just been created, the last checkpoint of its predecessor.
pub(crate) fn write_predecessor(storage: &dyn Storage, dir: &Path, note: &str) -> Result<(), WalError> {
    let path = dir.join(PREDECESSOR);
    let directory = storage.open_dir(dir).map_err(WalError::io("open", dir))?;
    let file = storage.create(&path).map_err(WalError::io("create", &path))?;
    write_full(&*file, note.as_bytes(), 0).map_err(WalError::io("write", &path))?;
    file.sync().map_err(WalError::io("sync", &path))?;
    directory.sync().map_err(WalError::io("sync", dir))
}

/// The stored last checkpoint of an incarnation's predecessor; `None` when the predecessor's own covers everything.
pub(crate) fn read_predecessor(storage: &dyn Storage, dir: &Path) -> Result<Option<String>, WalError> {
    read_note(storage, dir.join(PREDECESSOR), false)
}

/// The stored note; `None` when there is no checkpoint yet.
pub(crate) fn read(storage: &dyn Storage, dir: &Path, from_disk: bool) -> Result<Option<String>, WalError> {
    read_note(storage, dir.join(CHECKPOINT), from_disk)
}

fn read_note(storage: &dyn Storage, path: PathBuf, from_disk: bool) -> Result<Option<String>, WalError> {
    let file = match storage.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(WalError::io("open", &path)(error)),
    };
    if from_disk {
        file.sync().map_err(WalError::io("sync", &path))?;
        file.drop_cache().map_err(WalError::io("drop cache", &path))?;
    }
    let mut bytes = vec![0; MAX_NOTE + 1];
    let read = read_full(&*file, &mut bytes, 0).map_err(WalError::io("read", &path))?;
    bytes.truncate(read);
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|error| WalError::Corruption {
            path,
            offset: error.utf8_error().valid_up_to() as u64,
            reason: "the checkpoint is not UTF-8".to_owned(),
        })
}
