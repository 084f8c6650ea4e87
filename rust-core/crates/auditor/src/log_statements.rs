//! Erasures of a log: signed notes by the retention job in its folder, one behind the other. Each is told once.

use crate::entry::Entry;
use crate::erasures::ErasuresTold;
use crate::finding::{Code, Raised};
use crate::log::Log;
use crate::statement::{Statement, StatementKind, judge};
use crate::view::View;
use proofgate_evidence::erasures::{self, ERASURES};
use proofgate_evidence::note_files::digest;
use proofgate_evidence::{EvidenceError, ReadStorage, read_record};
use proofgate_ledger::record;
use proofgate_ledger::{Erased, Erasure, Hash, VerifyingKey};
use std::io;

/// Notes of one log that are taken in one look.
const MOST_AT_ONCE: usize = 256;

/// Looks for erasures of a log. Of one that goes on there are none: who keeps the ledger waits for its end.
pub(crate) fn look(view: &View<'_>, log: &mut Log, raised: &mut Raised) -> Result<(), EvidenceError> {
    let Some(keeping) = view.keeping else {
        return Ok(());
    };
    if log.row.head.is_none() || log.target.is_some() || !log.erasures.waiting.is_empty() {
        return Ok(());
    }
    if log.row.ended {
        let length = length(view.storage, log)?;
        if log.erasures.length != Some(length) {
            read(view, log, keeping, length, raised)?;
        }
        if let Some((code, message)) = &log.erasures.flaw {
            raised.raise(*code, &log.origin, &log.row.shard, message.clone());
        }
    }
    log.erasures.visited = view.now;
    Ok(())
}

/// Bytes of the file; 0 when it is not there.
fn length(storage: &dyn ReadStorage, log: &Log) -> Result<u64, EvidenceError> {
    let path = log.dir.join(ERASURES);
    match storage.open(&path) {
        Ok(file) => file.len().map_err(EvidenceError::io("stat", &path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(EvidenceError::io("open", &path)(error)),
    }
}

fn read(
    view: &View<'_>,
    log: &mut Log,
    keeping: &VerifyingKey,
    length: u64,
    raised: &mut Raised,
) -> Result<(), EvidenceError> {
    let text = match erasures::read_text(view.storage, &log.dir) {
        Ok(text) => text,
        Err(EvidenceError::Corruption { reason, .. }) => {
            log.erasures.flaw = Some((Code::StatementRefused, reason));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let told = log.row.erasures.unwrap_or_default();
    let count = usize::try_from(told.count).unwrap_or(usize::MAX);
    let notes = erasures::notes(&text);
    let (before, new) = notes.split_at(count.min(notes.len()));
    let chain = before.iter().fold(Hash::default(), |chain, note| {
        ErasuresTold::is_after(&chain, &digest(note))
    });
    if before.len() < count || chain != told.chain {
        let message = format!(
            "the aggregate log has {count} erasures of this log, but the stored ones differ: {} bytes",
            text.len()
        );
        log.erasures.flaw = Some((Code::StatementMissing, message));
        return Ok(());
    }
    log.erasures.flaw = None;
    for note in new.iter().take(MOST_AT_ONCE) {
        match Erasure::verify(note, keeping)
            .map_err(|error| error.to_string())
            .and_then(|erasure| belongs(log, erasure))
        {
            Ok(erasure) => take(view, log, &erasure, note, raised)?,
            Err(why) => {
                // Others are added behind it, and are told once somebody has looked.
                let message = format!("an erasure is refused: {why}");
                log.erasures.flaw = Some((Code::StatementRefused, message));
                return Ok(());
            }
        }
    }
    log.erasures.length = (new.len() <= MOST_AT_ONCE).then_some(length);
    Ok(())
}

fn belongs(log: &Log, erasure: Erasure) -> Result<Erasure, String> {
    match (erasure.origin == log.origin, erasure.size == log.size()) {
        (true, true) => Ok(erasure),
        _ => Err(format!(
            "it is for the log {} with {} records",
            erasure.origin, erasure.size
        )),
    }
}

fn take(
    view: &View<'_>,
    log: &mut Log,
    erasure: &Erasure,
    note: &str,
    raised: &mut Raised,
) -> Result<(), EvidenceError> {
    let admission = match erasure.erased {
        Erased::One(seq) => Some(seq),
        Erased::Tenant { .. } => None,
    };
    // Of a tenant's, which are many, the log's first record is before all of them: fsck compares each.
    let about = match read_record(view.storage, &log.dir, admission.unwrap_or(0)) {
        Ok(bytes) => record::parse(&bytes).ok().map(|record| record.ts()),
        Err(EvidenceError::NoSuchRecord { .. } | EvidenceError::Removed(_)) => None,
        Err(error) => return Err(error),
    };
    if let Some((code, message)) = judge(erasure.time, about, log.erasures.visited, view.now) {
        raised.raise_now(
            code,
            &log.origin,
            &log.row.shard,
            format!("an erasure: {message}"),
        );
    }
    log.erasures.waiting.push(Statement {
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
    /// The erasures that wait to be told.
    pub(crate) fn statements(&self, now: u64) -> impl Iterator<Item = Entry> {
        let waiting = self.erasures.waiting.iter();
        waiting.map(move |statement| statement.clone().entry(&self.origin, self.size(), now))
    }

    /// What waited was appended, from this number on.
    pub(crate) fn statements_told(&mut self, first: u64) {
        for (statement, index) in self.erasures.waiting.drain(..).zip(first..) {
            self.row.erasures.get_or_insert_default().take(&statement, index);
            self.dirty = true;
        }
    }
}
