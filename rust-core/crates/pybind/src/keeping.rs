//! Keeping and forgetting: holds, and what goes of a ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use proofgate_evidence::{FileStorage, key_successions, read_notes};
use proofgate_keeping::{
    self as core, Anchors, Fate, Forgotten, KeepingError, KeyFate, Plan, Planned, PlannedErasure,
    PlannedShred, Policy, Reason, Request, SaltFate, Scope, ShredRequest,
};
use proofgate_ledger::{Justification, ShredKeyId, SigningKey, VerifyingKey};
use proofgate_state::StateDirectory;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::keeping_error;

/// The retention state of a ledger, locked while this lives.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct RetentionState {
    retention: Mutex<core::RetentionState>,
}

fn invalid(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn verifying(text: &str) -> PyResult<VerifyingKey> {
    VerifyingKey::from_file_text(text).map_err(invalid)
}

fn json<T: Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(invalid)
}

/// A log as a plan tells it.
#[derive(Serialize)]
struct Told<'p> {
    origin: String,
    dir: String,
    action: &'static str,
    records: u64,
    exchanges: u64,
    bytes: u64,
    newest: u64,
    reasons: &'p [Reason],
    left: &'p [String],
}

impl<'p> Told<'p> {
    fn of(ledger: &VerifyingKey, log: &'p Planned) -> Self {
        let (action, reasons, left): (_, &[Reason], &[String]) = match &log.fate {
            Fate::Remove(_) => ("remove", &[], &[]),
            Fate::Finish(left) => ("finish", &[], left),
            Fate::Removed => ("removed", &[], &[]),
            Fate::Stay(reasons) => ("stay", reasons, &[]),
        };
        Self {
            origin: format!("{}/{}/{}", ledger.name(), log.shard, log.incarnation),
            dir: log.dir.display().to_string(),
            action,
            records: log.records,
            exchanges: log.exchanges,
            bytes: log.bytes,
            newest: log.newest,
            reasons,
            left,
        }
    }
}

/// A log as the plan of an erasure tells it.
#[derive(Serialize)]
struct ToldErasure<'p> {
    origin: String,
    dir: String,
    action: &'static str,
    records: u64,
    exchanges: usize,
    reasons: &'p [Reason],
}

