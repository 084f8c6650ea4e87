//! The context for checking a log.

use crate::finding::FindingCode;
use proofgate_evidence::ReadStorage;
use proofgate_ledger::{VerifyingKey, strip_other_signatures};

/// Largest note, in bytes. Notes are escaped and copied into entries of the aggregate log. The
/// notes of a worker have a few hundred bytes.
pub(crate) const MAX_NOTE_BYTES: usize = 16 << 10;

/// The context for checking a log.
pub(crate) struct CheckContext<'v> {
    pub(crate) storage: &'v dyn ReadStorage,
    pub(crate) key: &'v VerifyingKey,
    /// The key of the retention job, which may remove logs.
    pub(crate) retention_key: Option<&'v VerifyingKey>,
    pub(crate) now: u64,
    /// Microseconds after which records that wait for a checkpoint count as stalled.
    pub(crate) stall_timeout: u64,
}

/// Removes signature lines by unknown keys from a note. The note is copied to the aggregate log,
/// whose contents must not depend on someone who can write to the volume.
pub(crate) fn strip_unknown_signatures(
    view: &CheckContext<'_>,
    note: &str,
    origin: &str,
) -> Result<String, (FindingCode, String)> {
    let key = view.key.for_origin(origin);
    key.and_then(|key| strip_other_signatures(note, &key))
        .map_err(|error| (FindingCode::CheckpointRefused, error.to_string()))
}
