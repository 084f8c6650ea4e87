//! The extension module `proofgate._core`: the only crate that uses Python.
//!
//! Python calls into the core; only an auditor that queries workers calls out ([`python_storage`]). Every call that may block
//! detaches from the interpreter first, and the worker's threads never attach to it, so neither side can block the other.

mod auditor;
mod errors;
mod evidence;
mod index;
mod limits;
mod models;
mod payloads;
mod policy;
mod policy_queue;
mod prices;
mod python_storage;
mod replay;
mod retention;
mod shred_keys;
mod signature;
mod telemetry;
mod timeout;
mod tree;
mod witness;
mod worker;

use pyo3::prelude::*;

/// Sets whether the core writes its log as JSON instead of text.
#[pyfunction]
fn use_json_log(json: bool) {
    proofgate_log::set_json(json);
}

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    proofgate_dataplane::install_panic_hook();
    module.add_function(wrap_pyfunction!(use_json_log, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<worker::Worker>()?;
    module.add_class::<policy_queue::PolicyQueue>()?;
    module.add_class::<policy_queue::PolicyItem>()?;
    module.add_class::<telemetry::ExchangeQueue>()?;
    module.add_class::<auditor::Auditor>()?;
    module.add_class::<witness::Witness>()?;
    module.add_class::<index::ExchangeReader>()?;
    module.add_class::<index::ExchangeBatch>()?;
    module.add_class::<retention::RetentionState>()?;
    module.add_class::<replay::RecordedExchanges>()?;
    module.add_class::<replay::RecordedExchange>()?;
    module.add_class::<replay::PyReplayer>()?;
    module.add_class::<tree::Tree>()?;
    module.add_class::<payloads::StoredPayloads>()?;
    module.add_class::<payloads::StoredExchange>()?;
    errors::register(module)?;
    payloads::register(module)?;
    policy::register(module)?;
    models::register(module)?;
    prices::register(module)?;
    signature::register(module)?;
    index::register(module)?;
    limits::register(module)?;
    shred_keys::register(module)?;
    evidence::register(module)
}