impl<'p> ToldErasure<'p> {
    fn of(ledger: &VerifyingKey, log: &'p PlannedErasure) -> Self {
        let (action, reasons): (_, &[Reason]) = match &log.fate {
            SaltFate::Erase => ("erase", &[]),
            SaltFate::Erased => ("erased", &[]),
            SaltFate::Stay(reasons) => ("stay", reasons),
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

/// A key as the plan of a shredding tells it.
#[derive(Serialize)]
struct ToldShred<'p> {
    key: String,
    action: &'static str,
    exchanges: u64,
    reasons: &'p [Reason],
}

impl<'p> ToldShred<'p> {
    fn of(planned: &'p PlannedShred) -> Self {
        let (action, reasons): (_, &[Reason]) = match &planned.fate {
            KeyFate::Destroy => ("destroy", &[]),
            KeyFate::Destroyed => ("destroyed", &[]),
            KeyFate::Stay(reasons) => ("stay", reasons),
        };
        Self {
            key: planned.key.to_string(),
            action,
            exchanges: planned.exchanges,
            reasons,
        }
    }
}

/// Who answers for something, why, and the ticket that asked for it.
type Why = (String, String, Option<String>);

fn justification((author, reason, ticket): Why) -> Justification {
    Justification {
        author,
        reason,
        ticket,
    }
}

/// The key in a file's text that the retention job signs with.
fn retention_key(signing_key: &str) -> PyResult<SigningKey> {
    proofgate_signer::read_keys(signing_key)
        .map(|(key, _)| key)
        .map_err(invalid)
}

fn shred_key_ids(texts: &[String]) -> PyResult<BTreeSet<ShredKeyId>> {
    let ids = texts.iter().map(|text| text.parse().map_err(invalid));
    ids.collect()
}

#[pymethods]
impl RetentionState {
    #[new]
    #[pyo3(signature = (state, begin=None))]
    fn new(python: Python<'_>, state: PathBuf, begin: Option<(String, String)>) -> PyResult<Self> {
        let begin = begin
            .map(|(ledger, keeping)| Ok::<_, PyErr>((verifying(&ledger)?, verifying(&keeping)?)))
            .transpose()?;
        let opened = python.detach(|| {
            let directory = StateDirectory::open(&state).map_err(|source| KeepingError::State {
                call: "open",
                name: state.display().to_string(),
                source,
            })?;
            let directory = Arc::new(directory.ok_or(KeepingError::Locked)?);
            match &begin {
                Some((ledger, keeping)) => core::RetentionState::begin(directory, ledger, keeping),
                None => core::RetentionState::open(directory),
            }
        });
        let retention = opened.map_err(|error| keeping_error(python, &error))?;
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
        why: Why,
        now_us: u64,
        name: Option<&str>,
    ) -> PyResult<String> {
        let scope: Scope = serde_json::from_str(scope_json).map_err(invalid)?;
        let why = justification(why);
        let added = python.detach(|| self.retention().add(name, scope, &why, now_us));
        json(&added.map_err(|error| keeping_error(python, &error))?)
    }

    fn release_hold(&self, python: Python<'_>, number: u64, why: Why, now_us: u64) -> PyResult<String> {
        let why = justification(why);
        let released = python.detach(|| self.retention().release(number, &why, now_us));
        json(&released.map_err(|error| keeping_error(python, &error))?)
    }

    fn state_holds(
        &self,
        python: Python<'_>,
        ledger: PathBuf,
        ledger_key: &str,
        signing_key: &str,
        now_us: u64,
    ) -> PyResult<u64> {
        let key = verifying(ledger_key)?;
        let signing = retention_key(signing_key)?;
        let stated = python.detach(|| {
            let key = key_successions::follow(&FileStorage, &ledger, &key)?;
            core::state_holds(&FileStorage, &ledger, &key, &self.retention(), &signing, now_us)
        });
        stated.map_err(|error: KeepingError| keeping_error(python, &error))
    }

    #[pyo3(signature = (ledger, ledger_key, signing_key, days, tenant_days, why, against, now_us, carry_out, anchored=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn prune(
        &self,
        python: Python<'_>,
        ledger: PathBuf,
        ledger_key: &str,
        signing_key: &str,
        days: u64,
        tenant_days: BTreeMap<String, u64>,
        why: Why,
        against: Vec<(PathBuf, String)>,
        now_us: u64,
        carry_out: bool,
        anchored: Option<BTreeSet<String>>,
    ) -> PyResult<String> {
        let key = verifying(ledger_key)?;
        let signing = retention_key(signing_key)?;
        let (why, begun) = (justification(why), Instant::now());
        let planned = python.detach(|| {
            let key = key_successions::follow(&FileStorage, &ledger, &key)?;
            let mut held = Vec::new();
            for (file, text) in &against {
                held.extend(read_notes(file, text, Some(&key))?);
            }
            let mut retention = self.retention();
            retention.require(&key, &signing)?;
            if let Some(digests) = anchored {
                let keys = (&key, &signing.verifying_key());
                retention.wait_for(Anchors::new(digests), &FileStorage, &ledger, keys)?;
            }
            let what = Plan {
                ledger: &ledger,
                key: &key,
                keeping: &signing.verifying_key(),
                retention: &retention,
                policy: &Policy::new(days, tenant_days)?,
                why: &why,
                held: &held,
                now: now_us,
                begun: Some(begun),
            };
            match carry_out {
                true => core::prune(&FileStorage, &what, &signing),
                false => core::plan(&FileStorage, &what),
            }
        });
        let planned = planned.map_err(|error| keeping_error(python, &error))?;
        json(&planned.iter().map(|log| Told::of(&key, log)).collect::<Vec<_>>())
    }

    #[pyo3(signature = (ledger, ledger_key, signing_key, exchange, tenant, policy, why, now_us, carry_out, anchored=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn erase(
        &self,
        python: Python<'_>,
        ledger: PathBuf,
        ledger_key: &str,
        signing_key: &str,
        exchange: Option<String>,
        tenant: Option<(String, Option<u64>)>,
        policy: Option<(u64, BTreeMap<String, u64>)>,
        why: Why,
        now_us: u64,
        carry_out: bool,
        anchored: Option<BTreeSet<String>>,
    ) -> PyResult<String> {
        let key = verifying(ledger_key)?;
        let signing = retention_key(signing_key)?;
        let (why, begun) = (justification(why), Instant::now());
        let what = match (exchange, tenant) {
            (Some(id), None) => Forgotten::Exchange(id),
            (None, Some((name, until))) => Forgotten::Tenant { name, until },
            _ => return Err(invalid("give either an exchange or a tenant")),
        };
        let planned = python.detach(|| {
            let key = key_successions::follow(&FileStorage, &ledger, &key)?;
            let mut retention = self.retention();
            retention.require(&key, &signing)?;
            if let Some(digests) = anchored {
                let keys = (&key, &signing.verifying_key());
                retention.wait_for(Anchors::new(digests), &FileStorage, &ledger, keys)?;
            }
            let policy = policy
                .map(|(days, tenants)| Policy::new(days, tenants))
                .transpose()?;
            let request = Request {
                ledger: &ledger,
                key: &key,
                retention: &retention,
                what: &what,
                policy: policy.as_ref(),
                why: &why,
                now: now_us,
                begun: Some(begun),
            };
            match carry_out {
                true => core::erase(&FileStorage, &request, &signing),
                false => core::plan_erasure(&FileStorage, &signing.verifying_key(), &request),
            }
        });
        let planned = planned.map_err(|error| keeping_error(python, &error))?;
        let told: Vec<_> = planned.iter().map(|log| ToldErasure::of(&key, log)).collect();
        json(&told)
    }

