//! What is known of a log's erasures.

use crate::finding::FindingCode;
use crate::statement::Statement;
use proofgate_ledger::{Hash, leaf_hash, node_hash};
use serde::{Deserialize, Serialize};

/// What was told of a log's erasures: so many, in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportedErasures {
    pub(crate) count: u64,
    /// Over their digests.
    #[serde(with = "crate::text::hash")]
    pub(crate) chain: Hash,
    /// Number of the newest entry.
    index: u64,
}

impl ReportedErasures {
    pub(crate) fn extend_chain(chain: &Hash, digest: &str) -> Hash {
        node_hash(chain, &leaf_hash(digest.as_bytes()))
    }

    /// Takes that an entry was appended.
    pub(crate) fn record(&mut self, statement: &Statement, index: u64) {
        if self.count == 0 || index > self.index {
            self.count += 1;
            self.chain = Self::extend_chain(&self.chain, &statement.sha256);
            self.index = index;
        }
    }
}

/// What a log's erasures looked like when they were read last.
#[derive(Debug, Default)]
pub(crate) struct ErasureFileState {
    /// Bytes of a file of which everything was taken.
    pub(crate) length: Option<u64>,
    /// What is wrong with the file.
    pub(crate) flaw: Option<(FindingCode, String)>,
    /// What waits to be told.
    pub(crate) pending: Vec<Statement>,
    /// When they were looked for last, in unix microseconds; 0 for never.
    pub(crate) checked_at: u64,
}

impl ErasureFileState {
    /// As it is after a start; it was looked for at that time.
    pub(crate) fn with_checked_at(visited: u64) -> Self {
        Self {
            checked_at: visited,
            ..Self::default()
        }
    }
}
