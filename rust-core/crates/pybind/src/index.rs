//! Exchanges as rows, for external indexes; and records with their inclusion paths, for exports.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use proofgate_evidence::{EvidenceError, FileStorage, key_successions, prove, read_records};
use proofgate_index::{
    AnalysisRow, AnalysisWindow, Batch, BatchLimits, BatchReader, Day, Exchange, ExchangeEnd, IndexError,
    IndexedColumn, LogCursor, RequestId, signed_logs,
};
use proofgate_ledger::{Checkpoint, Hash, LedgerError, VerifyingKey, leaf_hash, record, verify_inclusion};
use pyo3::conversion::IntoPyObject;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::errors::{evidence_error, index_error, ledger_refusal_error, proof_error};

static STORAGE: FileStorage = FileStorage;

/// A log's directory, and its signed note.
type SignedNote = (OsString, String);
/// A column, the number of a text or list, and a minute.
type MinuteColumn = (u8, i64, i64);
/// A minute, and the maximum cost of an exchange in it.
type MinuteMaxCost = (i64, i64);
/// The number of a tenant, a column, the number of a text or list, and an hour.
type TenantHourColumn = (i64, u8, i64, i64);
/// A tenant's number, an hour, and the maximum cost of an exchange of the tenant in it.
type TenantHourMaxCost = (i64, i64, i64);
/// The rows for minutes, and for tenants' hours.
type MinuteRows = (
    Vec<MinuteColumn>,
    Vec<MinuteMaxCost>,
    Vec<TenantHourColumn>,
    Vec<TenantHourMaxCost>,
);
/// Five-minute interval, tenant and model; exchanges, refused, blocked, open; input tokens, output
/// tokens, nanodollars; unpriced, and the time of the newest exchange.
type SumRow = (
    (i64, Option<String>, Option<String>),
    (i64, i64, i64, i64),
    (f64, f64, f64),
    (i64, Option<i64>),
);
/// A record as it is stored, and its inclusion path.
type ProvedRecord<'py> = (Bound<'py, PyBytes>, Vec<Hash>);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ledger_logs, module)?)?;
    module.add_function(wrap_pyfunction!(log_records, module)?)?;
    module.add_function(wrap_pyfunction!(verify_log_records, module)?)?;
    module.add_function(wrap_pyfunction!(sign_export, module)?)?;
    module.add_function(wrap_pyfunction!(verify_export, module)?)
}

fn parse_key(text: &str) -> PyResult<VerifyingKey> {
    VerifyingKey::from_file_text(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pyfunction]
#[pyo3(signature = (ledger, verifying_key, known, keeping_key=None))]
fn ledger_logs(
    python: Python<'_>,
    ledger: PathBuf,
    verifying_key: &str,
    known: BTreeMap<String, u64>,
    keeping_key: Option<&str>,
) -> PyResult<(Vec<SignedNote>, Vec<String>)> {
    let keeping = keeping_key.map(parse_key).transpose()?;
    let key = parse_key(verifying_key)?;
    let found = python.detach(|| {
        let key = key_successions::follow_successions(&STORAGE, &ledger, &key)?;
        signed_logs(&STORAGE, &ledger, &key, keeping.as_ref(), &known)
    });
    let (logs, problems) = found.map_err(|error| index_error(python, &error))?;
    let logs = logs.into_iter();
    Ok((
        logs.map(|log| (log.dir.into_os_string(), log.note)).collect(),
        problems,
    ))
}

/// Reads one log up to a checkpoint. Only one thread reads at a time.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct ExchangeReader {
    reader: Mutex<BatchReader<'static>>,
    #[pyo3(get)]
    origin: String,
    #[pyo3(get)]
    size: u64,
}

#[pymethods]
impl ExchangeReader {
    #[new]
    #[pyo3(signature = (directory, note, verifying_key, place=None, most_records=None))]
    fn new(
        python: Python<'_>,
        directory: PathBuf,
        note: &str,
        verifying_key: &str,
        place: Option<&str>,
        most_records: Option<u64>,
    ) -> PyResult<Self> {
        let key = parse_key(verifying_key)?;
        let usual = BatchLimits::default();
        let limits = BatchLimits {
            records: most_records.unwrap_or(usual.records).max(1),
            ..usual
        };
        let opened = python.detach(|| {
            let place = place.map(LogCursor::parse).transpose()?;
            let key = key_successions::follow_successions(&STORAGE, &directory, &key)?;
            BatchReader::open(&STORAGE, &directory, note, &key, place.as_ref(), limits)
        });
        let reader = opened.map_err(|error| index_error(python, &error))?;
        Ok(Self {
            origin: reader.origin().to_owned(),
            size: reader.size(),
            reader: Mutex::new(reader),
        })
    }

