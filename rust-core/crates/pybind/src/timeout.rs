//! Timeouts from Python arguments.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(crate) fn seconds(value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| PyValueError::new_err("a timeout must be a number of seconds, 0 or more"))
}
