//! The kinds of limits, for names and displays in Python.

use proofgate_limits::Limit;
use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(limit_kinds, module)?)
}

/// Returns each kind of limit; see `_core.pyi`.
#[pyfunction]
fn limit_kinds() -> Vec<(
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
)> {
    let kinds = Limit::ALL.into_iter().map(Limit::kind);
    kinds
        .map(|kind| {
            let (quantity, period) = (kind.quantity.as_str(), kind.period.as_str());
            (kind.name, kind.field, kind.code, quantity, period)
        })
        .collect()
}
