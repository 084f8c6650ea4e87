//! A Merkle tree (RFC 9162) of arbitrary leaves, for logs that are stored in Python.

use proofgate_ledger::{Hash, LedgerError, Mmr, leaf_hash};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An append-only tree that stores its peaks and no leaves.
#[pyclass(module = "proofgate._core")]
pub(crate) struct Tree {
    range: Mmr,
}

#[pymethods]
impl Tree {
    #[new]
    #[pyo3(signature = (size=0, peaks=Vec::new()))]
    fn new(size: u64, peaks: Vec<Hash>) -> PyResult<Self> {
        let range = Mmr::from_peaks(size, peaks);
        let range = range.map_err(|error: LedgerError| PyValueError::new_err(error.to_string()))?;
        Ok(Self { range })
    }

    fn push(&mut self, leaf: &[u8]) {
        self.range.push(leaf_hash(leaf), &mut |_| {});
    }

    #[getter]
    fn size(&self) -> u64 {
        self.range.size()
    }

    #[getter]
    fn root<'py>(&self, python: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(python, &self.range.root())
    }

    #[getter]
    fn peaks<'py>(&self, python: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let peaks = self.range.peaks().iter();
        peaks.map(|peak| PyBytes::new(python, peak)).collect()
    }
}
