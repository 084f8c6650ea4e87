//! The auditor of a ledger, for a process that polls it and serves its published data.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofgate_auditor::{
    self as core, AccessLogHead, AuditorError, CosigningCoordinator, PublishedLog, Settings, StateDirectory,
    WitnessRequest, WitnessResponse,
};
use proofgate_evidence::{FileStorage, ReadStorage};
use proofgate_ledger::{Hash, LedgerError, TrustPolicy, VerifyingKey};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use crate::errors::auditor_error;
use crate::python_storage::PythonStorage;

/// An auditor that follows a ledger. One thread polls; published data can be read without waiting
/// for the poll.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct Auditor {
    auditor: Mutex<core::Auditor>,
    published: Arc<PublishedLog>,
    cosigning: Arc<CosigningCoordinator>,
    urls: Vec<(String, Option<String>)>,
    /// Verifying keys of the aggregate log and of the ledger.
    keys: (String, String),
    /// The pending requests to witnesses.
    asked: Mutex<BTreeMap<usize, WitnessRequest>>,
    /// The findings and the state of the shards at the last poll.
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

/// Returns the error for an invalid policy text, with the code that auditor operators know.
fn invalid_policy(error: &LedgerError) -> AuditorError {
    AuditorError::InvalidPolicy(match error {
        LedgerError::PolicyMalformed { line, reason } => format!("line {line}: {reason}"),
        other => other.to_string(),
    })
}

fn snapshot(auditor: &core::Auditor, now: u64) -> PyResult<(String, String)> {
    let findings = auditor.findings().iter();
    let findings = Findings {
        findings: findings
            .map(|found| Finding {
                found,
                verdict: found.code.verdict(),
            })
            .collect(),
        left_out: auditor.omitted_finding_count(),
    };
    Ok((json(&findings)?, json(&auditor.shard_statuses(now))?))
}

fn encode_hashes(hashes: &[Hash]) -> Vec<String> {
    hashes.iter().map(|hash| STANDARD.encode(hash)).collect()
}

