//! A witness, for a process that serves it.

use std::path::PathBuf;
use std::sync::Arc;

use proofgate_ledger::CosigningKey;
use proofgate_state::StateDirectory;
use proofgate_witness::{self as core, CosignError, WitnessError, parse_log_list};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::witness_error;

/// Cosigns checkpoints. Safe to use from any thread: requests for one log are serialised.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct Witness {
    witness: core::Witness,
    verifying_key: String,
}

fn invalid_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Witness {
    #[new]
    #[pyo3(signature = (state, signing_key, logs, new_state=false))]
    fn new(
        python: Python<'_>,
        state: PathBuf,
        signing_key: &str,
        logs: &str,
        new_state: bool,
    ) -> PyResult<Self> {
        let key = CosigningKey::from_text(signing_key.trim()).map_err(invalid_error)?;
        let verifying_key = key.verifying_key().to_text();
        let opened = python.detach(|| {
            let logs = parse_log_list(logs)?;
            let directory = StateDirectory::open(&state).map_err(|source| WitnessError::State {
                call: "open",
                name: state.display().to_string(),
                source,
            })?;
            let directory = Arc::new(directory.ok_or(WitnessError::Locked)?);
            match new_state {
                true => core::Witness::create(directory, key, logs),
                false => core::Witness::open(directory, key, logs),
            }
        });
        Ok(Self {
            witness: opened.map_err(|error| witness_error(python, &error))?,
            verifying_key,
        })
    }

    #[getter]
    fn verifying_key(&self) -> &str {
        &self.verifying_key
    }

    fn add_checkpoint(
        &self,
        python: Python<'_>,
        body: &[u8],
        unix_seconds: u64,
    ) -> (u16, &'static str, String) {
        match python.detach(|| self.witness.add_checkpoint(body, unix_seconds)) {
            Ok(line) => (200, "cosigned", line),
            Err(refused) => {
                let (status, code) = refused.status();
                let text = match refused {
                    CosignError::Conflict(size) => size.to_string(),
                    other => other.to_string(),
                };
                (status, code, text)
            }
        }
    }

    fn checkpoint(&self, python: Python<'_>, origin_digest: &str) -> Option<String> {
        python.detach(|| self.witness.checkpoint(origin_digest))
    }

    fn heads(&self, python: Python<'_>) -> PyResult<String> {
        let heads = python.detach(|| self.witness.cosigned_sizes());
        serde_json::to_string(&heads).map_err(invalid_error)
    }
}
