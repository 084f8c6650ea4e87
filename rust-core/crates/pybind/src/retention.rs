//! Retention: holds, and the removal and erasure of parts of a ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use proofgate_evidence::{FileStorage, key_successions, read_notes};
use proofgate_keeping::{
    self as core, Anchors, ErasureRequest, ErasureTarget, HoldScope, KeyAction, PlanRequest, PlannedErasure,
    PlannedLog, PlannedShred, RemovalAction, RetentionError, RetentionPolicy, RetentionReason, SaltAction,
    ShredRequest,
};
use proofgate_ledger::{Justification, ShredKeyId, SigningKey, VerifyingKey};
use proofgate_state::StateDirectory;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::retention_error;

/// The retention state of a ledger, locked while this object exists.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct RetentionState {
    retention: Mutex<core::RetentionState>,
}

fn invalid_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn parse_verifying_key(text: &str) -> PyResult<VerifyingKey> {
    VerifyingKey::from_file_text(text).map_err(invalid_error)
}

fn json<T: Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(invalid_error)
}

/// A log in a removal plan.
#[derive(Serialize)]
struct LogRemovalPlan<'p> {
    origin: String,
    dir: String,
    action: &'static str,
    records: u64,
    exchanges: u64,
    bytes: u64,
    newest: u64,
    reasons: &'p [RetentionReason],
    left: &'p [String],
}

impl<'p> LogRemovalPlan<'p> {
    fn from_planned(ledger: &VerifyingKey, log: &'p PlannedLog) -> Self {
        let (action, reasons, left): (_, &[RetentionReason], &[String]) = match &log.action {
            RemovalAction::Remove(_) => ("remove", &[], &[]),
            RemovalAction::Finish(left) => ("finish", &[], left),
            RemovalAction::Removed => ("removed", &[], &[]),
            RemovalAction::Retain(reasons) => ("stay", reasons, &[]),
        };
        Self {
            origin: format!("{}/{}/{}", ledger.name(), log.shard, log.incarnation),
            dir: log.dir.display().to_string(),
            action,
            records: log.records,
            exchanges: log.exchanges,
            bytes: log.bytes,
            newest: log.newest_time,
            reasons,
            left,
        }
    }
}

/// A log in an erasure plan.
#[derive(Serialize)]
struct LogErasurePlan<'p> {
    origin: String,
    dir: String,
    action: &'static str,
    records: u64,
    exchanges: usize,
    reasons: &'p [RetentionReason],
}

impl<'p> LogErasurePlan<'p> {
    fn from_planned(ledger: &VerifyingKey, log: &'p PlannedErasure) -> Self {
        let (action, reasons): (_, &[RetentionReason]) = match &log.action {
            SaltAction::Erase => ("erase", &[]),
            SaltAction::AlreadyErased => ("erased", &[]),
            SaltAction::Retain(reasons) => ("stay", reasons),
        };
        Self {
            origin: format!("{}/{}/{}", ledger.name(), log.shard, log.incarnation),
            dir: log.dir.display().to_string(),
            action,
            records: log.records,
            exchanges: log.admissions.len(),
            reasons,
        }
    }
}

/// A key in a shredding plan.
#[derive(Serialize)]
struct KeyShredPlan<'p> {
    key: String,
    action: &'static str,
    exchanges: u64,
    reasons: &'p [RetentionReason],
}

impl<'p> KeyShredPlan<'p> {
    fn from_planned(planned: &'p PlannedShred) -> Self {
        let (action, reasons): (_, &[RetentionReason]) = match &planned.action {
            KeyAction::Destroy => ("destroy", &[]),
            KeyAction::AlreadyDestroyed => ("destroyed", &[]),
            KeyAction::Retain(reasons) => ("stay", reasons),
        };
        Self {
            key: planned.key.to_string(),
            action,
            exchanges: planned.exchanges,
            reasons,
        }
    }
}

/// The responsible author, the reason, and the ticket that requested it.
type JustificationFields = (String, String, Option<String>);

fn justification((author, reason, ticket): JustificationFields) -> Justification {
    Justification {
        author,
        reason,
        ticket,
    }
}

/// Reads the retention job's signing key from a file's text.
fn retention_key(signing_key: &str) -> PyResult<SigningKey> {
    proofgate_signer::read_keys(signing_key)
        .map(|(key, _)| key)
        .map_err(invalid_error)
}

fn shred_key_ids(texts: &[String]) -> PyResult<BTreeSet<ShredKeyId>> {
    let ids = texts.iter().map(|text| text.parse().map_err(invalid_error));
    ids.collect()
}