    #[pyo3(signature = (ledger, ledger_key, signing_key, tenant, only, there, policy, why, now_us, carry_out, anchored=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
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
        why: Why,
        now_us: u64,
        carry_out: bool,
        anchored: Option<BTreeSet<String>>,
    ) -> PyResult<String> {
        let key = verifying(ledger_key)?;
        let signing = retention_key(signing_key)?;
        let (why, begun) = (justification(why), Instant::now());
        let only = only.map(|ids| shred_key_ids(&ids)).transpose()?;
        let there = shred_key_ids(&there)?;
        let planned = python.detach(|| {
            let key = key_successions::follow(&FileStorage, &ledger, &key)?;
            let mut retention = self.retention();
            retention.require(&key, &signing)?;
            if let Some(digests) = anchored {
                let keys = (&key, &signing.verifying_key());
                retention.wait_for(Anchors::new(digests), &FileStorage, &ledger, keys)?;
            }
            let policy = policy
                .map(|(days, tenants)| Policy::new(days, tenants))
                .transpose()?;
            let request = ShredRequest {
                ledger: &ledger,
                key: &key,
                retention: &retention,
                tenant,
                only: only.as_ref(),
                there: &there,
                policy: policy.as_ref(),
                why: &why,
                now: now_us,
                begun: Some(begun),
            };
            match carry_out {
                true => core::shred(&FileStorage, &request, &signing),
                false => core::plan_shred(&FileStorage, &signing.verifying_key(), &request),
            }
        });
        let planned = planned.map_err(|error| keeping_error(python, &error))?;
        json(&planned.iter().map(ToldShred::of).collect::<Vec<_>>())
    }
}

impl RetentionState {
    fn retention(&self) -> MutexGuard<'_, core::RetentionState> {
        self.retention.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
