//! The auditor of a ledger, for a process that gives it the time and serves what it publishes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofgate_auditor::{self as core, AuditorError, Published, Settings, StateDirectory};
use proofgate_evidence::FileStorage;
use proofgate_ledger::{Hash, SigningKey, VerifyingKey};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use crate::errors::auditor_error;

/// Follows a ledger. One thread polls; what is published is read without waiting for it.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct Auditor {
    auditor: Mutex<core::Auditor>,
    published: Arc<Published>,
    /// What was found, and how the shards stand, as of the last poll.
    seen: Mutex<(String, String)>,
}

#[derive(Serialize)]
struct Findings<'a> {
    findings: Vec<Finding<'a>>,
    left_out: u64,
}

#[derive(Serialize)]
struct Finding<'a> {
    #[serde(flatten)]
    found: &'a core::Finding,
    verdict: proofgate_evidence::Verdict,
}

fn json<T: Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn see(auditor: &core::Auditor, now: u64) -> PyResult<(String, String)> {
    let findings = auditor.findings().iter();
    let findings = Findings {
        findings: findings
            .map(|found| Finding {
                found,
                verdict: found.code.verdict(),
            })
            .collect(),
        left_out: auditor.findings_left_out(),
    };
    Ok((json(&findings)?, json(&auditor.heads(now))?))
}

fn texts(hashes: &[Hash]) -> Vec<String> {
    hashes.iter().map(|hash| STANDARD.encode(hash)).collect()
}

#[pymethods]
impl Auditor {
    #[new]
    #[pyo3(signature = (ledger, state, signing_key, ledger_key, beat_us, second_look_us, stall_us, new_aggregate=false, resume=false, held=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        python: Python<'_>,
        ledger: PathBuf,
        state: PathBuf,
        signing_key: &str,
        ledger_key: &str,
        beat_us: u64,
        second_look_us: u64,
        stall_us: u64,
        new_aggregate: bool,
        resume: bool,
        held: Option<&str>,
    ) -> PyResult<Self> {
        let invalid = |error: proofgate_ledger::LedgerError| PyValueError::new_err(error.to_string());
        let signing = SigningKey::from_text(signing_key.trim()).map_err(invalid)?;
        let settings = Settings {
            ledger,
            key: VerifyingKey::from_text(ledger_key.trim()).map_err(invalid)?,
            beat: beat_us,
            second_look: second_look_us,
            stall: stall_us,
        };
        let opened = python.detach(|| {
            let directory = StateDirectory::open(&state).map_err(|source| AuditorError::State {
                call: "open",
                name: state.display().to_string(),
                source,
            })?;
            let directory = Arc::new(directory.ok_or(AuditorError::Locked)?);
            let volume = Arc::new(FileStorage);
            match (resume, new_aggregate) {
                (true, _) => core::Auditor::resume(volume, directory, signing, settings, held),
                (false, true) => core::Auditor::create(volume, directory, signing, settings),
                (false, false) => core::Auditor::open(volume, directory, signing, settings),
            }
        });
        let auditor = opened.map_err(|error| auditor_error(python, &error))?;
        Ok(Self {
            published: auditor.published(),
            seen: Mutex::new(see(&auditor, 0)?),
            auditor: Mutex::new(auditor),
        })
    }

    fn poll(&self, python: Python<'_>, now_us: u64, budget_bytes: u64, scrub_bytes: u64) -> PyResult<String> {
        let (poll, seen) = python.detach(|| {
            let mut auditor = self.auditor.lock().unwrap_or_else(PoisonError::into_inner);
            let poll = auditor.poll(now_us, budget_bytes, scrub_bytes);
            (poll, see(&auditor, now_us))
        });
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen?;
        json(&poll.map_err(|error| auditor_error(python, &error))?)
    }

    fn findings(&self) -> String {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn heads(&self) -> String {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn checkpoint(&self) -> (u64, String) {
        self.published.checkpoint()
    }

    fn read<'py>(&self, python: Python<'py>, path: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let read = python.detach(|| self.published.read(path));
        let bytes = read.map_err(|error| auditor_error(python, &error))?;
        Ok(bytes.map(|bytes| PyBytes::new(python, &bytes)))
    }

    fn inclusion(&self, python: Python<'_>, index: u64, size: u64) -> PyResult<Vec<String>> {
        let proof = python.detach(|| self.published.inclusion(index, size));
        Ok(texts(&proof.map_err(|error| auditor_error(python, &error))?))
    }

    fn consistency(&self, python: Python<'_>, old: u64, new: u64) -> PyResult<Vec<String>> {
        let proof = python.detach(|| self.published.consistency(old, new));
        Ok(texts(&proof.map_err(|error| auditor_error(python, &error))?))
    }
}