    fn next(&self, python: Python<'_>) -> PyResult<Option<ExchangeBatch>> {
        let batch = python.detach(|| self.reader.lock().unwrap_or_else(PoisonError::into_inner).next());
        let batch = batch.map_err(|error: IndexError| index_error(python, &error))?;
        Ok(batch.map(ExchangeBatch))
    }
}

/// The exchanges of a section of a log.
#[pyclass(module = "proofgate._core", frozen)]
pub(crate) struct ExchangeBatch(Batch);

/// A value of a row.
enum Cell<'b> {
    Integer(Option<i64>),
    Bytes(&'b [u8]),
    Text(&'b str),
}

impl<'py> IntoPyObject<'py> for Cell<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, python: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Integer(None) => Ok(python.None().into_bound(python)),
            Self::Integer(Some(number)) => Ok(number.into_pyobject(python)?.into_any()),
            Self::Bytes(bytes) => Ok(PyBytes::new(python, bytes).into_any()),
            Self::Text(text) => Ok(text.into_pyobject(python)?.into_any()),
        }
    }
}

#[pymethods]
impl ExchangeBatch {
    #[getter]
    fn size(&self) -> u64 {
        self.0.cursor.size()
    }

    #[getter]
    fn place(&self) -> String {
        self.0.cursor.to_text()
    }

    #[getter]
    fn sealed(&self) -> bool {
        self.0.sealed
    }

    #[getter]
    fn ended(&self) -> Vec<(String, u64)> {
        self.0.ended_logs.clone()
    }

    #[getter]
    fn configuration_change<'py>(&self, python: Python<'py>) -> Option<(i64, Bound<'py, PyBytes>)> {
        let configured = self.0.configuration?;
        Some((configured.ts, PyBytes::new(python, &configured.digest)))
    }

    fn days(&self) -> Vec<i64> {
        self.0.days.keys().copied().collect()
    }

    fn texts(&self, day: i64) -> PyResult<Vec<String>> {
        Ok(self.day(day)?.texts().to_vec())
    }

    fn lists(&self, day: i64) -> PyResult<Vec<Vec<u32>>> {
        Ok(self.day(day)?.lists().to_vec())
    }

    fn rows<'py>(
        &self,
        python: Python<'py>,
        day: i64,
        texts: Vec<i64>,
        lists: Vec<i64>,
        log: i64,
        version: i64,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let of = self.numbered_day(day, &texts, &lists)?;
        let rows = of.exchanges.iter();
        rows.map(|exchange| PyTuple::new(python, exchange_cells(exchange, &texts, &lists, log, version)))
            .collect()
    }

    fn minutes(&self, day: i64, texts: Vec<i64>, lists: Vec<i64>) -> PyResult<MinuteRows> {
        let minutes = self.day(day)?.minute_index();
        let of = |numbers: &[i64], number: u32| {
            let number = numbers.get(number as usize);
            number
                .copied()
                .ok_or_else(|| PyValueError::new_err("texts or lists has no number for a value of the batch"))
        };
        let in_column = |held: IndexedColumn, number: u32| match held {
            IndexedColumn::Key | IndexedColumn::KeyName | IndexedColumn::Model | IndexedColumn::Outcome => {
                of(&texts, number)
            }
            IndexedColumn::Providers | IndexedColumn::Rules => of(&lists, number),
        };
        let held = minutes.values.into_iter();
        let held = held.map(|(held, number, minute)| Ok((held as u8, in_column(held, number)?, minute)));
        let tenants = minutes.tenant_values.into_iter();
        let tenants = tenants.map(|(tenant, held, number, hour)| {
            Ok((of(&texts, tenant)?, held as u8, in_column(held, number)?, hour))
        });
        let tenants_costs = minutes.tenant_max_costs.into_iter();
        let tenants_costs = tenants_costs.map(|((tenant, hour), most)| Ok((of(&texts, tenant)?, hour, most)));
        Ok((
            held.collect::<PyResult<_>>()?,
            minutes.max_costs.into_iter().collect(),
            tenants.collect::<PyResult<_>>()?,
            tenants_costs.collect::<PyResult<_>>()?,
        ))
    }

    fn sums(&self, day: i64) -> PyResult<Vec<SumRow>> {
        let of = self.day(day)?;
        let name = |number: Option<u32>| number.and_then(|number| of.texts().get(number as usize)).cloned();
        let sums = of.sums().into_iter();
        let sums = sums.map(|((at, tenant, model), sums)| {
            (
                (at, name(tenant), name(model)),
                (sums.exchanges, sums.refused, sums.blocked, sums.open),
                (sums.prompt_tokens, sums.completion_tokens, sums.cost),
                (sums.unpriced, sums.newest),
            )
        });
        Ok(sums.collect())
    }

    fn request_number_ranges(&self, day: i64) -> PyResult<Vec<(String, i64, i64)>> {
        let of = self.day(day)?;
        let named = |(tenant, (first, last)): (u32, (i64, i64))| {
            let name = of.texts().get(tenant as usize)?;
            Some((name.clone(), first, last))
        };
        Ok(of.request_number_ranges().into_iter().filter_map(named).collect())
    }

    fn attempts(&self, day: i64, texts: Vec<i64>) -> PyResult<Vec<(i64, i64, u32, i64)>> {
        let exchanges = &self.day(day)?.exchanges;
        let attempts = exchanges.iter().flat_map(|exchange| {
            let attempts = exchange.attempts.iter();
            attempts.map(|attempt| (exchange.seq, attempt.seq, attempt.number, attempt.provider))
        });
        attempts
            .map(|(seq, at, number, provider)| {
                let provider = texts.get(provider as usize);
                let provider = provider.ok_or_else(|| {
                    PyValueError::new_err("texts has no number for a provider of the batch")
                })?;
                Ok((seq, at, number, *provider))
            })
            .collect()
    }

    fn analysed<'py>(
        &self,
        python: Python<'py>,
        day: i64,
        texts: Vec<i64>,
        lists: Vec<i64>,
        log: i64,
        version: i64,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let of = self.numbered_day(day, &texts, &lists)?;
        let rows = of.analyses.iter();
        rows.map(|found| PyTuple::new(python, analysed_cells(found, &texts, &lists, log, version)))
            .collect()
    }

    fn open_admissions(&self) -> Vec<(i64, i64)> {
        self.0.open_admissions().collect()
    }

    fn late_records(&self) -> PyResult<Vec<String>> {
        let late = self.0.late_records.iter().map(serde_json::to_string);
        late.map(|text| text.map_err(|error| PyValueError::new_err(error.to_string())))
            .collect()
    }
}

