use pyo3::prelude::*;

use crate::errors::config_error;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(prices_at, module)?)
}

/// Returns the prices that are valid at a time; see `_core.pyi`.
#[pyfunction]
fn prices_at(python: Python<'_>, asked_json: &str, now_us: u64) -> PyResult<String> {
    let listed = python.detach(|| proofgate_dataplane::prices_at(asked_json, now_us));
    listed.map_err(|error| config_error(python, &error.to_string()))
}
