//! Directories of signed notes beside the shards. Each note is in a file that is named by the
//! note's digest.

use crate::{EvidenceError, ReadStorage, read_full};
use proofgate_ledger::MAX_STATEMENT_BYTES;
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// Suffix of the file names.
const SUFFIX: &str = ".note";

/// Returns the SHA-256 of a note, as 64 lower-case hexadecimal digits.
#[must_use]
pub fn digest(note: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(note.as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the name of the file for this note; distinct notes have distinct names.
#[must_use]
pub fn file_name(note: &str) -> String {
    file_name_for_digest(&digest(note))
}

/// Returns the name of the file for the note with this digest.
#[must_use]
pub fn file_name_for_digest(digest: &str) -> String {
    let begin = digest.get(..32).unwrap_or(digest);
    format!("{begin}{SUFFIX}")
}

/// A file with its text, or with the reason why it has no text.
type NoteFile = (PathBuf, Result<String, String>);

/// Returns the names of the notes in a directory, in order; empty when there is no directory.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Corruption`] when there are more than `most` files.
pub fn list_names(storage: &dyn ReadStorage, dir: &Path, most: usize) -> Result<Vec<String>, EvidenceError> {
    let mut names = match storage.list(dir) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        other => other.map_err(EvidenceError::io("list", dir))?,
    };
    names.retain(|name| name.ends_with(SUFFIX));
    names.sort_unstable();
    if names.len() > most {
        return Err(EvidenceError::Corruption {
            path: dir.to_owned(),
            offset: 0,
            reason: format!("there are too many statements: {}", names.len()),
        });
    }
    Ok(names)
}

/// Reads the notes of a directory, in the order of their names; empty when there is no directory.
///
/// # Errors
/// Same as [`list_names`].
pub(crate) fn read(
    storage: &dyn ReadStorage,
    dir: &Path,
    most: usize,
) -> Result<Vec<NoteFile>, EvidenceError> {
    let mut notes = Vec::new();
    for name in list_names(storage, dir, most)? {
        let path = dir.join(name);
        let text = read_text(storage, &path)?;
        notes.push((path, text));
    }
    Ok(notes)
}

/// Reads the text of a file. The inner error is the reason why the file has no text.
///
/// # Errors
/// [`EvidenceError::Io`].
pub fn read_text(storage: &dyn ReadStorage, path: &Path) -> Result<Result<String, String>, EvidenceError> {
    match read_note(storage, path) {
        Ok(bytes) => Ok(String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())),
        // Anyone who can write to the volume may have created such a file. A file that cannot be
        // read for another reason may be a note that ends the validity of a worker's key.
        Err(EvidenceError::Io { source, .. }) if is_not_a_file(&source) => Ok(Err(source.to_string())),
        Err(error) => Err(error),
    }
}

fn is_not_a_file(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, IsADirectory, NotADirectory};
    matches!(error.kind(), InvalidData | IsADirectory | NotADirectory)
}

fn read_note(storage: &dyn ReadStorage, path: &Path) -> Result<Vec<u8>, EvidenceError> {
    let file = storage.open(path).map_err(EvidenceError::io("open", path))?;
    let mut bytes = vec![0; MAX_STATEMENT_BYTES + 1];
    let length = read_full(&*file, &mut bytes, 0).map_err(EvidenceError::io("read", path))?;
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileStorage;

    #[test]
    fn what_is_no_file_is_a_note_that_is_refused_and_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("0.note")).unwrap();
        std::fs::write(folder.path().join("1.note"), "note").unwrap();
        let notes = read(&FileStorage, folder.path(), 2).unwrap();
        assert!(notes[0].1.is_err());
        assert_eq!(notes[1], (folder.path().join("1.note"), Ok("note".to_owned())));
    }

    #[test]
    fn a_note_that_cannot_be_read_is_not_taken_for_none() {
        let folder = tempfile::tempdir().unwrap();
        // The first byte of this file cannot be read.
        std::os::unix::fs::symlink("/proc/self/mem", folder.path().join("0.note")).unwrap();
        let failed = read(&FileStorage, folder.path(), 1).unwrap_err();
        assert_eq!(failed.code(), "ledger_io");
    }
}
