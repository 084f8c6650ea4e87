//! Re-evaluation of the verdicts of recorded exchanges.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proofgate_evidence::{FileStorage, ShredKeys};
use proofgate_ledger::record::{self, Record};
use proofgate_replay::{Comparison, Exchange, ExchangeFilter, Exchanges, PayloadField, Replayer, RuleSource};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::{config_error, evidence_error, index_error};
use crate::evidence::optional_key;
use crate::shred_keys::read_shred_keys;

static STORAGE: FileStorage = FileStorage;

/// The exchanges of a ledger that checkpoints cover. Only one thread reads at a time.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct RecordedExchanges {
    exchanges: Mutex<Exchanges<'static>>,
    shred_keys: Arc<ShredKeys>,
}

impl RecordedExchanges {
    fn exchanges(&self) -> MutexGuard<'_, Exchanges<'static>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RecordedExchanges {
    #[new]
    #[pyo3(signature = (ledger, verifying_key, keeping_key=None, shred_keys=None, since_us=None, until_us=None, tenant=None, model=None, request_id=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "Python callers pass these arguments by keyword"
    )]
    fn new(
        python: Python<'_>,
        ledger: PathBuf,
        verifying_key: &str,
        keeping_key: Option<&str>,
        shred_keys: Option<PathBuf>,
        since_us: Option<u64>,
        until_us: Option<u64>,
        tenant: Option<String>,
        model: Option<String>,
        request_id: Option<String>,
    ) -> PyResult<Self> {
        let key = optional_key(Some(verifying_key))?;
        let keeping = optional_key(keeping_key)?;
        let key = key.ok_or_else(|| PyValueError::new_err("a verifying key is required"))?;
        let wanted = ExchangeFilter {
            start: since_us,
            end: until_us,
            tenant,
            model,
            id: request_id,
        };
        let shred_keys = python.detach(|| read_shred_keys(shred_keys.as_deref()));
        let shred_keys = shred_keys.map_err(|error| evidence_error(python, &error))?;
        let opened = python.detach(|| Exchanges::open(&STORAGE, &ledger, &key, keeping.as_ref(), wanted));
        let opened = opened.map_err(|error| index_error(python, &error))?;
        Ok(Self {
            exchanges: Mutex::new(opened),
            shred_keys: Arc::new(shred_keys.unwrap_or_default()),
        })
    }

    fn take(&self, python: Python<'_>, most: usize) -> Vec<RecordedExchange> {
        let taken: Vec<Exchange> = python.detach(|| {
            let mut exchanges = self.exchanges();
            std::iter::from_fn(|| exchanges.next_exchange())
                .take(most)
                .collect()
        });
        let with_keys = |exchange| RecordedExchange {
            exchange,
            shred_keys: Arc::clone(&self.shred_keys),
        };
        taken.into_iter().map(with_keys).collect()
    }

    #[getter]
    fn problems(&self) -> Vec<String> {
        self.exchanges().problems.clone()
    }

    #[getter]
    fn unverified(&self) -> u64 {
        self.exchanges().unverified
    }
}

/// The records of one exchange, and the keys to its bodies.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct RecordedExchange {
    exchange: Exchange,
    shred_keys: Arc<ShredKeys>,
}

#[pymethods]
impl RecordedExchange {
    #[getter]
    fn first_record(&self) -> &[u8] {
        &self.exchange.first_record
    }

    #[getter]
    fn completion(&self) -> Option<&[u8]> {
        self.exchange.completion.as_deref()
    }

    #[getter]
    fn configuration(&self) -> Option<String> {
        let digits = |digest: &[u8; 32]| digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.exchange.configuration.as_ref().map(digits)
    }

    #[getter]
    fn version(&self) -> &str {
        &self.exchange.version
    }

    #[getter]
    fn origin(&self) -> &str {
        &self.exchange.origin
    }

    fn stored(&self, python: Python<'_>, answer: bool) -> PyResult<Py<PyAny>> {
        let body = python.detach(|| {
            self.exchange
                .read_stored_body(&STORAGE, &self.shred_keys, body_field(answer))
        });
        Ok(match body {
            Ok(body) => PyBytes::new(python, &body).into_any().unbind(),
            Err(why) => PyString::new(python, why).into_any().unbind(),
        })
    }

    fn commits_to(&self, python: Python<'_>, answer: bool, body: &[u8]) -> Option<&'static str> {
        let exchange = &self.exchange;
        let commits =
            python.detach(|| exchange.check_commitment(&STORAGE, &self.shred_keys, body_field(answer), body));
        commits.err()
    }
}

fn body_field(answer: bool) -> PayloadField {
    if answer {
        PayloadField::Response
    } else {
        PayloadField::Request
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
        let basis = if other {
            RuleSource::Other
        } else {
            RuleSource::Recorded
        };
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
            match record::parse(&exchange.exchange.first_record) {
                Ok(Record::Admission(admission)) => Some(replayer.replay_admission(&admission, body)),
                Ok(Record::Rejection(rejection)) => replayer.replay_rejection(&rejection, body),
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
            let begin = record::parse(&exchange.exchange.first_record);
            let end = exchange.exchange.completion.as_deref().map(record::parse);
            match (begin, end) {
                (Ok(Record::Admission(admission)), Some(Ok(Record::Completion(completion)))) => {
                    Some(replayer.replay_completion(&admission, &completion, body))
                }
                _ => None,
            }
        });
        compared.as_ref().map(to_json).transpose()
    }
}

fn to_json(compared: &Comparison) -> PyResult<String> {
    serde_json::to_string(compared).map_err(|error| PyValueError::new_err(error.to_string()))
}
