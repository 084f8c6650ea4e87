//! Statements beside the shards, about holds and about destroyed shred keys. Each statement is
//! reported once.

use crate::AuditorError;
use crate::check_context::CheckContext;
use crate::entry::Entry;
use crate::files::{read, write};
use crate::finding::{FindingCode, RaisedFindings};
use crate::log::Catalogue;
use crate::reachability::is_unreachable;
use crate::statement::{Statement, StatementKind, check_time};
use proofgate_evidence::EvidenceError;
use proofgate_evidence::hold_statements::{self, HOLD_STATEMENTS_DIR};
use proofgate_evidence::key_destructions::{self, KEY_DESTRUCTIONS_DIR};
use proofgate_evidence::note_files::{digest, file_name_for_digest, list_names, read_text};
use proofgate_ledger::{HoldChange, HoldStatement, KeyDestruction, VerifyingKey};
use proofgate_state::StateStorage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Name of the file that lists the reported files, as `<folder>/<name>`.
const REPORTED_FILE: &str = "statements";
/// Name of the file with the times of the last checks.
const CHECK_TIMES_FILE: &str = "visited";
/// Most new files that are read in one check.
const MAX_FILES_PER_PASS: usize = 256;
const FOLDERS: [(&str, usize); 2] = [
    (HOLD_STATEMENTS_DIR, hold_statements::MAX_FILES),
    (KEY_DESTRUCTIONS_DIR, key_destructions::MAX_FILES),
];

/// Times of the last checks in unix microseconds; 0 for never.
#[derive(Debug, Default, Serialize, Deserialize)]
struct CheckTimes {
    /// Time of the last check for statements beside the shards.
    ledger: u64,
    /// Time of the last check for erasures, by shard. This is the time for the shard's least
    /// recently checked log.
    shards: BTreeMap<String, u64>,
}

/// The auditor's state of the statements beside the shards.
#[derive(Debug, Default)]
pub(crate) struct StatementTracker {
    reported: BTreeSet<String>,
    /// Whether `reported` has changes that are not stored in the state yet.
    unsaved: bool,
    check_times: CheckTimes,
    /// Files that are not valid statements, each with the reason.
    refused: BTreeMap<String, String>,
    /// Statements that wait to be reported, with their files.
    pending: Vec<(String, Statement)>,
}

impl StatementTracker {
    /// Opens the stored state.
    pub(crate) fn open(state: &dyn StateStorage) -> Result<Self, AuditorError> {
        Ok(Self {
            reported: load(state, REPORTED_FILE)?,
            check_times: load(state, CHECK_TIMES_FILE)?,
            ..Self::default()
        })
    }

    /// Returns the time of the last check of a shard's erasures, in unix microseconds; 0 for never.
    pub(crate) fn last_check_time(&self, shard: &str) -> u64 {
        self.check_times.shards.get(shard).copied().unwrap_or(0)
    }

    /// Replays an entry that the state may not contain.
    pub(crate) fn replay(&mut self, statement: &Statement) {
        self.unsaved |= self.reported.insert(statement_file(statement));
    }

    /// Checks the statements beside the shards of the ledger at a path.
    pub(crate) fn check(&mut self, view: &CheckContext<'_>, ledger: &Path, raised: &mut RaisedFindings) {
        let Some(keeping) = view.retention_key else { return };
        match self.try_check(view, ledger, keeping, raised) {
            Ok(()) => {}
            Err(error) if is_unreachable(&error) => raised.mark_inconclusive(view.key.name()),
            Err(error) => raised.raise(FindingCode::Unreadable, view.key.name(), "", error.to_string()),
        }
    }

    fn try_check(
        &mut self,
        view: &CheckContext<'_>,
        ledger: &Path,
        keeping: &VerifyingKey,
        raised: &mut RaisedFindings,
    ) -> Result<(), EvidenceError> {
        let mut there = BTreeSet::new();
        for (folder, most) in FOLDERS {
            let listed = list_names(view.storage, &ledger.join(folder), most)?;
            there.extend(listed.into_iter().map(|name| format!("{folder}/{name}")));
        }
        let origin = view.key.name();
        if let Some(gone) = self.reported.difference(&there).next() {
            let message = format!("{gone} is missing, although it is in the aggregate log");
            raised.raise(FindingCode::StatementMissing, origin, "", message);
        }
        self.refused.retain(|file, _| there.contains(file));
        // Each check repeats one refused statement, in turn.
        let again = self.refused.keys().next().cloned();
        let known = |file: &&String| {
            self.reported.contains(*file)
                || self.pending.iter().any(|(waiting, _)| waiting == *file)
                || self.refused.contains_key(*file)
        };
        let mut new: Vec<String> = there.iter().filter(|file| !known(file)).cloned().collect();
        let all = new.len() <= MAX_FILES_PER_PASS;
        new.truncate(MAX_FILES_PER_PASS);
        for file in again.into_iter().chain(new) {
            let text = read_text(view.storage, &ledger.join(&file))?;
            match text.and_then(|note| verify_statement(view, keeping, &file, &note)) {
                Ok((statement, flaw)) => {
                    self.refused.remove(&file);
                    let flaw = flaw.map(|why| (FindingCode::StatementBackdated, why));
                    let flaw = flaw
                        .or_else(|| check_time(statement.signed, None, self.check_times.ledger, view.now));
                    if let Some((code, message)) = flaw {
                        raised.raise_confirmed(code, origin, "", format!("{file}: {message}"));
                    }
                    self.pending.push((file, statement));
                }
                Err(why) => {
                    self.refused.insert(file, why);
                }
            }
        }
        if let Some((file, why)) = self.refused.iter().next() {
            raised.raise(
                FindingCode::StatementRefused,
                origin,
                "",
                format!("{file}: {why}"),
            );
        }
        if all {
            self.check_times.ledger = view.now;
        }
        Ok(())
    }

