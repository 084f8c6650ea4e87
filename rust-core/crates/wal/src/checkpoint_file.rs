//! Replaces small files such as `checkpoint` atomically: write, sync, rename, directory sync.

use crate::WalError;
use crate::storage::{Directory, Storage, write_full};
use proofgate_evidence::checkpoint_file::{CHECKPOINT_FILE, successor_note_name};
use std::io;
use std::path::Path;
use ulid::Ulid;

const TEMPORARY_FILE: &str = "checkpoint.tmp";

/// Replaces the checkpoint of an incarnation. `directory` must have been open since the start, so
/// that its sync reports every failure. After an error from `sync`, the state of the disk is
/// unknown.
pub(crate) fn replace_checkpoint(
    storage: &dyn Storage,
    directory: &dyn Directory,
    dir: &Path,
    note: &str,
) -> Result<(), WalError> {
    replace_file(
        storage,
        directory,
        dir,
        (TEMPORARY_FILE, CHECKPOINT_FILE),
        note.as_bytes(),
    )
}

/// Replaces a small file of an incarnation through a temporary one. The file is on the disk when
/// this function returns.
///
/// # Errors
/// [`WalError::Evidence`]; the file then has the old or the new contents.
pub fn replace_file(
    storage: &dyn Storage,
    directory: &dyn Directory,
    dir: &Path,
    (temporary, name): (&str, &str),
    bytes: &[u8],
) -> Result<(), WalError> {
    let (temporary, path) = (dir.join(temporary), dir.join(name));
    let file = match storage.create(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // An earlier attempt that ran out of space may have left this file.
            storage
                .remove(&temporary)
                .map_err(WalError::io("remove", &temporary))?;
            storage.create(&temporary)
        }
        other => other,
    }
    .map_err(WalError::io("create", &temporary))?;
    write_full(&*file, bytes, 0).map_err(WalError::io("write", &temporary))?;
    file.sync().map_err(WalError::io("sync", &temporary))?;
    storage
        .rename(&temporary, &path)
        .map_err(WalError::io("rename", &temporary))?;
    directory.sync().map_err(WalError::io("sync", dir))
}

/// Stores the last checkpoint of an earlier incarnation in the directory of a newly created one.
pub(crate) fn write_successor_note(
    storage: &dyn Storage,
    dir: &Path,
    incarnation: Ulid,
    note: &str,
) -> Result<(), WalError> {
    let path = dir.join(successor_note_name(incarnation));
    let directory = storage.open_dir(dir).map_err(WalError::io("open", dir))?;
    let file = storage.create(&path).map_err(WalError::io("create", &path))?;
    write_full(&*file, note.as_bytes(), 0).map_err(WalError::io("write", &path))?;
    file.sync().map_err(WalError::io("sync", &path))?;
    directory.sync().map_err(WalError::io("sync", dir))
}
