//! Entries of the aggregate log.

use crate::AuditorError;
use crate::log::{AggregatedLog, Log};
use crate::statement::Statement;
use serde::{Deserialize, Serialize};

/// Why a head is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// The first that was accepted of a log.
    Open,
    /// A newer one.
    Head,
    /// The last one: the log is sealed, or its successor has recorded its end.
    End,
    /// It was removed by right, and is read no more. It has ended.
    Removed,
    /// A head of the log of who read what, signed with the aggregate log's key.
    Access,
    /// Something that the retention job signed. It has no checkpoint.
    Statement,
}

/// One entry: a head of a log that the auditor has verified, or of the log of who read what, or what the retention job
/// signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of the format: 1.
    pub v: u32,
    /// Why it is told.
    pub kind: EntryKind,
    /// When the head was accepted, in unix microseconds, by the auditor's clock.
    pub time: u64,
    /// The log.
    pub origin: String,
    /// Its records.
    pub size: u64,
    /// The log before it, as its `open` says.
    pub predecessor: Option<String>,
    /// The log that goes on, as its seal says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// The signed checkpoint, with the line of the ledger's key alone; empty of a statement.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// The tombstone of a log that was removed, with the line of the retention key alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tombstone: Option<String>,
    /// What the retention job signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<Statement>,
}

impl Entry {
    /// What is to be told of a log that has a head; `None` when the newest entry says it already. Of a log that goes on,
    /// heads after the first wait for the `beat`.
    pub(crate) fn for_log_if_due(log: &Log, beat: bool) -> Option<Self> {
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

    /// Reads an entry.
    ///
    /// # Errors
    /// [`AuditorError::StateCorrupt`].
    pub fn decode(bytes: &[u8]) -> Result<Self, AuditorError> {
        serde_json::from_slice(bytes)
            .map_err(|error| AuditorError::corrupt("tile/entries", error.to_string()))
    }
}

impl Statement {
    /// The entry that tells it, about a log or about the ledger.
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