#[pymethods]
impl RetentionState {
    #[new]
    #[pyo3(signature = (state, begin=None))]
    fn new(python: Python<'_>, state: PathBuf, begin: Option<(String, String)>) -> PyResult<Self> {
        let begin = begin
            .map(|(ledger, keeping)| {
                Ok::<_, PyErr>((parse_verifying_key(&ledger)?, parse_verifying_key(&keeping)?))
            })
            .transpose()?;
        let opened = python.detach(|| {
            let directory = StateDirectory::open(&state).map_err(|source| RetentionError::State {
                call: "open",
                name: state.display().to_string(),
                source,
            })?;
            let directory = Arc::new(directory.ok_or(RetentionError::Locked)?);
            match &begin {
                Some((ledger, keeping)) => core::RetentionState::create(directory, ledger, keeping),
                None => core::RetentionState::open(directory),
            }
        });
        let retention = opened.map_err(|error| retention_error(python, &error))?;
        Ok(Self {
            retention: Mutex::new(retention),
        })
    }

    fn holds(&self) -> PyResult<String> {
        json(&self.retention().holds())
    }

    #[pyo3(signature = (scope_json, why, now_us, name=None))]
    fn add_hold(
        &self,
        python: Python<'_>,
        scope_json: &str,
        why: JustificationFields,
        now_us: u64,
        name: Option<&str>,
    ) -> PyResult<String> {
        let scope: HoldScope = serde_json::from_str(scope_json).map_err(invalid_error)?;
        let why = justification(why);
        let added = python.detach(|| self.retention().add_hold(name, scope, &why, now_us));
        json(&added.map_err(|error| retention_error(python, &error))?)
    }

    fn release_hold(
        &self,
        python: Python<'_>,
        number: u64,
        why: JustificationFields,
        now_us: u64,
    ) -> PyResult<String> {
        let why = justification(why);
        let released = python.detach(|| self.retention().release_hold(number, &why, now_us));
        json(&released.map_err(|error| retention_error(python, &error))?)
    }

    fn state_holds(
        &self,
        python: Python<'_>,
        ledger: PathBuf,
        ledger_key: &str,
        signing_key: &str,
        now_us: u64,
    ) -> PyResult<u64> {
        let key = parse_verifying_key(ledger_key)?;
        let signing = retention_key(signing_key)?;
        let stated = python.detach(|| {
            let key = key_successions::follow_successions(&FileStorage, &ledger, &key)?;
            core::write_hold_statements(&FileStorage, &ledger, &key, &self.retention(), &signing, now_us)
        });
        stated.map_err(|error: RetentionError| retention_error(python, &error))
    }

