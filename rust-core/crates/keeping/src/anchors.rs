//! The retention job's statements in the auditor's log. If anchoring is required, nothing is
//! destroyed before its statement is in this log.

use crate::RetentionError;
use crate::reason::{RetentionReason, reason};
use proofgate_evidence::ReadStorage;
use proofgate_evidence::hold_statements;
use proofgate_evidence::key_successions::ledger_directory;
use proofgate_evidence::note_files::{digest, file_name_for_digest};
use proofgate_ledger::{HoldChange, VerifyingKey};
use std::collections::BTreeSet;
use std::path::Path;

/// The SHA-256 of each statement in the auditor's log, in 64 lower-case hexadecimal digits,
/// tombstones included. The caller has verified the log.
#[derive(Clone, Debug, Default)]
pub struct Anchors {
    digests: BTreeSet<String>,
    /// The same digests as names of files beside the shards.
    file_names: BTreeSet<String>,
}

impl Anchors {
    /// Creates the set from these digests.
    #[must_use]
    pub fn new(digests: BTreeSet<String>) -> Self {
        let names = digests
            .iter()
            .map(|digest| file_name_for_digest(digest))
            .collect();
        Self {
            digests,
            file_names: names,
        }
    }

    pub(crate) fn contains(&self, note: &str) -> bool {
        self.digests.contains(&digest(note))
    }

    /// Returns whether the statement in a file named by its digest is anchored.
    pub(crate) fn contains_file(&self, path: &Path) -> bool {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| self.file_names.contains(&*name))
    }
}

/// Returns the numbers of the holds whose release statement in the ledger at a path is among
/// `anchors`.
pub(crate) fn anchored_releases(
    storage: &dyn ReadStorage,
    path: &Path,
    (key, keeping): (&VerifyingKey, &VerifyingKey),
    anchors: &Anchors,
) -> Result<BTreeSet<u64>, RetentionError> {
    let stated = hold_statements::read(storage, &ledger_directory(storage, path)?, key.name(), keeping)?;
    let anchored = stated.into_iter().filter(|(file, _)| anchors.contains_file(file));
    let releases = anchored.filter_map(|(_, read)| read.ok());
    let releases = releases.filter(|read| matches!(read.change, HoldChange::Released { .. }));
    Ok(releases.map(|read| read.hold).collect())
}

/// Returns the reason why a statement is not carried out yet. `note` is its signed note; `None` if
/// there is no note.
pub(crate) fn not_anchored_reason(note: Option<&str>) -> RetentionReason {
    let text =
        "the statement is signed, but the auditor's log does not contain it yet: run this command again";
    RetentionReason {
        statement: note.map(digest),
        ..reason("not_anchored", text)
    }
}
