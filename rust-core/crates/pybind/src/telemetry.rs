//! Exchanges that Python exports as telemetry: one call for a batch.

use proofgate_dataplane as dataplane;
use pyo3::prelude::*;

/// The exchanges whose traces are sampled; see `_core.pyi`.
#[pyclass(frozen)]
pub(crate) struct ExchangeQueue(dataplane::ExchangeQueue);

impl ExchangeQueue {
    pub(crate) fn new(queue: dataplane::ExchangeQueue) -> Self {
        ExchangeQueue(queue)
    }
}

#[pymethods]
impl ExchangeQueue {
    fn take(&self, python: Python<'_>, most: usize) -> Option<Vec<String>> {
        python.detach(|| self.0.take_batch(most))
    }
}
