//! The folder of tenants' shred keys: lists whose keys exist, and never exposes the keys.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proofgate_evidence::{EvidenceError, FileStorage, ShredKeys};
use proofgate_ledger::ShredKey;
use proofgate_ledger::record::EndUserId;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::evidence_error;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(shred_keys, module)?)?;
    module.add_function(wrap_pyfunction!(shred_key_ids, module)?)?;
    module.add_function(wrap_pyfunction!(end_user_ids, module)?)?;
    module.add_function(wrap_pyfunction!(shred_key_file, module)?)
}

/// Reads the keys in a folder, if one is given.
pub(crate) fn read_shred_keys(directory: Option<&Path>) -> Result<Option<ShredKeys>, EvidenceError> {
    let read = directory.map(|directory| ShredKeys::read(&FileStorage, directory));
    read.transpose()
}

#[pyfunction]
fn shred_keys(python: Python<'_>, directory: PathBuf) -> PyResult<BTreeMap<String, Vec<String>>> {
    let read = python.detach(|| ShredKeys::read(&FileStorage, &directory));
    let keys = read.map_err(|error| evidence_error(python, &error))?;
    let told = keys.ids().map(|(tenant, ids)| {
        let ids = ids.map(|id| id.to_string()).collect();
        (tenant.to_owned(), ids)
    });
    Ok(told.collect())
}

#[pyfunction]
fn shred_key_ids(text: &str) -> PyResult<Vec<String>> {
    let keys = ShredKey::parse_file(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(keys.iter().map(|key| key.id().to_string()).collect())
}

#[pyfunction]
#[pyo3(signature = (tenant, name, shred_keys=None))]
fn end_user_ids(
    python: Python<'_>,
    tenant: &str,
    name: &str,
    shred_keys: Option<PathBuf>,
) -> PyResult<Vec<String>> {
    let read = python.detach(|| read_shred_keys(shred_keys.as_deref()));
    let Some(keys) = read.map_err(|error| evidence_error(python, &error))? else {
        return Ok(vec![EndUserId::derive(tenant, None, name).to_string()]);
    };
    let of_tenant = keys.ids().filter(|(owner, _)| *owner == tenant);
    let of_tenant = of_tenant.flat_map(|(_, ids)| ids.filter_map(|id| keys.find(tenant, id)));
    let ids = of_tenant.map(|key| EndUserId::derive(tenant, Some(key), name).to_string());
    Ok(ids.collect())
}

#[pyfunction]
fn shred_key_file(tenant: &str) -> String {
    proofgate_evidence::shred_key_file(tenant).into_owned()
}
