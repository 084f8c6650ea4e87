use proofgate_ledger::LedgerError as LedgerRefusal;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(_core, ProofgateError, PyException);
create_exception!(_core, ConfigError, ProofgateError);
create_exception!(_core, LedgerError, ProofgateError);
create_exception!(_core, BindError, ProofgateError);
create_exception!(_core, ProofError, ProofgateError);
create_exception!(_core, AuditorError, ProofgateError);
create_exception!(_core, WitnessError, ProofgateError);
create_exception!(_core, KeepingError, ProofgateError);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let python = module.py();
    module.add("ProofgateError", python.get_type::<ProofgateError>())?;
    module.add("ConfigError", python.get_type::<ConfigError>())?;
    module.add("LedgerError", python.get_type::<LedgerError>())?;
    module.add("BindError", python.get_type::<BindError>())?;
    module.add("ProofError", python.get_type::<ProofError>())?;
    module.add("AuditorError", python.get_type::<AuditorError>())?;
    module.add("WitnessError", python.get_type::<WitnessError>())?;
    module.add("KeepingError", python.get_type::<KeepingError>())
}

/// Sets the stable machine code of an exception, as its class documents.
fn with_code(python: Python<'_>, error: PyErr, code: &str) -> PyErr {
    match error.value(python).setattr("code", code) {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// Returns the exception for a worker error.
pub(crate) fn worker_error(python: Python<'_>, error: &proofgate_dataplane::Error) -> PyErr {
    use proofgate_dataplane::Error;
    let message = error.to_string();
    let raised = match error {
        Error::Config(_) => ConfigError::new_err(message),
        Error::Ledger(_) => LedgerError::new_err(message),
        Error::Bind { .. } => BindError::new_err(message),
        Error::Thread { .. } | Error::CommandTimedOut | Error::NotRunning => ProofgateError::new_err(message),
    };
    with_code(python, raised, error.code())
}

/// Returns the exception for an invalid configuration.
pub(crate) fn config_error(python: Python<'_>, error: &impl ToString) -> PyErr {
    with_code(python, ConfigError::new_err(error.to_string()), "config")
}

/// Returns the exception for a ledger on disk that cannot be read or does not verify.
pub(crate) fn evidence_error(python: Python<'_>, error: &proofgate_evidence::EvidenceError) -> PyErr {
    with_code(python, LedgerError::new_err(error.to_string()), error.code())
}

/// Returns the exception for a log that cannot be indexed.
pub(crate) fn index_error(python: Python<'_>, error: &proofgate_index::IndexError) -> PyErr {
    with_code(python, LedgerError::new_err(error.to_string()), error.code())
}

/// Returns the exception for stored payloads that cannot be read.
pub(crate) fn payload_error(python: Python<'_>, error: &proofgate_payloads::PayloadError) -> PyErr {
    with_code(python, LedgerError::new_err(error.to_string()), error.code())
}

/// Returns the exception for evidence that does not verify.
pub(crate) fn proof_error(python: Python<'_>, error: &impl ToString) -> PyErr {
    with_code(python, ProofError::new_err(error.to_string()), "proof")
}

/// Returns the exception for rejected evidence; its code distinguishes evidence that is signed by another key.
pub(crate) fn ledger_refusal_error(python: Python<'_>, error: &LedgerRefusal) -> PyErr {
    let code = match error.code() {
        LedgerRefusal::WRONG_KEY => LedgerRefusal::WRONG_KEY,
        _ => "proof",
    };
    with_code(python, ProofError::new_err(error.to_string()), code)
}

/// Returns the exception for an auditor that cannot start or continue.
pub(crate) fn auditor_error(python: Python<'_>, error: &proofgate_auditor::AuditorError) -> PyErr {
    with_code(python, AuditorError::new_err(error.to_string()), error.code())
}

/// Returns the exception for a witness that cannot start.
pub(crate) fn witness_error(python: Python<'_>, error: &proofgate_witness::WitnessError) -> PyErr {
    with_code(python, WitnessError::new_err(error.to_string()), error.code())
}

/// Returns the exception for a retention job that cannot hold, remove or erase.
pub(crate) fn retention_error(python: Python<'_>, error: &proofgate_keeping::RetentionError) -> PyErr {
    with_code(python, KeepingError::new_err(error.to_string()), error.code())
}