impl ExchangeBatch {
    fn day(&self, day: i64) -> PyResult<&Day> {
        self.0.days.get(&day).ok_or_else(|| PyKeyError::new_err(day))
    }

    /// Returns a day, if there is a number for each of its texts and lists.
    fn numbered_day(&self, day: i64, texts: &[i64], lists: &[i64]) -> PyResult<&Day> {
        let of = self.day(day)?;
        if texts.len() == of.texts().len() && lists.len() == of.lists().len() {
            return Ok(of);
        }
        Err(PyValueError::new_err(
            "texts and lists must have one number for each text and each list of the batch",
        ))
    }
}

/// Returns a row, in the order of the columns of the table `exchange`.
fn exchange_cells<'b>(
    exchange: &'b Exchange,
    texts: &[i64],
    lists: &[i64],
    log: i64,
    version: i64,
) -> [Cell<'b>; 31] {
    let text = |number: u32| texts[number as usize];
    let end = exchange.end.as_ref();
    let said = &exchange.attribution;
    let of_end = |value: fn(&ExchangeEnd) -> Option<i64>| Cell::Integer(end.and_then(value));
    [
        Cell::Integer(Some(exchange.ts)),
        Cell::Integer(Some(log)),
        Cell::Integer(Some(exchange.seq)),
        id_cell(&exchange.id),
        Cell::Integer(exchange.tenant.map(text)),
        Cell::Integer(exchange.tenant_seq),
        Cell::Integer(exchange.key.map(text)),
        Cell::Integer(exchange.model.map(text)),
        Cell::Integer(exchange.providers.map(|list| lists[list as usize])),
        Cell::Integer(exchange.endpoint.map(text)),
        Cell::Integer(Some(u8::from(exchange.verdict).into())),
        Cell::Integer(exchange.rules.map(|list| lists[list as usize])),
        Cell::Integer(Some(exchange.bytes)),
        Cell::Integer(Some(version)),
        Cell::Integer(end.map(|_| log)),
        of_end(|end| Some(end.seq)),
        of_end(|end| end.status.map(i64::from)),
        Cell::Integer(end.map(|end| text(end.outcome))),
        of_end(|end| end.prompt_tokens),
        of_end(|end| end.completion_tokens),
        of_end(|end| end.cost),
        of_end(|end| end.bytes),
        of_end(|end| end.duration),
        Cell::Integer(said.session.map(text)),
        Cell::Integer(said.end_user.map(text)),
        Cell::Integer(said.agent.map(text)),
        Cell::Integer(said.parent_agent.map(text)),
        said.trace_id
            .as_ref()
            .map_or(Cell::Integer(None), |id| Cell::Bytes(id)),
        Cell::Integer(said.end_user_name.map(text)),
        Cell::Integer(exchange.client_address.map(text)),
        Cell::Integer(exchange.key_name.map(text)),
    ]
}

