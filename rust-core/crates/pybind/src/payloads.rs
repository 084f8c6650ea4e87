//! Stored payloads, for holders of their keys.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use proofgate_evidence::{EvidenceError, FileStorage, ShredKeys};
use proofgate_ledger::VerifyingKey;
use proofgate_payloads::{BodyResult, ExchangePayloads};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{evidence_error, payload_error};
use crate::shred_keys::read_shred_keys;

static STORAGE: FileStorage = FileStorage;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(stored_payload, module)?)
}

fn parse_key(text: &str) -> PyResult<VerifyingKey> {
    VerifyingKey::from_file_text(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn read_keys(folder: Option<&Path>) -> Result<ShredKeys, EvidenceError> {
    Ok(read_shred_keys(folder)?.unwrap_or_default())
}

#[pyfunction]
#[pyo3(signature = (ledger, verifying_key, request_id, shred_keys=None))]
fn stored_payload(
    python: Python<'_>,
    ledger: PathBuf,
    verifying_key: &str,
    request_id: &str,
    shred_keys: Option<PathBuf>,
) -> PyResult<StoredExchange> {
    let key = parse_key(verifying_key)?;
    let shown = python.detach(|| {
        let keys = read_keys(shred_keys.as_deref())?;
        proofgate_payloads::open_exchange(&STORAGE, &ledger, &key, &keys, request_id)
    });
    shown
        .map(StoredExchange)
        .map_err(|error| payload_error(python, &error))
}

/// Reads a ledger's exchanges with their stored payloads. Only one thread reads at a time.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct StoredPayloads(Mutex<proofgate_payloads::StoredPayloads<'static>>);

#[pymethods]
impl StoredPayloads {
    #[new]
    #[pyo3(signature = (ledger, verifying_key, shred_keys=None))]
    fn new(
        python: Python<'_>,
        ledger: PathBuf,
        verifying_key: &str,
        shred_keys: Option<PathBuf>,
    ) -> PyResult<Self> {
        let key = parse_key(verifying_key)?;
        let opened = python.detach(|| {
            let keys = read_keys(shred_keys.as_deref())?;
            proofgate_payloads::StoredPayloads::new(&STORAGE, &ledger, &key, keys)
        });
        let reader = opened.map_err(|error| evidence_error(python, &error))?;
        Ok(Self(Mutex::new(reader)))
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, python: Python<'_>) -> PyResult<Option<StoredExchange>> {
        let next = python.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).next());
        let next = next.transpose().map_err(|error| payload_error(python, &error))?;
        Ok(next.map(StoredExchange))
    }
}

/// An exchange with its stored payloads.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct StoredExchange(ExchangePayloads);

fn body_bytes<'py>(python: Python<'py>, body: &BodyResult) -> Option<Bound<'py, PyBytes>> {
    body.as_ref().ok().map(|body| PyBytes::new(python, body))
}

fn missing_reason(body: &BodyResult) -> Option<(&'static str, String)> {
    body.as_ref().err().map(|error| (error.code(), error.to_string()))
}

#[pymethods]
impl StoredExchange {
    #[getter]
    fn directory(&self) -> OsString {
        self.0.dir.clone().into_os_string()
    }

    #[getter]
    fn admission<'py>(&self, python: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(python, &self.0.admission)
    }

    #[getter]
    fn end<'py>(&self, python: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.end.as_ref().map(|end| PyBytes::new(python, end))
    }

    #[getter]
    fn request<'py>(&self, python: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        body_bytes(python, &self.0.request)
    }

    #[getter]
    fn response<'py>(&self, python: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        body_bytes(python, &self.0.response)
    }

    #[getter]
    fn no_request(&self) -> Option<(&'static str, String)> {
        missing_reason(&self.0.request)
    }

    #[getter]
    fn no_response(&self) -> Option<(&'static str, String)> {
        missing_reason(&self.0.response)
    }
}