    #[pyo3(signature = (ledger, ledger_key, signing_key, days, tenant_days, why, against, now_us, carry_out, anchored=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "Python callers pass these arguments by keyword"
    )]
    fn prune(
        &self,
        python: Python<'_>,
        ledger: PathBuf,
        ledger_key: &str,
        signing_key: &str,
        days: u64,
        tenant_days: BTreeMap<String, u64>,
        why: JustificationFields,
        against: Vec<(PathBuf, String)>,
        now_us: u64,
        carry_out: bool,
        anchored: Option<BTreeSet<String>>,
    ) -> PyResult<String> {
        let key = parse_verifying_key(ledger_key)?;
        let signing = retention_key(signing_key)?;
        let (why, begun) = (justification(why), Instant::now());
        let planned = python.detach(|| {
            let key = key_successions::follow_successions(&FileStorage, &ledger, &key)?;
            let mut held = Vec::new();
            for (file, text) in &against {
                held.extend(read_notes(file, text, Some(&key))?);
            }
            let mut retention = self.retention();
            retention.check_identity(&key, &signing)?;
            if let Some(digests) = anchored {
                let keys = (&key, &signing.verifying_key());
                retention.require_anchors(Anchors::new(digests), &FileStorage, &ledger, keys)?;
            }
            let what = PlanRequest {
                ledger: &ledger,
                key: &key,
                retention_key: &signing.verifying_key(),
                retention: &retention,
                policy: &RetentionPolicy::new(days, tenant_days)?,
                justification: &why,
                held_checkpoints: &held,
                now: now_us,
                started_at: Some(begun),
            };
            match carry_out {
                true => core::prune(&FileStorage, &what, &signing),
                false => core::plan(&FileStorage, &what),
            }
        });
        let planned = planned.map_err(|error| retention_error(python, &error))?;
        json(
            &planned
                .iter()
                .map(|log| LogRemovalPlan::from_planned(&key, log))
                .collect::<Vec<_>>(),
        )
    }

    #[pyo3(signature = (ledger, ledger_key, signing_key, exchange, tenant, policy, why, now_us, carry_out, anchored=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "Python callers pass these arguments by keyword"
    )]
    fn erase(
        &self,
        python: Python<'_>,
        ledger: PathBuf,
        ledger_key: &str,
        signing_key: &str,
        exchange: Option<String>,
        tenant: Option<(String, Option<u64>)>,
        policy: Option<(u64, BTreeMap<String, u64>)>,
        why: JustificationFields,
        now_us: u64,
        carry_out: bool,
        anchored: Option<BTreeSet<String>>,
    ) -> PyResult<String> {
        let key = parse_verifying_key(ledger_key)?;
        let signing = retention_key(signing_key)?;
        let (why, begun) = (justification(why), Instant::now());
        let what = match (exchange, tenant) {
            (Some(id), None) => ErasureTarget::Exchange(id),
            (None, Some((name, until))) => ErasureTarget::Tenant { name, until },
            _ => return Err(invalid_error("give either an exchange or a tenant")),
        };
        let planned = python.detach(|| {
            let key = key_successions::follow_successions(&FileStorage, &ledger, &key)?;
            let mut retention = self.retention();
            retention.check_identity(&key, &signing)?;
            if let Some(digests) = anchored {
                let keys = (&key, &signing.verifying_key());
                retention.require_anchors(Anchors::new(digests), &FileStorage, &ledger, keys)?;
            }
            let policy = policy
                .map(|(days, tenants)| RetentionPolicy::new(days, tenants))
                .transpose()?;
            let request = ErasureRequest {
                ledger: &ledger,
                key: &key,
                retention: &retention,
                target: &what,
                policy: policy.as_ref(),
                justification: &why,
                now: now_us,
                started_at: Some(begun),
            };
            match carry_out {
                true => core::erase(&FileStorage, &request, &signing),
                false => core::plan_erasure(&FileStorage, &signing.verifying_key(), &request),
            }
        });
        let planned = planned.map_err(|error| retention_error(python, &error))?;
        let told: Vec<_> = planned
            .iter()
            .map(|log| LogErasurePlan::from_planned(&key, log))
            .collect();
        json(&told)
    }

    #[pyo3(signature = (ledger, ledger_key, signing_key, tenant, only, there, policy, why, now_us, carry_out, anchored=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "Python callers pass these arguments by keyword"
    )]
    fn shred(
        &self,
        python: Python<'_>,
        ledger: PathBuf,
        ledger_key: &str,
        signing_key: &str,
        tenant: &str,
        only: Option<Vec<String>>,
        there: Vec<String>,
        policy: Option<(u64, BTreeMap<String, u64>)>,
        why: JustificationFields,
        now_us: u64,
        carry_out: bool,
        anchored: Option<BTreeSet<String>>,
    ) -> PyResult<String> {
        let key = parse_verifying_key(ledger_key)?;
        let signing = retention_key(signing_key)?;
        let (why, begun) = (justification(why), Instant::now());
        let only = only.map(|ids| shred_key_ids(&ids)).transpose()?;
        let there = shred_key_ids(&there)?;
        let planned = python.detach(|| {
            let key = key_successions::follow_successions(&FileStorage, &ledger, &key)?;
            let mut retention = self.retention();
            retention.check_identity(&key, &signing)?;
            if let Some(digests) = anchored {
                let keys = (&key, &signing.verifying_key());
                retention.require_anchors(Anchors::new(digests), &FileStorage, &ledger, keys)?;
            }
            let policy = policy
                .map(|(days, tenants)| RetentionPolicy::new(days, tenants))
                .transpose()?;
            let request = ShredRequest {
                ledger: &ledger,
                key: &key,
                retention: &retention,
                tenant,
                requested_keys: only.as_ref(),
                existing_keys: &there,
                policy: policy.as_ref(),
                justification: &why,
                now: now_us,
                started_at: Some(begun),
            };
            match carry_out {
                true => core::shred(&FileStorage, &request, &signing),
                false => core::plan_shred(&FileStorage, &signing.verifying_key(), &request),
            }
        });
        let planned = planned.map_err(|error| retention_error(python, &error))?;
        json(&planned.iter().map(KeyShredPlan::from_planned).collect::<Vec<_>>())
    }
}

impl RetentionState {
    fn retention(&self) -> MutexGuard<'_, core::RetentionState> {
        self.retention.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
