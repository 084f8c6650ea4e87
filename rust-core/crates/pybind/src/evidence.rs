//! Evidence without a worker: proving, verifying and checking what is on disk, and making keys.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use proofgate_dataplane::evidence::Evidence;
use proofgate_ledger::{SigningKey, TlogProof, VerifyingKey, leaf_hash};
use rand::TryRngCore;
use serde::Serialize;

use crate::errors::{ledger_error, proof_error};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(generate_key, module)?)?;
    module.add_function(wrap_pyfunction!(verifying_key, module)?)?;
    module.add_function(wrap_pyfunction!(hash_api_key, module)?)
}

/// Writes evidence as the JSON document that `prove` promises.
pub(crate) fn to_json(records: &[Evidence]) -> PyResult<String> {
    #[derive(Serialize)]
    struct Document<'a> {
        records: &'a [Evidence],
    }
    serde_json::to_string(&Document { records }).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pyfunction]
fn generate_key(name: &str) -> PyResult<(String, String)> {
    let invalid = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let mut seed = [0; 32];
    rand::rngs::OsRng.try_fill_bytes(&mut seed).map_err(|error| invalid(&error))?;
    let key = SigningKey::generate(name, seed).map_err(|error| invalid(&error))?;
    Ok((key.to_text(), key.verifying_key().to_text()))
}

#[pyfunction]
fn verifying_key(signing_key: &str) -> PyResult<String> {
    let key = SigningKey::from_text(signing_key).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(key.verifying_key().to_text())
}

#[pyfunction]
fn hash_api_key(key: &str) -> String {
    proofgate_policy::hash_api_key(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
