//! The auditor's state beside the aggregate log: its identity, a row for each log, and the findings.

use crate::aggregate::AggregateWriter;
use crate::entry::{Entry, EntryKind};
use crate::erasures::ErasureFileState;
use crate::files::{read, write};
use crate::finding::Findings;
use crate::ledger_statements::StatementTracker;
use crate::log::{Catalogue, Log, LogRow};
use crate::{AuditorError, StateStorage};
use proofgate_evidence::Ulid;
use proofgate_evidence::layout::parse_incarnation;
use proofgate_ledger::VerifyingKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the file with the state's identity, which is written first.
const IDENTITY_FILE: &str = "auditor";
const FINDINGS_FILE: &str = "findings";
const LOGS: &str = "logs";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) v: u32,
    /// The ledger's verifying key.
    pub(crate) ledger: String,
    /// The auditor's verifying key.
    pub(crate) auditor: String,
}

/// Writes the identity to an empty state.
pub(crate) fn initialize(state: &dyn StateStorage, identity: &Identity) -> Result<(), AuditorError> {
    if read(state, IDENTITY_FILE)?.is_some() || !list(state, LOGS)?.is_empty() {
        return Err(AuditorError::StateExists);
    }
    write(state, IDENTITY_FILE, &encode(IDENTITY_FILE, identity)?)
}

/// Refuses a state of another ledger or another auditor. `keys` are the keys of the ledger and of
/// the auditor, with their lineages.
pub(crate) fn verify_identity(
    state: &dyn StateStorage,
    identity: &Identity,
    keys: (&VerifyingKey, &VerifyingKey),
) -> Result<(), AuditorError> {
    let Some(bytes) = read(state, IDENTITY_FILE)? else {
        return Err(AuditorError::NoState);
    };
    let found: Identity = decode(IDENTITY_FILE, &bytes)?;
    // A successor of the key that created the state belongs to the same party.
    let is_of = |text: &str, line: &VerifyingKey| {
        VerifyingKey::from_text(text)
            .is_ok_and(|key| key.name() == line.name() && line.position_of(&key).is_some())
    };
    match found.v == identity.v && is_of(&found.ledger, keys.0) && is_of(&found.auditor, keys.1) {
        true => Ok(()),
        false => Err(AuditorError::corrupt(
            IDENTITY_FILE,
            format!(
                "it belongs to the auditor {} of the ledger {}",
                found.auditor, found.ledger
            ),
        )),
    }
}

/// Loads all rows, updated by newer entries of the aggregate log, and the newest entry about the
/// access log. Passes entries about statements beside the shards to `statements`.
pub(crate) fn load(
    state: &dyn StateStorage,
    volume: &Path,
    ledger: &str,
    (aggregate, statements): (&AggregateWriter, &mut StatementTracker),
) -> Result<(Catalogue, Option<Entry>), AuditorError> {
    let mut catalogue = Catalogue::new();
    let mut from = 0;
    for shard in list(state, LOGS)? {
        for name in list(state, &format!("{LOGS}/{shard}"))? {
            let file = format!("{LOGS}/{shard}/{name}");
            let Some(incarnation) = parse_incarnation(&name) else {
                return Err(AuditorError::corrupt(
                    &file,
                    "its name is not a valid incarnation",
                ));
            };
            let Some(bytes) = read(state, &file)? else {
                continue;
            };
            let row: LogRow = decode(&file, &bytes)?;
            if (row.shard.as_str(), row.incarnation) != (&shard, incarnation) {
                return Err(AuditorError::corrupt(&file, "it belongs to another log"));
            }
            from = from.max(row.told.map_or(0, |told| told.index + 1));
            let mut log = Log::new(row, volume.join(&shard).join(&name), ledger);
            log.erasures = ErasureFileState::with_checked_at(statements.last_check_time(&shard));
            catalogue
                .entry(shard.clone())
                .or_default()
                .insert(incarnation, log);
        }
    }
    let mut reads = None;
    for (at, entry) in aggregate.read_entries(from)?.iter().enumerate() {
        let entry = Entry::decode(entry)?;
        if entry.kind == EntryKind::AccessLogHead {
            reads = Some(entry);
            continue;
        }
        if let Some(statement) = &entry.statement {
            match find(&mut catalogue, ledger, &entry.origin) {
                Some(log) => {
                    let told = log.row.erasures.get_or_insert_default();
                    told.record(statement, from + at as u64);
                    log.dirty = true;
                }
                None => statements.replay(statement),
            }
            continue;
        }
        let told = entry.to_aggregated_log(from + at as u64);
        if let Some(log) = find(&mut catalogue, ledger, &entry.origin) {
            log.row.told = Some(told);
            log.dirty = true;
        }
    }
    Ok((catalogue, reads))
}

fn find<'c>(catalogue: &'c mut Catalogue, ledger: &str, origin: &str) -> Option<&'c mut Log> {
    let (shard, incarnation) = origin.strip_prefix(ledger)?.strip_prefix('/')?.rsplit_once('/')?;
    let incarnation: Ulid = parse_incarnation(incarnation)?;
    catalogue.get_mut(shard)?.get_mut(&incarnation)
}

/// Writes the rows that have changed.
pub(crate) fn save(state: &dyn StateStorage, catalogue: &mut Catalogue) -> Result<(), AuditorError> {
    for log in catalogue.values_mut().flat_map(BTreeMap::values_mut) {
        // A log without an accepted head is not stored, because the next listing finds it again.
        if log.dirty && log.row.head.is_some() {
            write(state, &log.row_file(), &encode(&log.origin, &log.row)?)?;
            log.dirty = false;
        }
    }
    Ok(())
}

pub(crate) fn load_findings(state: &dyn StateStorage) -> Result<Findings, AuditorError> {
    match read(state, FINDINGS_FILE)? {
        Some(bytes) => decode(FINDINGS_FILE, &bytes).map(Findings::rebuild_index),
        None => Ok(Findings::default()),
    }
}

pub(crate) fn save_findings(state: &dyn StateStorage, findings: &Findings) -> Result<(), AuditorError> {
    write(state, FINDINGS_FILE, &encode(FINDINGS_FILE, findings)?)
}

fn list(state: &dyn StateStorage, name: &str) -> Result<Vec<String>, AuditorError> {
    state.list(name).map_err(AuditorError::state("list", name))
}

fn encode<T: Serialize>(name: &str, value: &T) -> Result<Vec<u8>, AuditorError> {
    serde_json::to_vec(value).map_err(|error| AuditorError::corrupt(name, error.to_string()))
}

fn decode<'b, T: Deserialize<'b>>(name: &str, bytes: &'b [u8]) -> Result<T, AuditorError> {
    serde_json::from_slice(bytes).map_err(|error| AuditorError::corrupt(name, error.to_string()))
}
