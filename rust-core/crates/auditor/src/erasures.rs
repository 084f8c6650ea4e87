//! The auditor's state of a log's erasures.

use crate::finding::FindingCode;
use crate::statement::Statement;
use proofgate_ledger::{Hash, leaf_hash, node_hash};
use serde::{Deserialize, Serialize};

/// The reported erasures of a log, as their number in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportedErasures {
    pub(crate) count: u64,
    /// Hash chain of the digests of these erasures.
    #[serde(with = "crate::hash_encoding::hash")]
    pub(crate) chain: Hash,
    /// Index of the newest entry about these erasures.
    index: u64,
}

impl ReportedErasures {
    pub(crate) fn extend_chain(chain: &Hash, digest: &str) -> Hash {
        node_hash(chain, &leaf_hash(digest.as_bytes()))
    }

    /// Records that an entry was appended.
    pub(crate) fn record(&mut self, statement: &Statement, index: u64) {
        if self.count == 0 || index > self.index {
            self.count += 1;
            self.chain = Self::extend_chain(&self.chain, &statement.sha256);
            self.index = index;
        }
    }
}

/// The erasures file of a log as it was read last.
#[derive(Debug, Default)]
pub(crate) struct ErasureFileState {
    /// Length of the file in bytes when the whole file was processed.
    pub(crate) length: Option<u64>,
    /// The problem with the file, if any.
    pub(crate) flaw: Option<(FindingCode, String)>,
    /// Statements that wait to be reported.
    pub(crate) pending: Vec<Statement>,
    /// Time of the last check, in unix microseconds; 0 for never.
    pub(crate) checked_at: u64,
}

impl ErasureFileState {
    /// Returns the state after a start, with the time of the last check.
    pub(crate) fn with_checked_at(visited: u64) -> Self {
        Self {
            checked_at: visited,
            ..Self::default()
        }
    }
}
