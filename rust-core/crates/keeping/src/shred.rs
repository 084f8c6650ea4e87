//! Shredding: destroys a tenant's key, so that the salts that need this key are lost in every copy
//! of the ledger. The destruction is signed first. The keys themselves are stored elsewhere: the
//! caller deletes them afterwards.

use crate::anchors::not_anchored_reason;
use crate::logs::{self, LogPresence, late_hold_reasons, log_state, missing_log_reasons};
use crate::policy::{RetentionPolicy, current_time, has_elapsed};
use crate::reason::{RetentionReason, reason};
use crate::statements::{write_hold_statements, write_note};
use crate::survey::exchange_id;
use crate::{Hold, HoldScope, RetentionError, RetentionState};
use proofgate_evidence::ReadStorage;
use proofgate_evidence::key_destructions::{self, KEY_DESTRUCTIONS_DIR};
use proofgate_evidence::key_successions::ledger_directory;
use proofgate_evidence::layout::shards;
use proofgate_evidence::salts::SALTS_FILE;
use proofgate_ledger::record::Record;
use proofgate_ledger::{Justification, KeyDestruction, ShredKeyId, SigningKey, VerifyingKey};
use proofgate_wal::Storage;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

/// The inputs of a shredding.
#[derive(Clone, Copy, Debug)]
pub struct ShredRequest<'p> {
    /// The ledger's directory.
    pub ledger: &'p Path,
    /// The ledger's key.
    pub key: &'p VerifyingKey,
    /// The retention job's state, with the holds.
    pub retention: &'p RetentionState,
    /// The tenant whose keys are destroyed.
    pub tenant: &'p str,
    /// The keys to destroy; `None` for all keys that the tenant's admissions name and all existing
    /// keys.
    pub requested_keys: Option<&'p BTreeSet<ShredKeyId>>,
    /// The tenant's keys that are known to exist.
    pub existing_keys: &'p BTreeSet<ShredKeyId>,
    /// How long records must be kept; `None` when that was overridden.
    pub policy: Option<&'p RetentionPolicy>,
    /// The requester of the shredding and the reason, for the signed statement.
    pub justification: &'p Justification,
    /// The current time in unix microseconds.
    pub now: u64,
    /// The instant of `now`, from which the time of signing is computed; `None` to use `now`
    /// itself.
    pub started_at: Option<Instant>,
}

/// What happens to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyAction {
    /// It is destroyed.
    Destroy,
    /// It was already destroyed, as signed.
    AlreadyDestroyed,
    /// It is retained.
    Retain(Vec<RetentionReason>),
}

/// A key of a shredding plan.
#[derive(Clone, Debug)]
pub struct PlannedShred {
    /// The key.
    pub key: ShredKeyId,
    /// Number of admissions that name it.
    pub exchanges: u64,
    /// What happens to it.
    pub action: KeyAction,
    /// The statement to sign; `None` if it was signed before.
    statement: Option<KeyDestruction>,
}

/// What is known about a key's exchanges.
#[derive(Default)]
struct AffectedExchanges {
    exchanges: u64,
    /// An exchange that must still be kept, and for how many days.
    too_young: Option<(String, u64)>,
    /// An exchange with a time in the future.
    future: Option<String>,
    held_by: BTreeSet<u64>,
}