#[pymethods]
impl Auditor {
    #[new]
    #[pyo3(signature = (ledger, state, signing_key, ledger_key, beat_us, second_look_us, stall_us, new_aggregate=false, resume=false, held=None, policy=None, keeping_key=None, served=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "Python callers pass these arguments by keyword"
    )]
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
        policy: Option<&[u8]>,
        keeping_key: Option<&str>,
        served: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let invalid = |error: LedgerError| PyValueError::new_err(error.to_string());
        let signing = proofgate_signer::read_keys(signing_key)
            .map(|(key, _)| key)
            .map_err(invalid)?;
        let policy = policy.map_or_else(|| Ok(TrustPolicy::unconditional()), TrustPolicy::parse);
        let policy = Arc::new(policy.map_err(|error| auditor_error(python, &invalid_policy(&error)))?);
        let witnesses = policy.witnesses().iter();
        let urls = witnesses
            .map(|witness| (witness.name.clone(), witness.url.clone()))
            .collect();
        let ledger_key = VerifyingKey::from_file_text(ledger_key).map_err(invalid)?;
        let keys = (signing.verifying_key().to_text(), ledger_key.to_text());
        let settings = Settings {
            ledger,
            key: ledger_key,
            retention_key: keeping_key
                .map(VerifyingKey::from_file_text)
                .transpose()
                .map_err(invalid)?,
            heartbeat: beat_us,
            recheck_delay: second_look_us,
            stall_timeout: stall_us,
            check_configurations: served.is_none(),
            policy,
        };
        let opened = python.detach(|| {
            let directory = StateDirectory::open(&state).map_err(|source| AuditorError::State {
                call: "open",
                name: state.display().to_string(),
                source,
            })?;
            let directory = Arc::new(directory.ok_or(AuditorError::Locked)?);
            let volume: Arc<dyn ReadStorage> = match served {
                Some(object) => Arc::new(PythonStorage::new(object)),
                None => Arc::new(FileStorage),
            };
            match (resume, new_aggregate) {
                (true, _) => core::Auditor::resume(volume, directory, signing, settings, held),
                (false, true) => core::Auditor::create(volume, directory, signing, settings),
                (false, false) => core::Auditor::open(volume, directory, signing, settings),
            }
        });
        let auditor = opened.map_err(|error| auditor_error(python, &error))?;
        Ok(Self {
            published: auditor.published_log(),
            cosigning: auditor.cosigning_coordinator(),
            urls,
            keys,
            asked: Mutex::default(),
            seen: Mutex::new(snapshot(&auditor, 0)?),
            auditor: Mutex::new(auditor),
        })
    }

    fn poll(&self, python: Python<'_>, now_us: u64, budget_bytes: u64, scrub_bytes: u64) -> PyResult<String> {
        let (poll, seen) = python.detach(|| {
            let mut auditor = self.auditor();
            let poll = auditor.poll(now_us, budget_bytes, scrub_bytes);
            (poll, snapshot(&auditor, now_us))
        });
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen?;
        json(&poll.map_err(|error| auditor_error(python, &error))?)
    }

    fn set_worker_states(&self, python: Python<'_>, workers: &str) -> PyResult<()> {
        let workers =
            serde_json::from_str(workers).map_err(|error| PyValueError::new_err(error.to_string()))?;
        python.detach(|| self.auditor().set_workers(workers));
        Ok(())
    }

    fn recorded_access_log_head<'py>(&self, python: Python<'py>) -> Option<(u64, u64, Bound<'py, PyBytes>)> {
        let told = python.detach(|| self.auditor().reported_access_log_head().cloned());
        told.map(|told| (told.begun, told.size, PyBytes::new(python, &told.root)))
    }

    fn set_access_log_head(&self, python: Python<'_>, begun: u64, size: u64, root: Hash) {
        python.detach(|| {
            self.auditor()
                .set_access_log_head(AccessLogHead { begun, size, root })
        });
    }

    fn report_access_log_mismatch(&self, python: Python<'_>, why: String) {
        python.detach(|| self.auditor().report_access_log_change(why));
    }

    fn findings(&self) -> String {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn heads(&self) -> String {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn accepted(&self, python: Python<'_>, since_us: u64) -> Vec<(OsString, String)> {
        python.detach(|| {
            let auditor = self.auditor();
            let accepted = auditor.logs_accepted_since(since_us);
            accepted
                .map(|(dir, note)| (dir.as_os_str().to_owned(), note.to_owned()))
                .collect()
        })
    }

    fn checkpoint(&self) -> Option<(u64, String)> {
        self.published.checkpoint()
    }

    fn verifying_keys(&self) -> (String, String) {
        self.keys.clone()
    }

    fn witness_urls(&self) -> Vec<(String, Option<String>)> {
        self.urls.clone()
    }

    fn witnesses(&self, python: Python<'_>) -> PyResult<String> {
        json(&python.detach(|| self.cosigning.witness_statuses()))
    }

    fn next_witness_request(
        &self,
        python: Python<'_>,
        witness: usize,
        now_us: u64,
    ) -> PyResult<Option<String>> {
        let question = python.detach(|| self.cosigning.next_request(witness, now_us));
        let question = question.map_err(|error| auditor_error(python, &error))?;
        Ok(question.map(|question| {
            let body = question.body.clone();
            self.asked().insert(witness, question);
            body
        }))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "Python callers pass these arguments by keyword"
    )]
    fn witness_answer(
        &self,
        python: Python<'_>,
        witness: usize,
        status: u16,
        media_type: &str,
        body: &[u8],
        now_us: u64,
        unix_seconds: u64,
    ) -> PyResult<&'static str> {
        let answer = WitnessResponse::Http {
            status,
            media_type,
            body,
        };
        self.apply_witness_response(python, witness, answer, now_us, unix_seconds)
    }

    fn witness_failed(
        &self,
        python: Python<'_>,
        witness: usize,
        why: &str,
        now_us: u64,
    ) -> PyResult<&'static str> {
        self.apply_witness_response(python, witness, WitnessResponse::Failed(why), now_us, 0)
    }

    fn tlog_proof(&self, python: Python<'_>, index: u64) -> PyResult<Option<String>> {
        let proof = python.detach(|| self.published.tlog_proof(index));
        proof.map_err(|error| auditor_error(python, &error))
    }

    fn read<'py>(&self, python: Python<'py>, path: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let read = python.detach(|| self.published.read(path));
        let bytes = read.map_err(|error| auditor_error(python, &error))?;
        Ok(bytes.map(|bytes| PyBytes::new(python, &bytes)))
    }

    fn inclusion(&self, python: Python<'_>, index: u64, size: u64) -> PyResult<Vec<String>> {
        let proof = python.detach(|| self.published.inclusion_proof(index, size));
        Ok(encode_hashes(
            &proof.map_err(|error| auditor_error(python, &error))?,
        ))
    }

    fn consistency(&self, python: Python<'_>, old: u64, new: u64) -> PyResult<Vec<String>> {
        let proof = python.detach(|| self.published.consistency_proof(old, new));
        Ok(encode_hashes(
            &proof.map_err(|error| auditor_error(python, &error))?,
        ))
    }
}

impl Auditor {
    fn auditor(&self) -> MutexGuard<'_, core::Auditor> {
        self.auditor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, BTreeMap<usize, WitnessRequest>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply_witness_response(
        &self,
        python: Python<'_>,
        witness: usize,
        answer: WitnessResponse<'_>,
        now_us: u64,
        unix_seconds: u64,
    ) -> PyResult<&'static str> {
        let question = self.asked().remove(&witness);
        let question =
            question.ok_or_else(|| PyValueError::new_err("no request to this witness is in progress"))?;
        let ended = python.detach(|| {
            self.cosigning
                .handle_response(&question, answer, now_us, unix_seconds)
        });
        ended.map_err(|error| auditor_error(python, &error))
    }
}
