//! A remote ledger: Python fetches what the core requests, and the core verifies all of it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofgate_evidence::{ReadFile, ReadStorage};
use pyo3::exceptions::{PyFileNotFoundError, PyNotADirectoryError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A Python object with `list(path)`, `open(path)` and `read(path, offset, most)`; see `_core.pyi`.
pub(crate) struct PythonStorage(Arc<Py<PyAny>>);

impl PythonStorage {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self(Arc::new(object))
    }
}

/// An opened file: its length at that time, and some of its first bytes.
struct PythonFile {
    object: Arc<Py<PyAny>>,
    path: PathBuf,
    len: u64,
    prefix: Vec<u8>,
}

/// Maps a Python exception to an I/O error: a missing or unreadable path keeps its kind, everything else counts as an
/// unreachable source.
fn io_error(python: Python<'_>, error: &PyErr) -> io::Error {
    let kind = if error.is_instance_of::<PyFileNotFoundError>(python) {
        io::ErrorKind::NotFound
    } else if error.is_instance_of::<PyNotADirectoryError>(python) {
        io::ErrorKind::NotADirectory
    } else if error.is_instance_of::<PyPermissionError>(python) {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::HostUnreachable
    };
    io::Error::new(kind, error.value(python).to_string())
}

impl ReadStorage for PythonStorage {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let (len, beginning) = Python::attach(|python| {
            let opened = self.0.call_method1(python, "open", (path.to_string_lossy(),));
            let opened = opened.and_then(|opened| {
                let (len, beginning): (u64, Bound<'_, PyBytes>) = opened.extract(python)?;
                Ok((len, beginning.as_bytes().to_vec()))
            });
            opened.map_err(|error| io_error(python, &error))
        })?;
        Ok(Arc::new(PythonFile {
            object: Arc::clone(&self.0),
            path: path.to_owned(),
            len,
            prefix: beginning,
        }))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Python::attach(|python| {
            let names = self.0.call_method1(python, "list", (path.to_string_lossy(),));
            let names = names.and_then(|names| names.extract::<Vec<String>>(python));
            names.map_err(|error| io_error(python, &error))
        })
    }
}

impl ReadFile for PythonFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let known = usize::try_from(offset).ok().and_then(|at| self.prefix.get(at..));
        if let Some(known) = known
            && (known.len() >= into.len() || self.prefix.len() as u64 >= self.len)
        {
            let count = known.len().min(into.len());
            into[..count].copy_from_slice(&known[..count]);
            return Ok(count);
        }
        Python::attach(|python| {
            let asked = (self.path.to_string_lossy(), offset, into.len());
            let read = self.object.call_method1(python, "read", asked);
            let read = read.and_then(|read| Ok(read.into_bound(python).cast_into::<PyBytes>()?));
            let read = read.map_err(|error| io_error(python, &error))?;
            let bytes = read.as_bytes();
            let place = into.get_mut(..bytes.len()).ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::HostUnreachable,
                    "it returned more bytes than requested",
                )
            })?;
            place.copy_from_slice(bytes);
            Ok(bytes.len())
        })
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}
