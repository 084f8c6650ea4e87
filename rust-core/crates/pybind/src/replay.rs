//! Verdicts of recorded exchanges, come to again.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use proofgate_evidence::{EvidenceError, FileStorage, stored_salt};
use proofgate_ledger::commitment::reveal;
use proofgate_ledger::record::{self, Record};
use proofgate_replay::{Basis, Compared, Exchange, Exchanges, Replayer, Wanted};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{config_error, evidence_error, index_error};
use crate::evidence::optional_key;

static STORAGE: FileStorage = FileStorage;

/// The exchanges of a ledger, as far as checkpoints cover them. One thread reads.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct RecordedExchanges(Mutex<Exchanges<'static>>);

#[pymethods]
impl RecordedExchanges {
    #[new]
    #[pyo3(signature = (ledger, verifying_key, keeping_key=None, *, since_us=None, until_us=None, tenant=None, model=None, request_id=None))]
    #[expect(clippy::too_many_arguments, reason = "named arguments in Python")]
    fn new(
        python: Python<'_>,
        ledger: PathBuf,
        verifying_key: &str,
        keeping_key: Option<&str>,
        since_us: Option<u64>,
        until_us: Option<u64>,
        tenant: Option<String>,
        model: Option<String>,
        request_id: Option<String>,
    ) -> PyResult<Self> {
        let key = optional_key(Some(verifying_key))?;
        let keeping = optional_key(keeping_key)?;
        let key = key.ok_or_else(|| PyValueError::new_err("a verifying key is wanted"))?;
        let wanted = Wanted {
            since: since_us,
            until: until_us,
            tenant,
            model,
            id: request_id,
        };
        let opened = python.detach(|| Exchanges::open(&STORAGE, &ledger, &key, keeping.as_ref(), wanted));
        let opened = opened.map_err(|error| index_error(python, &error))?;
        Ok(Self(Mutex::new(opened)))
    }

    fn take(&self, python: Python<'_>, most: usize) -> Vec<RecordedExchange> {
        python.detach(|| {
            let mut exchanges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let next = std::iter::from_fn(|| exchanges.next_exchange());
            next.take(most).map(RecordedExchange).collect()
        })
    }

    #[getter]
    fn problems(&self) -> Vec<String> {
        let exchanges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.problems.clone()
    }

    #[getter]
    fn unverified(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unverified
    }
}

/// The records of one exchange.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct RecordedExchange(Exchange);

#[pymethods]
impl RecordedExchange {
    /// Directory of the log of its first record, and the number of that.
    #[getter]
    fn place(&self) -> (PathBuf, u64) {
        (self.0.dir.clone(), self.0.seq)
    }

    #[getter]
    fn begin(&self) -> &[u8] {
        &self.0.begin
    }

    #[getter]
    fn completion(&self) -> Option<&[u8]> {
        self.0.completion.as_deref()
    }

    #[getter]
    fn configuration(&self) -> Option<String> {
        let digits = |digest: &[u8; 32]| digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.configuration.as_ref().map(digits)
    }

    #[getter]
    fn version(&self) -> &str {
        &self.0.version
    }

    fn opens(&self, python: Python<'_>, answer: bool, body: &[u8]) -> PyResult<Option<bool>> {
        let exchange = &self.0;
        let opened = python.detach(|| -> Result<_, EvidenceError> {
            let Some(salt) = stored_salt(&STORAGE, &exchange.dir, exchange.seq)? else {
                return Ok(None);
            };
            let stored = if answer {
                exchange.completion.as_deref()
            } else {
                Some(&*exchange.begin)
            };
            let record = stored.and_then(|stored| record::parse(stored).ok());
            let field = if answer { "response" } else { "request" };
            Ok(Some(record.is_some_and(|record| {
                reveal(&record, &salt, body).is_ok_and(|opened| opened == field)
            })))
        });
        opened.map_err(|error| evidence_error(python, &error))
    }
}

/// The rules of one configuration.
#[pyclass(module = "proofgate._core", frozen, name = "Replayer")]
pub(crate) struct PyReplayer(Mutex<Replayer>);

#[pymethods]
impl PyReplayer {
    #[new]
    #[pyo3(signature = (configuration, other=false))]
    fn new(python: Python<'_>, configuration: &[u8], other: bool) -> PyResult<Self> {
        let basis = if other { Basis::Other } else { Basis::Recorded };
        let replayer = python.detach(|| Replayer::new(configuration, basis));
        let replayer = replayer.map_err(|error| config_error(python, &error))?;
        Ok(Self(Mutex::new(replayer)))
    }

    fn request(
        &self,
        python: Python<'_>,
        exchange: &RecordedExchange,
        body: Option<&[u8]>,
    ) -> PyResult<Option<String>> {
        let compared = python.detach(|| {
            let mut replayer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match record::parse(&exchange.0.begin) {
                Ok(Record::Admission(admission)) => Some(replayer.admitted(&admission, body)),
                Ok(Record::Rejection(rejection)) => replayer.rejected(&rejection, body),
                _ => None,
            }
        });
        compared.as_ref().map(to_json).transpose()
    }

    fn response(
        &self,
        python: Python<'_>,
        exchange: &RecordedExchange,
        body: Option<&[u8]>,
    ) -> PyResult<Option<String>> {
        let compared = python.detach(|| {
            let mut replayer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = record::parse(&exchange.0.begin);
            let end = exchange.0.completion.as_deref().map(record::parse);
            match (begin, end) {
                (Ok(Record::Admission(admission)), Some(Ok(Record::Completion(completion)))) => {
                    Some(replayer.answered(&admission, &completion, body))
                }
                _ => None,
            }
        });
        compared.as_ref().map(to_json).transpose()
    }
}

fn to_json(compared: &Compared) -> PyResult<String> {
    serde_json::to_string(compared).map_err(|error| PyValueError::new_err(error.to_string()))
}
