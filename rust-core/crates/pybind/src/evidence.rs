//! Evidence without a worker: proving, verifying and checking what is on disk, and making keys.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofgate_dataplane::evidence::{self, Evidence};
use proofgate_ledger::{SigningKey, TlogProof, VerifyingKey};
use proofgate_wal::FileStorage;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use rand::TryRngCore;
use serde::Serialize;

use crate::errors::{ledger_error, proof_error};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(verify_proof, module)?)?;
    module.add_function(wrap_pyfunction!(prove, module)?)?;
    module.add_function(wrap_pyfunction!(fsck, module)?)?;
    module.add_function(wrap_pyfunction!(export_leaves, module)?)?;
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
fn verify_proof(python: Python<'_>, record: &[u8], proof: &str, verifying_key: &str) -> PyResult<String> {
    let key = VerifyingKey::from_text(verifying_key.trim()).map_err(|error| proof_error(python, &error))?;
    let proof = TlogProof::parse(proof).map_err(|error| proof_error(python, &error))?;
    let checkpoint = proof
        .verify(record, &key)
        .map_err(|error| proof_error(python, &error))?;
    let verified = serde_json::json!({
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "index": proof.index,
        "root": STANDARD.encode(checkpoint.root),
    });
    Ok(verified.to_string())
}

#[pyfunction]
fn prove(python: Python<'_>, path: PathBuf, request_id: &str) -> PyResult<String> {
    let found = python.detach(|| evidence::prove(evidence::find(&path, request_id)?, None));
    let records = found.map_err(|error| ledger_error(python, &error))?;
    match records.is_empty() {
        true => Err(PyKeyError::new_err(request_id.to_owned())),
        false => to_json(&records),
    }
}

#[pyfunction]
#[pyo3(signature = (path, verifying_key))]
fn fsck(python: Python<'_>, path: PathBuf, verifying_key: Option<&str>) -> PyResult<(u8, String)> {
    let key = verifying_key
        .map(|text| VerifyingKey::from_text(text.trim()))
        .transpose();
    let key = key.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let report = python.detach(|| proofgate_wal::fsck(&FileStorage, &path, key.as_ref()));
    let report = report.map_err(|error| ledger_error(python, &error))?;
    let json = serde_json::to_string(&report).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((report.exit_code, json))
}

#[pyfunction]
fn export_leaves(python: Python<'_>, incarnation_dir: PathBuf, out_path: PathBuf) -> PyResult<u64> {
    let mut out = BufWriter::new(File::create(out_path)?);
    let exported = python.detach(|| proofgate_wal::export_leaves(&FileStorage, &incarnation_dir, &mut out));
    let leaves = exported.map_err(|error| ledger_error(python, &error))?;
    out.flush()?;
    Ok(leaves)
}

#[pyfunction]
fn generate_key(name: &str) -> PyResult<(String, String)> {
    let invalid = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let mut seed = [0; 32];
    rand::rngs::OsRng
        .try_fill_bytes(&mut seed)
        .map_err(|error| invalid(&error))?;
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
    proofgate_auth::hash_api_key(key.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
