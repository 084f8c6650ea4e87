//! Entries of the aggregate log.

use crate::AuditorError;
use crate::log::{AggregatedLog, Log};
use crate::statement::Statement;
use serde::{Deserialize, Serialize};

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// The first accepted head of a log.
    Open,
    /// A newer head of a log.
    Head,
    /// The last head of a log that is sealed, or whose end its successor has recorded.
    End,
    /// The retention job removed an ended log, which is no longer read.
    Removed,
    /// A head of an access log, signed with the aggregate log's key.
    #[serde(rename = "access")]
    AccessLogHead,
    /// A statement that the retention job signed. It has no checkpoint.
    Statement,
}

/// An entry of the aggregate log: a head of a log that the auditor has verified, a head of an access
/// log, or a statement of the retention job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of the format: 1.
    pub v: u32,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Time at which the head was accepted, in unix microseconds, by the auditor's clock.
    pub time: u64,
    /// The log's origin.
    pub origin: String,
    /// Number of records in the log.
    pub size: u64,
    /// The log's predecessor, according to its `open`.
    pub predecessor: Option<String>,
    /// The log's successor, according to its seal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// The signed checkpoint, with only the signature line of the ledger's key; empty for a statement.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// The tombstone of a removed log, with only the signature line of the retention key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tombstone: Option<String>,
    /// The statement that the retention job signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<Statement>,
}

impl Entry {
    /// Returns the entry that is due for a log with a head; `None` when the log's newest entry
    /// already states this head. For a running log, heads after the first are due only on the
    /// `beat`.
    pub(crate) fn due_for_log(log: &Log, beat: bool) -> Option<Self> {
        let head = log.row.head.as_ref()?;
        let kind = match log.row.told {
            told if log.row.removed.is_some() && !told.is_some_and(|told| told.removed) => EntryKind::Removed,
            None if log.row.ended => EntryKind::End,
            None => EntryKind::Open,
            Some(told) if log.row.ended && !told.end => EntryKind::End,
            Some(told) if beat && told.size < head.size => EntryKind::Head,
            Some(_) => return None,
        };
        Some(Self {
            v: 1,
            kind,
            time: head.at,
            origin: log.origin.clone(),
            size: head.size,
            predecessor: log
                .row
                .facts
                .predecessor
                .map(|named| named.incarnation.to_string()),
            successor: log.row.facts.successor.map(|named| named.to_string()),
            checkpoint: head.note.clone(),
            tombstone: log.row.removed.clone(),
            statement: None,
        })
    }

    pub(crate) fn to_aggregated_log(&self, index: u64) -> AggregatedLog {
        AggregatedLog {
            index,
            size: self.size,
            end: matches!(self.kind, EntryKind::End | EntryKind::Removed),
            removed: self.kind == EntryKind::Removed,
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, AuditorError> {
        serde_json::to_vec(self).map_err(|error| AuditorError::corrupt(&self.origin, error.to_string()))
    }

    /// Decodes an entry.
    ///
    /// # Errors
    /// [`AuditorError::StateCorrupt`].
    pub fn decode(bytes: &[u8]) -> Result<Self, AuditorError> {
        serde_json::from_slice(bytes)
            .map_err(|error| AuditorError::corrupt("tile/entries", error.to_string()))
    }
}

impl Statement {
    /// Wraps the statement in an entry, for a log or for the ledger.
    pub(crate) fn into_entry(self, origin: &str, size: u64, now: u64) -> Entry {
        Entry {
            v: 1,
            kind: EntryKind::Statement,
            time: now,
            origin: origin.to_owned(),
            size,
            predecessor: None,
            successor: None,
            checkpoint: String::new(),
            tombstone: None,
            statement: Some(self),
        }
    }
}