    /// Returns the entries to report, for the ledger with this name.
    pub(crate) fn pending_entries(&self, ledger: &str, now: u64) -> Vec<Entry> {
        let waiting = self.pending.iter();
        waiting
            .map(|(_, statement)| statement.clone().into_entry(ledger, 0, now))
            .collect()
    }

    /// Marks the waiting statements as reported: their entries were appended.
    pub(crate) fn mark_reported(&mut self) {
        for (file, _) in self.pending.drain(..) {
            self.unsaved |= self.reported.insert(file);
        }
    }

    /// Writes all changes; on the beat, also the times of the last checks.
    pub(crate) fn save(
        &mut self,
        state: &dyn StateStorage,
        catalogue: &Catalogue,
        beat: bool,
    ) -> Result<(), AuditorError> {
        if self.unsaved {
            store(state, REPORTED_FILE, &self.reported)?;
            self.unsaved = false;
        }
        if !beat {
            return Ok(());
        }
        self.check_times.shards = catalogue
            .iter()
            .map(|(shard, logs)| {
                let looked_at = logs
                    .values()
                    .filter(|log| log.row.head.is_some() && log.row.removed.is_none());
                let visited = looked_at.map(|log| log.erasures.checked_at).min();
                (shard.clone(), visited.unwrap_or(0))
            })
            .collect();
        store(state, CHECK_TIMES_FILE, &self.check_times)
    }
}

fn load<T: Default + DeserializeOwned>(state: &dyn StateStorage, name: &str) -> Result<T, AuditorError> {
    let corrupt = |error: serde_json::Error| AuditorError::corrupt(name, error.to_string());
    let bytes = read(state, name)?;
    bytes.map_or_else(
        || Ok(T::default()),
        |bytes| serde_json::from_slice(&bytes).map_err(corrupt),
    )
}

fn store<T: Serialize>(state: &dyn StateStorage, name: &str, value: &T) -> Result<(), AuditorError> {
    let bytes = serde_json::to_vec(value);
    write(
        state,
        name,
        &bytes.map_err(|error| AuditorError::corrupt(name, error.to_string()))?,
    )
}

fn statement_file(statement: &Statement) -> String {
    let folder = match statement.kind {
        StatementKind::KeyDestruction => KEY_DESTRUCTIONS_DIR,
        _ => HOLD_STATEMENTS_DIR,
    };
    format!("{folder}/{}", file_name_for_digest(&statement.sha256))
}

/// Verifies a statement. Returns it with a problem of its time, if any; returns an error with the
/// reason if it is invalid.
fn verify_statement(
    view: &CheckContext<'_>,
    retention_key: &VerifyingKey,
    file: &str,
    note: &str,
) -> Result<(Statement, Option<String>), String> {
    let refused = |error: proofgate_ledger::LedgerError| error.to_string();
    let statement = Statement {
        kind: StatementKind::Hold,
        sha256: digest(note),
        signed: 0,
        hold: None,
        admission: None,
        key: None,
    };
    let (ledger, statement, flaw) = if file.starts_with(KEY_DESTRUCTIONS_DIR) {
        let read = KeyDestruction::verify(note, retention_key).map_err(refused)?;
        let statement = Statement {
            kind: StatementKind::KeyDestruction,
            signed: read.time,
            key: Some(read.key.to_string()),
            ..statement
        };
        (read.ledger, statement, None)
    } else {
        let read = HoldStatement::verify(note, retention_key).map_err(refused)?;
        let kind = match read.change {
            HoldChange::Placed { .. } => StatementKind::Hold,
            HoldChange::Released { .. } => StatementKind::Release,
        };
        let flaw = read.is_backdated().then(|| {
            let text = "its times are impossible: the hold was released before it was placed, or the statement is older than the hold or its release";
            text.to_owned()
        });
        let statement = Statement {
            kind,
            signed: read.signed_at,
            hold: Some(read.hold),
            ..statement
        };
        (read.ledger, statement, flaw)
    };
    if ledger != view.key.name() {
        return Err(format!("it is about another ledger, {ledger}"));
    }
    match statement_file(&statement) == file {
        true => Ok((statement, flaw)),
        false => Err("its name is the digest of another statement".to_owned()),
    }
}
