//! What a look at a log needs beside it.

use crate::finding::FindingCode;
use proofgate_evidence::ReadStorage;
use proofgate_ledger::{VerifyingKey, strip_other_signatures};

/// Notes are repeated in entries of the aggregate log, escaped; a worker's are a few hundred bytes long.
pub(crate) const MAX_NOTE_BYTES: usize = 16 << 10;

/// What a look needs beside the log.
pub(crate) struct CheckContext<'v> {
    pub(crate) storage: &'v dyn ReadStorage,
    pub(crate) key: &'v VerifyingKey,
    /// The key of whoever may remove logs.
    pub(crate) retention_key: Option<&'v VerifyingKey>,
    pub(crate) now: u64,
    /// Microseconds until records that wait for a checkpoint are a stall.
    pub(crate) stall_timeout: u64,
}

/// A note without the lines of keys that nobody knows: it is told in the aggregate log, and who writes the volume is not to
/// have a say in that.
pub(crate) fn strip_unknown_signatures(
    view: &CheckContext<'_>,
    note: &str,
    origin: &str,
) -> Result<String, (FindingCode, String)> {
    let key = view.key.for_origin(origin);
    key.and_then(|key| strip_other_signatures(note, &key))
        .map_err(|error| (FindingCode::CheckpointRefused, error.to_string()))
}
