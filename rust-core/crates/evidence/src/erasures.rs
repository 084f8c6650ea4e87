//! The `erasures` file of a log: concatenated notes signed by the retention job. Each note states
//! which salts the job destroyed.

use crate::consistency::split_notes;
use crate::{EvidenceError, ReadStorage, read_full};
use proofgate_ledger::{Erasure, VerifyingKey};
use std::io;
use std::path::Path;

/// Name of the erasures file.
pub const ERASURES_FILE: &str = "erasures";
/// Largest file that is read, in bytes. It can hold about thirty thousand notes.
pub const MAX_ERASURES_BYTES: u64 = 16 << 20;

/// Returns the text of the erasures file; empty when there is no file.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Corruption`] when the file is not text, or too long.
pub fn read_text(storage: &dyn ReadStorage, dir: &Path) -> Result<String, EvidenceError> {
    let path = dir.join(ERASURES_FILE);
    let file = match storage.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(EvidenceError::io("open", &path)(error)),
    };
    let refused = |offset, reason: String| EvidenceError::Corruption {
        path: path.clone(),
        offset,
        reason,
    };
    let length = file.len().map_err(EvidenceError::io("stat", &path))?;
    let Some(length) = usize::try_from(length)
        .ok()
        .filter(|_| length <= MAX_ERASURES_BYTES)
    else {
        return Err(refused(0, format!("{length} bytes of erasures exceed the limit")));
    };
    let mut bytes = vec![0; length];
    let read = read_full(&*file, &mut bytes, 0).map_err(EvidenceError::io("read", &path))?;
    bytes.truncate(read);
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        refused(at, "the erasures are not UTF-8".to_owned())
    })
}

/// Returns the notes in the text, in their order.
#[must_use]
pub fn notes(text: &str) -> Vec<&str> {
    split_notes(text)
}

/// Parses the erasures of a log with this origin and size. For a refused note, returns the reason.
#[must_use]
pub fn read(text: &str, origin: &str, size: u64, keeping: &VerifyingKey) -> Vec<Result<Erasure, String>> {
    let notes = split_notes(text).into_iter();
    notes
        .map(|note| {
            let erasure = Erasure::verify(note, keeping).map_err(|error| error.to_string())?;
            match (erasure.origin.as_str(), erasure.size) == (origin, size) {
                true => Ok(erasure),
                false => Err(format!(
                    "it names the log {} with {} records, but this is the log {origin} with {size} records",
                    erasure.origin, erasure.size
                )),
            }
        })
        .collect()
}
