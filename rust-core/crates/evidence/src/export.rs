//! Exports the leaves of a log for third-party tools.

use crate::checkpoint_file::{self, CHECKPOINT_FILE};
use crate::layout::incarnation_of;
use crate::log_reader::{LogItem, LogReader};
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::Checkpoint;
use std::io;
use std::path::Path;

/// Writes the leaves of an incarnation in order, each as a big-endian 32-bit length followed by its
/// bytes, and returns the number of leaves. The export ends where the log ends, without a torn
/// tail.
///
/// # Errors
/// [`EvidenceError::Corruption`] when the log has fewer records than its checkpoint covers;
/// [`EvidenceError::Io`], also for `out`; [`EvidenceError::NotALog`].
pub fn export_leaves(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    out: &mut impl io::Write,
) -> Result<u64, EvidenceError> {
    // Read the checkpoint before the records, because a log that is being written only grows.
    let covered = match checkpoint_file::read(storage, incarnation_dir)? {
        Some(note) => Checkpoint::parse_unverified(&note)?.size,
        None => 0,
    };
    let mut log = LogReader::open(storage, incarnation_dir, incarnation_of(incarnation_dir)?)?;
    let failed = |error| EvidenceError::io("export", incarnation_dir)(error);
    let mut leaves = 0;
    let mut flaw = None;
    loop {
        match log.next()? {
            LogItem::Record(stored) if stored.seq == leaves => {
                let payload = log.payload(&stored);
                let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                out.write_all(&len.to_be_bytes())
                    .and_then(|()| out.write_all(payload))
                    .map_err(failed)?;
                leaves += 1;
            }
            // No record is missing if the log continues after trailing data.
            LogItem::Flaw(found) if found.is_trailing_data => flaw = Some(found),
            LogItem::Flaw(found) => {
                flaw = Some(found);
                break;
            }
            LogItem::Record(_) | LogItem::End => break,
        }
    }
    out.flush().map_err(failed)?;
    if leaves < covered {
        let (path, offset, reason) = match flaw {
            Some(flaw) => (flaw.path, flaw.offset, flaw.reason),
            None => (
                incarnation_dir.join(CHECKPOINT_FILE),
                0,
                "records are missing at the end".to_owned(),
            ),
        };
        return Err(EvidenceError::Corruption { path, offset, reason });
    }
    Ok(leaves)
}
