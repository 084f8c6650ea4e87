//! Comparison of logs with checkpoints that were stored outside the volume.

use super::scanned_log::StatedTreeHead;
use crate::HeldCheckpoint;
use crate::report::{Finding, Verdict};
use std::collections::BTreeMap;
use std::path::Path;
use ulid::Ulid;

/// Returns the tree head that a held checkpoint requires of its log.
pub(super) fn required_head(held: &HeldCheckpoint) -> StatedTreeHead {
    StatedTreeHead {
        size: held.checkpoint.size,
        root: held.checkpoint.root,
        file: held.file.clone(),
        source: format!(
            "the checkpoint of {} held outside the ledger",
            held.checkpoint.origin
        ),
        is_own: false,
    }
}

/// The held checkpoints by incarnation, without the checkpoints that were already matched to a log.
pub(super) struct HeldCheckpoints<'h> {
    by_incarnation: BTreeMap<String, Vec<&'h HeldCheckpoint>>,
    count: u64,
}

impl<'h> HeldCheckpoints<'h> {
    pub(super) fn new(held: &'h [HeldCheckpoint]) -> Self {
        let mut of: BTreeMap<String, Vec<&HeldCheckpoint>> = BTreeMap::new();
        for one in held {
            let origin = &one.checkpoint.origin;
            let incarnation = origin.rsplit('/').next().unwrap_or(origin);
            of.entry(incarnation.to_owned()).or_default().push(one);
        }
        Self {
            by_incarnation: of,
            count: held.len() as u64,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn len(&self) -> u64 {
        self.count
    }

    /// Removes and returns the held checkpoints of an incarnation that is present.
    pub(super) fn match_incarnation(&mut self, incarnation: Ulid) -> Vec<&'h HeldCheckpoint> {
        self.by_incarnation
            .remove(&incarnation.to_string())
            .unwrap_or_default()
    }

    /// Returns findings for the held checkpoints whose log is not under `path`.
    pub(super) fn unmatched(&self, path: &Path) -> Vec<Finding> {
        let unmet = self.by_incarnation.values().flatten();
        unmet
            .map(|one| Finding {
                file: one.file.display().to_string(),
                offset: 0,
                verdict: Verdict::Diverged,
                code: None,
                message: format!(
                    "it covers {} records of {}, but that log is not in the directory {}",
                    one.checkpoint.size,
                    one.checkpoint.origin,
                    path.display()
                ),
            })
            .collect()
    }
}