/// Plans which keys are destroyed, by their ids; empty when no key of the tenant is known. Nothing is changed.
///
/// # Errors
/// [`RetentionError::Wal`] when the ledger cannot be read.
pub fn plan_shred(
    storage: &dyn ReadStorage,
    retention_key: &VerifyingKey,
    request: &ShredRequest<'_>,
) -> Result<Vec<PlannedShred>, RetentionError> {
    let wanted = |key: &ShredKeyId| request.requested_keys.is_none_or(|only| only.contains(key));
    let named = request.requested_keys.into_iter().flatten();
    let mut keys: BTreeMap<ShredKeyId, AffectedExchanges> = named
        .chain(request.existing_keys.iter().filter(|key| wanted(key)))
        .map(|key| (*key, AffectedExchanges::default()))
        .collect();
    let mut why = Vec::new();
    // Holds on records whose tenant is only in another log, or whose exchange may use any key.
    let mut held_elsewhere = BTreeSet::new();
    // These holds retain every key, whatever the logs contain.
    let keeps_all = |hold: &&Hold| {
        hold.scope == HoldScope::default() || hold.scope.tenant.as_deref() == Some(request.tenant)
    };
    let (all, holds): (Vec<&Hold>, Vec<&Hold>) = request.retention.active_holds().partition(keeps_all);
    why.extend(all.iter().map(|hold| {
        let about = hold.scope.tenant.as_ref().map_or("everything", |_| "this tenant");
        reason("held", format!("hold {} covers {about}", hold.id))
    }));
    // The keys of the exchanges that holds name.
    let named = holds.iter().filter_map(|hold| hold.scope.exchange.as_deref());
    let mut keys_of: BTreeMap<&str, BTreeSet<Option<ShredKeyId>>> =
        named.map(|id| (id, BTreeSet::new())).collect();
    // Without a hold or a retention period, a missing log retains nothing: logs may also have been moved away
    // legitimately.
    let asks = !holds.is_empty() || request.policy.is_some();
    for shard in shards(storage, request.ledger)? {
        // The keys of admissions that are open in their log.
        let mut open = BTreeMap::new();
        let read = (request.key, retention_key);
        let logs = logs::read(storage, &shard, read, &[], &mut |log, seq, record| {
            let touching = || {
                let id = exchange_id(record);
                let touches = move |hold: &&&Hold| hold.scope.matches(Some(request.tenant), id, record.ts());
                holds.iter().filter(touches).map(|hold| hold.id)
            };
            let committed = record.committed_request();
            let key = match record {
                Record::Admission(_) | Record::Rejection(_) => {
                    let of_tenant = committed.filter(|committed| committed.tenant == request.tenant);
                    let key = of_tenant.and_then(|committed| committed.shred_key).filter(wanted);
                    if let Some(keys) = of_tenant.and_then(|committed| keys_of.get_mut(committed.id)) {
                        keys.insert(key);
                    }
                    key
                }
                Record::Attempt(attempt) if attempt.incarnation.is_none() => {
                    open.get(&(log, attempt.admission)).copied()
                }
                Record::Completion(completion) if completion.incarnation.is_none() => {
                    open.remove(&(log, completion.admission))
                }
                Record::Attempt(_) | Record::Completion(_) | Record::Abort(_) => {
                    held_elsewhere.extend(touching());
                    None
                }
                Record::Analysis(analysis) if analysis.tenant == request.tenant => {
                    match keys_of.get(&*analysis.exchange).filter(|of| !of.is_empty()) {
                        Some(of) => {
                            for key in of.iter().flatten() {
                                keys.entry(*key).or_default().held_by.extend(touching());
                            }
                        }
                        None => held_elsewhere.extend(touching()),
                    }
                    None
                }
                _ => None,
            };
            let Some(key) = key else { return };
            let concerned = keys.entry(key).or_default();
            if let Some(committed) = committed {
                if matches!(record, Record::Admission(_)) {
                    open.insert((log, seq), key);
                }
                concerned.exchanges += 1;
                if committed.ts > request.now {
                    concerned.future = Some(committed.id.to_owned());
                }
                let minimum = request.policy.map(|policy| policy.days_for(request.tenant));
                let young = minimum.filter(|minimum| !has_elapsed(*minimum, record.ts(), request.now));
                concerned.too_young = young
                    .map(|minimum| (committed.id.to_owned(), minimum))
                    .or(concerned.too_young.take());
            }
            concerned.held_by.extend(touching());
        })?;
        // A log that is unreadable, unsigned or missing may contain held records.
        for (at, log) in logs.iter().enumerate() {
            let doubts = match &log.presence {
                LogPresence::Removed(removed)
                    if removed.leftover_files.iter().any(|name| name == SALTS_FILE) =>
                {
                    late_hold_reasons(request.retention, removed)
                }
                _ => log_state(&logs, at, request.key).unknown_content_reasons,
            };
            let dir = log.dir.display();
            why.extend(
                doubts
                    .iter()
                    .map(|doubt| reason(doubt.code, format!("{dir}: {}", doubt.text))),
            );
        }
        why.extend(asks.then(|| missing_log_reasons(&logs)).into_iter().flatten());
    }
    why.extend(held_elsewhere.iter().map(|id| {
        let text = format!("hold {id} may cover an exchange of this tenant");
        reason("held", text)
    }));
    let ledger = ledger_directory(storage, request.ledger)?;
    let destroyed = key_destructions::read(storage, &ledger, request.key.name(), retention_key)?;
    let planned = keys.into_iter().map(|(key, concerned)| {
        let stated = destroyed.contains(request.tenant, key);
        let mut why = why.clone();
        why.extend(concerned.held_by.iter().map(|id| {
            let text = format!("hold {id} covers an exchange under this key");
            reason("held", text)
        }));
        why.extend(concerned.too_young.map(|(id, minimum)| {
            let text = format!(
                "exchange {id} must be kept for {minimum} days, and --override-minimum was not given"
            );
            reason("young", text)
        }));
        why.extend(concerned.future.map(|id| {
            let text = format!("exchange {id} is dated in the future: a clock was or is wrong, and the date of the destruction also comes from a clock");
            reason("future", text)
        }));
        let fate = match (why.is_empty(), stated && !request.existing_keys.contains(&key)) {
            (_, true) => KeyAction::AlreadyDestroyed,
            (true, false) => KeyAction::Destroy,
            (false, false) => KeyAction::Retain(why),
        };
        let statement = KeyDestruction {
            ledger: request.key.name().to_owned(),
            key,
            tenant: request.tenant.to_owned(),
            time: request.now,
            exchanges: concerned.exchanges,
            justification: request.justification.clone(),
        };
        PlannedShred {
            key,
            exchanges: concerned.exchanges,
            action: fate,
            statement: (!stated).then_some(statement),
        }
    });
    Ok(planned.collect())
}

