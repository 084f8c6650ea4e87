use proofgate_dataplane::ShardFiles;
use proofgate_providers::sigv4::Credentials;
use proofgate_stages::Interval;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::errors::worker_error;
use crate::policy_queue::PolicyQueue;
use crate::telemetry::ExchangeQueue;
use crate::timeout::seconds;

/// One worker; see `_core.pyi`.
#[pyclass(frozen)]
pub(crate) struct Worker(proofgate_dataplane::Worker);

#[pymethods]
impl Worker {
    #[new]
    fn new(python: Python<'_>, config_json: &str) -> PyResult<Self> {
        let worker = python.detach(|| {
            proofgate_dataplane::Config::from_json(config_json).and_then(proofgate_dataplane::Worker::new)
        });
        worker.map(Worker).map_err(|error| worker_error(python, &error))
    }

    fn start(&self, python: Python<'_>) -> PyResult<()> {
        python
            .detach(|| self.0.start())
            .map_err(|error| worker_error(python, &error))
    }

    #[getter]
    fn address(&self, python: Python<'_>) -> PyResult<String> {
        self.0.address().map_err(|error| worker_error(python, &error))
    }

    #[getter]
    fn origin(&self, python: Python<'_>) -> PyResult<String> {
        self.0.origin().map_err(|error| worker_error(python, &error))
    }

    fn ready(&self) -> Option<&'static str> {
        self.0.not_ready_reason()
    }

    fn status(&self, python: Python<'_>) -> PyResult<String> {
        let status = self.0.status().map_err(|error| worker_error(python, &error))?;
        serde_json::to_string(&status).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn limit_use(&self, python: Python<'_>, most: usize) -> PyResult<String> {
        let limits = python.detach(|| self.0.limit_usage(most));
        let limits = limits.map_err(|error| worker_error(python, &error))?;
        serde_json::to_string(&limits).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn metrics(&self, python: Python<'_>) -> PyResult<String> {
        self.0.metrics().map_err(|error| worker_error(python, &error))
    }

    fn checkpoint(&self, python: Python<'_>) -> PyResult<String> {
        python
            .detach(|| self.0.checkpoint())
            .map_err(|error| worker_error(python, &error))
    }

    fn prove(&self, python: Python<'_>, request_id: &str, timeout_seconds: f64) -> PyResult<String> {
        let timeout = seconds(timeout_seconds)?;
        let proved = python.detach(|| self.0.prove(request_id, timeout));
        let records = proved.map_err(|error| worker_error(python, &error))?;
        match records.is_empty() {
            true => Err(PyKeyError::new_err(request_id.to_owned())),
            false => crate::evidence::to_json(&records),
        }
    }

    fn reload(&self, python: Python<'_>, config_json: &str) -> PyResult<()> {
        let reloaded = python.detach(|| {
            proofgate_dataplane::Config::from_json(config_json).and_then(|config| self.0.reload(config))
        });
        reloaded.map_err(|error| worker_error(python, &error))
    }

    fn set_tenant_shards(
        &self,
        python: Python<'_>,
        files: Vec<(usize, PyBackedBytes, PyBackedBytes)>,
    ) -> PyResult<String> {
        let set = python.detach(|| {
            let files = files.iter().map(|(number, keys, tenants)| ShardFiles {
                number: *number,
                keys,
                tenants,
            });
            self.0.set_tenant_shards(&files.collect::<Vec<_>>())
        });
        let report = set.map_err(|error| worker_error(python, &error))?;
        serde_json::to_string(&report).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn config_digest(&self) -> String {
        self.0.config_digest()
    }

    fn set_key_set(&self, python: Python<'_>, issuer: &str, jwks_json: &str) -> PyResult<usize> {
        python
            .detach(|| self.0.set_key_set(issuer, jwks_json))
            .map_err(|error| worker_error(python, &error))
    }

    fn set_access_token(
        &self,
        python: Python<'_>,
        provider: &str,
        token: &str,
        lifetime_seconds: f64,
    ) -> PyResult<()> {
        let lifetime = seconds(lifetime_seconds)?;
        python
            .detach(|| self.0.set_access_token(provider, token, lifetime))
            .map_err(|error| worker_error(python, &error))
    }

    fn set_aws_credentials(
        &self,
        python: Python<'_>,
        provider: &str,
        credentials: (String, String, Option<String>),
        lifetime_seconds: f64,
    ) -> PyResult<()> {
        let lifetime = seconds(lifetime_seconds)?;
        let (id, secret, token) = &credentials;
        let credentials = Credentials {
            access_key_id: id,
            secret_access_key: secret,
            session_token: token.as_deref(),
        };
        python
            .detach(|| self.0.set_aws_credentials(provider, credentials, lifetime))
            .map_err(|error| worker_error(python, &error))
    }

    fn policy_queue(&self, python: Python<'_>, policy: &str) -> PyResult<PolicyQueue> {
        let queue = self.0.policy_queue(policy);
        queue
            .map(PolicyQueue::new)
            .map_err(|error| worker_error(python, &error))
    }

    fn exchange_queue(&self, python: Python<'_>) -> PyResult<Option<ExchangeQueue>> {
        let queue = self.0.exchange_queue();
        let queue = queue.map_err(|error| worker_error(python, &error))?;
        Ok(queue.map(ExchangeQueue::new))
    }

    fn traffic_report(&self, python: Python<'_>) -> PyResult<String> {
        python
            .detach(|| self.0.traffic_report())
            .map_err(|error| worker_error(python, &error))
    }

    fn count_lost_telemetry(&self, python: Python<'_>, signal: &str, count: u64) -> PyResult<()> {
        self.0
            .count_lost_telemetry(signal, count)
            .map_err(|error| worker_error(python, &error))
    }

    fn take_requested_key_sets(&self) -> Vec<String> {
        self.0.take_requested_key_sets()
    }

    fn profiling(&self) -> bool {
        self.0.profiler().is_enabled()
    }

    fn set_profiling(&self, enabled: bool) -> bool {
        self.0.profiler().set_enabled(enabled)
    }

    fn enter_profiling(&self) {
        self.0.profiler().enter();
    }

    fn exit_profiling(&self) {
        self.0.profiler().exit();
    }

    fn record_interval(&self, name: &str, duration_seconds: f64) -> PyResult<()> {
        let interval = match name {
            "python_resume" => Interval::PythonResume,
            "loop_lag" => Interval::LoopLag,
            _ => {
                return Err(PyValueError::new_err(
                    "the interval must be python_resume or loop_lag",
                ));
            }
        };
        self.0.profiler().record(interval, seconds(duration_seconds)?);
        Ok(())
    }

    fn retire(&self, python: Python<'_>, retire: bool) -> PyResult<bool> {
        self.0
            .set_retired(retire)
            .map_err(|error| worker_error(python, &error))
    }

    fn drain(&self) {
        self.0.drain();
    }

    fn join(&self, python: Python<'_>, timeout_seconds: f64) -> PyResult<bool> {
        let timeout = seconds(timeout_seconds)?;
        Ok(python.detach(|| self.0.join(timeout)))
    }
}
