//! Erasures of a log: concatenated notes in the log's directory, signed by the retention job. Each
//! erasure is reported once.

use crate::check_context::CheckContext;
use crate::entry::Entry;
use crate::erasures::ReportedErasures;
use crate::finding::{FindingCode, RaisedFindings};
use crate::log::Log;
use crate::statement::{Statement, StatementKind, check_time};
use proofgate_evidence::erasures::{self, ERASURES_FILE};
use proofgate_evidence::note_files::digest;
use proofgate_evidence::{EvidenceError, ReadStorage, read_record};
use proofgate_ledger::record;
use proofgate_ledger::{Erasure, ErasureScope, Hash, VerifyingKey};
use std::io;

/// Most notes of one log that are processed in one check.
const MAX_NOTES_PER_PASS: usize = 256;

/// Checks the erasures of a log. A running log has no erasures, because the retention job waits for
/// its end.
pub(crate) fn check_erasures(
    view: &CheckContext<'_>,
    log: &mut Log,
    raised: &mut RaisedFindings,
) -> Result<(), EvidenceError> {
    let Some(keeping) = view.retention_key else {
        return Ok(());
    };
    if log.row.head.is_none() || log.target.is_some() || !log.erasures.pending.is_empty() {
        return Ok(());
    }
    if log.row.ended {
        let length = file_len(view.storage, log)?;
        if log.erasures.length != Some(length) {
            read(view, log, keeping, length, raised)?;
        }
        if let Some((code, message)) = &log.erasures.flaw {
            raised.raise(*code, &log.origin, &log.row.shard, message.clone());
        }
    }
    log.erasures.checked_at = view.now;
    Ok(())
}

/// Returns the length of the file in bytes; 0 when there is no file.
fn file_len(storage: &dyn ReadStorage, log: &Log) -> Result<u64, EvidenceError> {
    let path = log.dir.join(ERASURES_FILE);
    match storage.open(&path) {
        Ok(file) => file.len().map_err(EvidenceError::io("stat", &path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(EvidenceError::io("open", &path)(error)),
    }
}

fn read(
    view: &CheckContext<'_>,
    log: &mut Log,
    keeping: &VerifyingKey,
    length: u64,
    raised: &mut RaisedFindings,
) -> Result<(), EvidenceError> {
    let text = match erasures::read_text(view.storage, &log.dir) {
        Ok(text) => text,
        Err(EvidenceError::Corruption { reason, .. }) => {
            log.erasures.flaw = Some((FindingCode::StatementRefused, reason));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let told = log.row.erasures.unwrap_or_default();
    let count = usize::try_from(told.count).unwrap_or(usize::MAX);
    let notes = erasures::notes(&text);
    let (before, new) = notes.split_at(count.min(notes.len()));
    let chain = before.iter().fold(Hash::default(), |chain, note| {
        ReportedErasures::extend_chain(&chain, &digest(note))
    });
    if before.len() < count || chain != told.chain {
        let message = format!(
            "the aggregate log has {count} erasures of this log, but the stored erasures ({} bytes) differ",
            text.len()
        );
        log.erasures.flaw = Some((FindingCode::StatementMissing, message));
        return Ok(());
    }
    log.erasures.flaw = None;
    for note in new.iter().take(MAX_NOTES_PER_PASS) {
        match Erasure::verify(note, keeping)
            .map_err(|error| error.to_string())
            .and_then(|erasure| check_belongs(log, erasure))
        {
            Ok(erasure) => process_notes(view, log, &erasure, note, raised)?,
            Err(why) => {
                // Later notes are reported only after this problem has been resolved.
                let message = format!("a signed erasure is refused: {why}");
                log.erasures.flaw = Some((FindingCode::StatementRefused, message));
                return Ok(());
            }
        }
    }
    log.erasures.length = (new.len() <= MAX_NOTES_PER_PASS).then_some(length);
    Ok(())
}

fn check_belongs(log: &Log, erasure: Erasure) -> Result<Erasure, String> {
    match (erasure.origin == log.origin, erasure.size == log.size()) {
        (true, true) => Ok(erasure),
        _ => Err(format!(
            "it names the log {} with {} records, which is not this log",
            erasure.origin, erasure.size
        )),
    }
}

fn process_notes(
    view: &CheckContext<'_>,
    log: &mut Log,
    erasure: &Erasure,
    note: &str,
    raised: &mut RaisedFindings,
) -> Result<(), EvidenceError> {
    let admission = match erasure.scope {
        ErasureScope::Single(seq) => Some(seq),
        ErasureScope::Tenant { .. } => None,
    };
    // A tenant's erasure covers many admissions, which all follow the log's first record. `fsck`
    // compares each of them.
    let about = match read_record(view.storage, &log.dir, admission.unwrap_or(0)) {
        Ok(bytes) => record::parse(&bytes).ok().map(|record| record.ts()),
        Err(EvidenceError::NoSuchRecord { .. } | EvidenceError::Removed(_)) => None,
        Err(error) => return Err(error),
    };
    if let Some((code, message)) = check_time(erasure.time, about, log.erasures.checked_at, view.now) {
        raised.raise_confirmed(
            code,
            &log.origin,
            &log.row.shard,
            format!("a signed erasure has an impossible time: {message}"),
        );
    }
    log.erasures.pending.push(Statement {
        kind: StatementKind::Erasure,
        sha256: digest(note),
        signed: erasure.time,
        hold: None,
        admission,
        key: None,
    });
    Ok(())
}

impl Log {
    /// Returns the entries of erasures that wait to be reported.
    pub(crate) fn pending_entries(&self, now: u64) -> impl Iterator<Item = Entry> {
        let waiting = self.erasures.pending.iter();
        waiting.map(move |statement| statement.clone().into_entry(&self.origin, self.size(), now))
    }

    /// Marks the waiting erasures as reported. Their entries were appended from index `first` on.
    pub(crate) fn mark_reported(&mut self, first: u64) {
        for (statement, index) in self.erasures.pending.drain(..).zip(first..) {
            self.row
                .erasures
                .get_or_insert_default()
                .record(&statement, index);
            self.dirty = true;
        }
    }
}