/// Returns a row, in the order of the columns of the table `analysis`.
fn analysed_cells<'b>(
    found: &'b AnalysisRow,
    texts: &[i64],
    lists: &[i64],
    log: i64,
    version: i64,
) -> [Cell<'b>; 17] {
    let window = found.window.as_ref();
    let of_window = |value: fn(&AnalysisWindow) -> Option<i64>| Cell::Integer(window.and_then(value));
    [
        Cell::Integer(Some(found.ts)),
        Cell::Integer(Some(log)),
        Cell::Integer(Some(found.seq)),
        id_cell(&found.exchange),
        Cell::Integer(Some(texts[found.tenant as usize])),
        Cell::Integer(Some(texts[found.model as usize])),
        Cell::Integer(found.findings.map(|list| lists[list as usize])),
        Cell::Integer(Some(version)),
        Cell::Integer(found.entropy),
        Cell::Integer(found.repetition),
        Cell::Integer(found.stretch),
        of_window(|window| Some(window.number)),
        of_window(|window| Some(window.answers)),
        of_window(|window| window.length),
        of_window(|window| Some(window.refusal)),
        of_window(|window| Some(window.cut)),
        window.map_or(Cell::Integer(None), |window| Cell::Text(&window.tests)),
    ]
}

fn id_cell(id: &RequestId) -> Cell<'_> {
    match id {
        RequestId::Gateway(bytes) => Cell::Bytes(bytes),
        RequestId::Other(text) => Cell::Text(text),
    }
}

/// Returns records of one log as they are stored, with the inclusion paths to the root of a checkpoint.
#[pyfunction]
fn log_records<'py>(
    python: Python<'py>,
    directory: PathBuf,
    note: &str,
    verifying_key: &str,
    numbers: Vec<u64>,
) -> PyResult<Vec<ProvedRecord<'py>>> {
    let key = parse_key(verifying_key)?;
    if !numbers.is_sorted() {
        return Err(PyValueError::new_err(
            "the record numbers must be in ascending order",
        ));
    }
    let found = python.detach(|| -> Result<_, EvidenceError> {
        let key = key_successions::follow_successions(&STORAGE, &directory, &key)?;
        let signed = Checkpoint::verify(note, &key)?;
        let records = read_records(&STORAGE, &directory, &numbers)?;
        let leaves = numbers.iter().zip(&records);
        let leaves: Vec<_> = leaves.map(|(seq, record)| (*seq, leaf_hash(record))).collect();
        let paths = prove::inclusion_paths(&STORAGE, &directory, &leaves, &signed)?;
        Ok(records.into_iter().zip(paths).collect::<Vec<_>>())
    });
    let found = found.map_err(|error| evidence_error(python, &error))?;
    let found = found.into_iter();
    Ok(found
        .map(|(record, path)| (PyBytes::new(python, &record), path))
        .collect())
}

/// Checks that records are included, byte for byte, at their indices under one signed checkpoint,
/// and that each contains its index.
#[pyfunction]
fn verify_log_records(
    python: Python<'_>,
    note: &str,
    verifying_key: &str,
    records: Vec<(u64, Vec<u8>, Vec<Hash>)>,
) -> PyResult<(String, u64)> {
    let key = parse_key(verifying_key)?;
    let checked = python.detach(|| -> Result<_, RecordRefusal> {
        let signed = Checkpoint::verify(note, &key).map_err(RecordRefusal::Ledger)?;
        for (index, record, path) in &records {
            let wrong = |error: String| {
                RecordRefusal::Record(format!("record {index} of {}: {error}", signed.origin))
            };
            verify_inclusion(&leaf_hash(record), *index, signed.size, path, &signed.root)
                .map_err(|error| wrong(error.to_string()))?;
            let stated = record::parse(record)
                .map_err(|error| wrong(error.to_string()))?
                .seq();
            if stated != *index {
                return Err(wrong(format!("it says that it is record {stated}")));
            }
        }
        Ok((signed.origin, signed.size))
    });
    checked.map_err(|error| match error {
        RecordRefusal::Ledger(error) => ledger_refusal_error(python, &error),
        RecordRefusal::Record(error) => proof_error(python, &error),
    })
}

/// Why records are not accepted as included under a checkpoint.
enum RecordRefusal {
    /// The checkpoint does not verify.
    Ledger(LedgerError),
    /// One of the records does not verify.
    Record(String),
}

#[pyfunction]
fn sign_export(signing_key: &str, digest: Hash) -> PyResult<String> {
    let key = proofgate_signer::read_keys(signing_key).map(|(key, _)| key);
    let key = key.map_err(|error| PyValueError::new_err(error.to_string()))?;
    key.sign_export(&digest)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pyfunction]
fn verify_export(python: Python<'_>, note: &str, verifying_key: &str, digest: Hash) -> PyResult<()> {
    let checked = parse_key(verifying_key)?.verify_export(note, &digest);
    checked.map_err(|error| ledger_refusal_error(python, &error))
}
