//! What the auditor's log has of this keeper's statements: where that is asked for, nothing is destroyed before.

use crate::plan::{Reason, reason};
use proofgate_evidence::note_files::{digest, name_of};
use std::collections::BTreeSet;
use std::path::Path;

/// The SHA-256 of each statement that is in the auditor's log, in 64 lower-case hexadecimal digits; of tombstones, too.
/// Whoever reads them has verified that log.
#[derive(Clone, Debug, Default)]
pub struct Anchors {
    digests: BTreeSet<String>,
    /// As files beside the shards are named.
    names: BTreeSet<String>,
}

impl Anchors {
    /// Those of these digests.
    #[must_use]
    pub fn new(digests: BTreeSet<String>) -> Self {
        let names = digests.iter().map(|digest| name_of(digest)).collect();
        Self { digests, names }
    }

    pub(crate) fn has(&self, note: &str) -> bool {
        self.digests.contains(&digest(note))
    }

    /// Whether it has the statement in a file that is named by its digest.
    pub(crate) fn has_file(&self, path: &Path) -> bool {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| self.names.contains(&*name))
    }
}

/// Why what this note says is not carried out yet; `None` where there is none.
pub(crate) fn not_anchored(note: Option<&str>) -> Reason {
    let text = "it is signed, and the auditor's log does not have that yet: run this again";
    Reason {
        statement: note.map(digest),
        ..reason("not_anchored", text)
    }
}
