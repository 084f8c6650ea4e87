//! Heads of the access log. The access log records which reader read which data (`access-….jsonl`,
//! written beside the state by the server that answers readers). Its heads are signed with the
//! aggregate log's key and become entries of the aggregate log, so that anyone who holds a
//! checkpoint can detect a changed or removed line.

use crate::aggregate::AggregateWriter;
use crate::entry::{Entry, EntryKind};
use crate::files::{read, write};
use crate::finding::{FindingCode, RaisedFindings};
use crate::{AuditorError, StateStorage};
use proofgate_ledger::{Checkpoint, Hash};
use serde::{Deserialize, Serialize};

/// Name of the file with the newest reported head.
const ACCESS_HEAD_FILE: &str = "reads";
/// Part of the access log's name, after the name of the aggregate log and before the time at which
/// the access log was started.
const ACCESS_LOG_NAME: &str = "access";

/// A head of an access log, which is an RFC 9162 tree over the log's lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessLogHead {
    /// Start time of the log, in unix microseconds. The log is named by this time.
    pub begun: u64,
    /// Number of lines in the log.
    pub size: u64,
    /// Root over these lines.
    #[serde(with = "crate::hash_encoding::hash")]
    pub root: Hash,
}

/// The reported head of the access log, and the head to report next.
#[derive(Debug, Default)]
pub(crate) struct AccessLogReporter {
    reported: Option<AccessLogHead>,
    /// Whether `reported` has changes that are not stored in the state yet.
    unsaved: bool,
    pending: Option<AccessLogHead>,
    change_reason: Option<String>,
}

impl AccessLogReporter {
    /// Opens the stored state, updated by the newest entry of the aggregate log.
    pub(crate) fn open(state: &dyn StateStorage, newest: Option<&Entry>) -> Result<Self, AuditorError> {
        let corrupt = |reason: String| AuditorError::corrupt(ACCESS_HEAD_FILE, reason);
        let mut told = match read(state, ACCESS_HEAD_FILE)? {
            Some(bytes) => Some(serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?),
            None => None,
        };
        let mut unsaved = false;
        if let Some(entry) = newest {
            let signed = Checkpoint::parse_unverified(&entry.checkpoint)?;
            let begun = entry.origin.rsplit('/').next().and_then(|text| text.parse().ok());
            let begun = begun.ok_or_else(|| corrupt(format!("{} is not an access log", entry.origin)))?;
            let (size, root) = (signed.size, signed.root);
            told = Some(AccessLogHead { begun, size, root });
            unsaved = true;
        }
        Ok(Self {
            reported: told,
            unsaved,
            ..Self::default()
        })
    }

    /// Returns the newest reported head.
    pub(crate) fn reported_head(&self) -> Option<&AccessLogHead> {
        self.reported.as_ref()
    }

    /// Records the reason why the log differs from the reported head.
    pub(crate) fn report_change(&mut self, why: String) {
        self.change_reason = Some(why);
    }

    /// Sets the current head of the log.
    pub(crate) fn set_head(&mut self, head: AccessLogHead) {
        match &self.reported {
            Some(told) if told.begun == head.begun && *told != head && head.size <= told.size => {
                self.change_reason = Some(if head.size < told.size {
                    format!(
                        "the access log has only {} lines, but the aggregate log covers {} lines: lines were removed",
                        head.size, told.size
                    )
                } else {
                    format!(
                        "the digest of the first {} lines of the access log differs from the digest in the \
                         aggregate log: lines were changed",
                        told.size
                    )
                });
            }
            Some(told) if *told == head => {}
            _ if head.size == 0 => {}
            _ => self.pending = Some(head),
        }
    }

    /// Returns the head to report now. If the log was reported before, a head is due only on the
    /// beat.
    fn due_head(&self, beat: bool) -> Option<&AccessLogHead> {
        let begins =
            |head: &AccessLogHead| self.reported.as_ref().is_none_or(|told| told.begun != head.begun);
        self.pending.as_ref().filter(|head| beat || begins(head))
    }

    pub(crate) fn save(&mut self, state: &dyn StateStorage) -> Result<(), AuditorError> {
        if self.unsaved {
            let text = serde_json::to_vec(&self.reported);
            let text = text.map_err(|error| AuditorError::corrupt(ACCESS_HEAD_FILE, error.to_string()))?;
            write(state, ACCESS_HEAD_FILE, &text)?;
            self.unsaved = false;
        }
        Ok(())
    }

    /// Returns the entry to append now.
    pub(crate) fn entry(
        &self,
        aggregate: &AggregateWriter,
        beat: bool,
        now: u64,
    ) -> Result<Option<Entry>, AuditorError> {
        let Some(head) = self.due_head(beat) else {
            return Ok(None);
        };
        let origin = format!("{}/{ACCESS_LOG_NAME}/{}", aggregate.name(), head.begun);
        Ok(Some(Entry {
            v: 1,
            kind: EntryKind::AccessLogHead,
            time: now,
            origin: origin.clone(),
            size: head.size,
            predecessor: None,
            successor: None,
            checkpoint: aggregate.sign_for_sublog(&Checkpoint {
                origin,
                size: head.size,
                root: head.root,
            })?,
            tombstone: None,
            statement: None,
        }))
    }

    /// Marks the pending head as reported: its entry was appended.
    pub(crate) fn mark_reported(&mut self) {
        if let Some(head) = self.pending.take() {
            self.reported = Some(head);
            self.unsaved = true;
        }
    }

    pub(crate) fn raise(&mut self, aggregate: &str, raised: &mut RaisedFindings) {
        if let Some(message) = self.change_reason.take() {
            let origin = format!("{aggregate}/{ACCESS_LOG_NAME}");
            raised.raise_confirmed(FindingCode::AccessLogChanged, &origin, "", message);
        }
    }
}
