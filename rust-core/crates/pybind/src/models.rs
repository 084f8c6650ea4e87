use proofgate_dialect::constraints::constraint_rows;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Serialize;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(model_constraints, module)?)?;
    module.add_function(wrap_pyfunction!(config_fields, module)?)
}

#[derive(Serialize)]
struct KnownConstraints {
    constraint: proofgate_dialect::constraints::Constraint,
    source: &'static str,
}

/// Returns the known constraints of a model's requests; see `_core.pyi`.
#[pyfunction]
fn model_constraints(model: &str) -> PyResult<String> {
    let known: Vec<KnownConstraints> = constraint_rows(model)
        .map(|row| KnownConstraints {
            constraint: row.constraint,
            source: row.source,
        })
        .collect();
    serde_json::to_string(&known).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Returns the fields of a worker's configuration document; see `_core.pyi`.
#[pyfunction]
fn config_fields() -> Vec<String> {
    proofgate_dataplane::config_fields()
}