/// Plans a shredding and signs the destruction of the keys that may be destroyed; the statements are on the disk when
/// this returns. Returns the plan as it was carried out: the caller must now delete the keys that it lists as destroyed,
/// wherever they are stored.
///
/// # Errors
/// The errors of [`plan_shred`]; [`RetentionError::StateCorrupt`] and
/// [`RetentionError::InvalidKey`] when the state does not belong to this ledger and this key.
pub fn shred(
    storage: &dyn Storage,
    request: &ShredRequest<'_>,
    signing_key: &SigningKey,
) -> Result<Vec<PlannedShred>, RetentionError> {
    let now = current_time(request.now, request.started_at);
    write_hold_statements(
        storage,
        request.ledger,
        request.key,
        request.retention,
        signing_key,
        now,
    )?;
    let keeping = signing_key.verifying_key();
    let mut planned = plan_shred(storage, &keeping, request)?;
    let ledger = ledger_directory(storage, request.ledger)?;
    for key in planned.iter().filter(|key| key.action == KeyAction::Destroy) {
        if let Some(statement) = &key.statement {
            let statement = KeyDestruction {
                time: current_time(request.now, request.started_at),
                ..statement.clone()
            };
            let note = statement.sign(signing_key)?;
            write_note(storage, &ledger.join(KEY_DESTRUCTIONS_DIR), &note)?;
        }
    }
    if let Some(anchors) = request.retention.anchors() {
        let stated = key_destructions::read(storage, &ledger, request.key.name(), &keeping)?;
        for key in planned
            .iter_mut()
            .filter(|key| !matches!(key.action, KeyAction::Retain(_)))
        {
            let files = stated.statement_files(request.tenant, key.key);
            if !files.iter().any(|file| anchors.contains_file(file)) {
                key.action = KeyAction::Retain(vec![not_anchored_reason(None)]);
            }
        }
    }
    Ok(planned)
}
