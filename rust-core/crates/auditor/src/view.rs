//! What a look at a log needs beside it.

use crate::finding::Code;
use proofgate_evidence::ReadStorage;
use proofgate_ledger::{VerifyingKey, signed_alone};

/// Notes are repeated in entries of the aggregate log, escaped; a worker's are a few hundred bytes long.
pub(crate) const MAX_NOTE: usize = 16 << 10;

/// What a look needs beside the log.
pub(crate) struct View<'v> {
    pub(crate) storage: &'v dyn ReadStorage,
    pub(crate) key: &'v VerifyingKey,
    /// The key of whoever may remove logs.
    pub(crate) keeping: Option<&'v VerifyingKey>,
    pub(crate) now: u64,
    /// Microseconds until records that wait for a checkpoint are a stall.
    pub(crate) stall: u64,
}

/// A note without the lines of keys that nobody knows: it is told in the aggregate log, and who writes the volume is not to
/// have a say in that.
pub(crate) fn alone(view: &View<'_>, note: &str, origin: &str) -> Result<String, (Code, String)> {
    let key = view.key.for_origin(origin);
    key.and_then(|key| signed_alone(note, &key))
        .map_err(|error| (Code::CheckpointRefused, error.to_string()))
}
