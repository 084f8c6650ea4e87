//! The `checkpoint` file, which holds the newest signed note of a log, and the note that a
//! successor stores for its predecessor.

use crate::{EvidenceError, ReadStorage, read_full};
use proofgate_ledger::MAX_NOTE_BYTES;
use std::io;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// Name of the checkpoint file.
pub const CHECKPOINT_FILE: &str = "checkpoint";

/// Returns the file name of the note that covers all records of an ended incarnation. A successor
/// signs this note and stores it in its own directory.
#[must_use]
pub fn successor_note_name(incarnation: Ulid) -> String {
    format!("{incarnation}.checkpoint")
}

/// Returns the stored note of an incarnation; `None` when there is no checkpoint yet.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Corruption`] when the file is not text.
pub fn read(storage: &dyn ReadStorage, dir: &Path) -> Result<Option<String>, EvidenceError> {
    read_note(storage, dir.join(CHECKPOINT_FILE))
}

/// Returns the last checkpoint of an incarnation as signed by the successor whose directory is
/// `dir`; `None` when the incarnation's own checkpoint covers all its records.
///
/// # Errors
/// Same as [`read`].
pub fn read_successor_note(
    storage: &dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
) -> Result<Option<String>, EvidenceError> {
    read_note(storage, dir.join(successor_note_name(incarnation)))
}

fn read_note(storage: &dyn ReadStorage, path: PathBuf) -> Result<Option<String>, EvidenceError> {
    let file = match storage.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EvidenceError::io("open", &path)(error)),
    };
    let mut bytes = vec![0; MAX_NOTE_BYTES + 1];
    let read = read_full(&*file, &mut bytes, 0).map_err(EvidenceError::io("read", &path))?;
    bytes.truncate(read);
    // Release the capacity for the largest possible note, because the caller keeps the buffer.
    bytes.shrink_to_fit();
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|error| EvidenceError::Corruption {
            path,
            offset: error.utf8_error().valid_up_to() as u64,
            reason: "the checkpoint is not UTF-8".to_owned(),
        })
}
