//! Evidence without a worker: proving, verifying, checking a ledger on disk, and generating keys.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofgate_dataplane::evidence::{self, Evidence};
use proofgate_evidence::{
    EvidenceError, FileStorage, FsckKeys, SearchMode, check_consistency, configurations, find_removed,
    key_successions, read_notes,
};
use proofgate_ledger::{Checkpoint, CosigningKey, KeySuccession, SigningKey, TlogProof, VerifyingKey};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::TryRngCore;
use serde::Serialize;

use crate::errors::{evidence_error, ledger_refusal_error};
use crate::shred_keys::read_shred_keys;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(verify_proof, module)?)?;
    module.add_function(wrap_pyfunction!(verify_checkpoint, module)?)?;
    module.add_function(wrap_pyfunction!(reveal, module)?)?;
    module.add_function(wrap_pyfunction!(reveal_digest, module)?)?;
    module.add_function(wrap_pyfunction!(prove, module)?)?;
    module.add_function(wrap_pyfunction!(fsck, module)?)?;
    module.add_function(wrap_pyfunction!(fsck_pinned, module)?)?;
    module.add_function(wrap_pyfunction!(export_leaves, module)?)?;
    module.add_function(wrap_pyfunction!(consistency, module)?)?;
    module.add_function(wrap_pyfunction!(generate_key, module)?)?;
    module.add_function(wrap_pyfunction!(generate_witness_key, module)?)?;
    module.add_function(wrap_pyfunction!(verifying_key, module)?)?;
    module.add_function(wrap_pyfunction!(sign_key_succession, module)?)?;
    module.add_function(wrap_pyfunction!(key_line, module)?)?;
    module.add_function(wrap_pyfunction!(split_key_successions, module)?)?;
    module.add_function(wrap_pyfunction!(hash_api_key, module)?)
}

/// Serialises evidence as the JSON document that `prove` returns.
pub(crate) fn to_json(records: &[Evidence]) -> PyResult<String> {
    #[derive(Serialize)]
    struct ProofDocument<'a> {
        records: &'a [Evidence],
    }
    serde_json::to_string(&ProofDocument { records })
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pyfunction]
fn verify_proof(python: Python<'_>, record: &[u8], proof: &str, verifying_key: &str) -> PyResult<String> {
    let key =
        VerifyingKey::from_file_text(verifying_key).map_err(|error| ledger_refusal_error(python, &error))?;
    let proof = TlogProof::parse(proof).map_err(|error| ledger_refusal_error(python, &error))?;
    let checkpoint = proof
        .verify(record, &key)
        .map_err(|error| ledger_refusal_error(python, &error))?;
    let verified = serde_json::json!({
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "index": proof.index,
        "root": STANDARD.encode(checkpoint.root),
    });
    Ok(verified.to_string())
}

#[pyfunction]
fn verify_checkpoint(python: Python<'_>, note: &str, verifying_key: &str) -> PyResult<String> {
    let signed = VerifyingKey::from_file_text(verifying_key).and_then(|key| Checkpoint::verify(note, &key));
    let signed = signed.map_err(|error| ledger_refusal_error(python, &error))?;
    let root = STANDARD.encode(signed.root);
    Ok(serde_json::json!({"origin": signed.origin, "size": signed.size, "root": root}).to_string())
}

#[pyfunction]
fn reveal_digest(
    python: Python<'_>,
    record: &[u8],
    proof: &str,
    verifying_key: &str,
    digest: [u8; 32],
) -> PyResult<&'static str> {
    let revealed = (|| {
        let key = VerifyingKey::from_file_text(verifying_key)?;
        TlogProof::parse(proof)?.reveal_digest(record, &key, &digest)
    })();
    revealed.map_err(|error| ledger_refusal_error(python, &error))
}

#[pyfunction]
fn reveal(
    python: Python<'_>,
    record: &[u8],
    proof: &str,
    verifying_key: &str,
    body: &[u8],
) -> PyResult<&'static str> {
    let revealed = (|| {
        let key = VerifyingKey::from_file_text(verifying_key)?;
        TlogProof::parse(proof)?.reveal(record, &key, body)
    })();
    revealed.map_err(|error| ledger_refusal_error(python, &error))
}

#[pyfunction]
#[pyo3(signature = (path, request_id, verifying_key=None, scan=false, shred_keys=None))]
fn prove(
    python: Python<'_>,
    path: PathBuf,
    request_id: &str,
    verifying_key: Option<&str>,
    scan: bool,
    shred_keys: Option<PathBuf>,
) -> PyResult<String> {
    let key = optional_key(verifying_key)?;
    let search = if scan {
        SearchMode::Scan
    } else {
        SearchMode::ByTime
    };
    let found = python.detach(|| {
        let key = extend_key_lineage(&path, key)?;
        let shred_keys = read_shred_keys(shred_keys.as_deref())?;
        let found = evidence::find_records(&path, request_id, search)?;
        evidence::prove_readable(found, key.as_ref(), shred_keys.as_ref())
    });
    let proven = found.map_err(|error| evidence_error(python, &error))?;
    if !proven.records.is_empty() {
        return serde_json::to_string(&proven).map_err(|error| PyValueError::new_err(error.to_string()));
    }
    let removed = find_removed(&FileStorage, &path, request_id);
    let removed = removed.map_err(|error| evidence_error(python, &error))?;
    match removed.into_iter().next() {
        Some(dir) => Err(evidence_error(python, &EvidenceError::Removed(dir))),
        None => Err(PyKeyError::new_err(request_id.to_owned())),
    }
}

/// Returns the key together with its successors, as recorded in the ledger at `path`.
fn extend_key_lineage(path: &Path, key: Option<VerifyingKey>) -> Result<Option<VerifyingKey>, EvidenceError> {
    let followed = key.map(|key| key_successions::follow_successions(&FileStorage, path, &key));
    followed.transpose()
}

pub(crate) fn optional_key(verifying_key: Option<&str>) -> PyResult<Option<VerifyingKey>> {
    let key = verifying_key.map(VerifyingKey::from_file_text).transpose();
    key.map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pyfunction]
#[pyo3(signature = (path, verifying_key, against=Vec::new(), keeping_key=None, mirror=false, shred_keys=None))]
fn fsck(
    python: Python<'_>,
    path: PathBuf,
    verifying_key: Option<&str>,
    against: Vec<(PathBuf, String)>,
    keeping_key: Option<&str>,
    mirror: bool,
    shred_keys: Option<PathBuf>,
) -> PyResult<(u8, String)> {
    let key = optional_key(verifying_key)?;
    let keeping = optional_key(keeping_key)?;
    if key
        .as_ref()
        .zip(keeping.as_ref())
        .is_some_and(|(key, keeping)| !key.is_independent_of(keeping))
    {
        return Err(invalid_error(
            "the retention key could sign for the ledger, or the ledger's key could sign for the retention job",
        ));
    }
    let report = python.detach(|| {
        let opens = read_shred_keys(shred_keys.as_deref())?;
        let mut held = Vec::new();
        // The report contains any errors in the ledger's statements.
        let line = extend_key_lineage(&path, key.clone()).unwrap_or_else(|_| key.clone());
        for (file, text) in &against {
            held.extend(proofgate_evidence::read_notes(file, text, line.as_ref())?);
        }
        let shred_keys = read_shred_keys(shred_keys.as_deref())?;
        let keys = FsckKeys {
            ledger: key.as_ref(),
            retention: keeping.as_ref(),
            shred: shred_keys.as_ref(),
        };
        if mirror {
            let mut report = proofgate_evidence::fsck_mirror(&FileStorage, &path, keys, &held)?;
            configurations::check(&FileStorage, &mut report);
            return Ok(report);
        }
        let mut report = proofgate_evidence::fsck(&FileStorage, &path, keys, &held)?;
        configurations::check(&FileStorage, &mut report);
        if let (Some(key), Some(opens)) = (&key, opens) {
            report.add_findings(proofgate_payloads::check(&FileStorage, &path, key, opens)?);
        }
        Ok(report)
    });
    let report = report.map_err(|error| evidence_error(python, &error))?;
    let json = serde_json::to_string(&report).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((report.exit_code, json))
}

/// Verdict, report, and files of a closed log with the digests of the verified bytes.
type PinnedReport<'py> = (u8, String, Vec<(PathBuf, u64, Bound<'py, PyBytes>)>);

#[pyfunction]
#[pyo3(signature = (directory, note, verifying_key, keeping_key=None))]
fn fsck_pinned<'py>(
    python: Python<'py>,
    directory: PathBuf,
    note: String,
    verifying_key: &str,
    keeping_key: Option<&str>,
) -> PyResult<PinnedReport<'py>> {
    let key = optional_key(Some(verifying_key))?;
    let keeping = optional_key(keeping_key)?;
    let checked = python.detach(|| {
        let line = extend_key_lineage(&directory, key.clone()).unwrap_or_else(|_| key.clone());
        let held = proofgate_evidence::read_notes(&directory, &note, line.as_ref())?;
        let keys = FsckKeys {
            ledger: key.as_ref(),
            retention: keeping.as_ref(),
            shred: None,
        };
        proofgate_evidence::fsck_pinned(&FileStorage, &directory, keys, &held)
    });
    let (report, files) = checked.map_err(|error| evidence_error(python, &error))?;
    let json = serde_json::to_string(&report).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let files = files.into_iter();
    let files = files.map(|file| (file.path, file.len, PyBytes::new(python, &file.sha256)));
    Ok((report.exit_code, json, files.collect()))
}

#[pyfunction]
fn export_leaves(python: Python<'_>, incarnation_dir: PathBuf, out_path: PathBuf) -> PyResult<u64> {
    let mut out = BufWriter::new(File::create(out_path)?);
    let exported =
        python.detach(|| proofgate_evidence::export_leaves(&FileStorage, &incarnation_dir, &mut out));
    let leaves = exported.map_err(|error| evidence_error(python, &error))?;
    out.flush()?;
    Ok(leaves)
}

/// Compares the single note in each file, and proves that the log at the older note is a prefix of
/// the log at the newer.
#[pyfunction]
#[pyo3(signature = (old, new, verifying_key, path=None, proof=None))]
fn consistency(
    python: Python<'_>,
    old: (PathBuf, String),
    new: (PathBuf, String),
    verifying_key: &str,
    path: Option<PathBuf>,
    proof: Option<Vec<[u8; 32]>>,
) -> PyResult<String> {
    let key = optional_key(Some(verifying_key))?;
    let checked = python.detach(|| {
        let key = match &path {
            Some(path) => extend_key_lineage(path, key)?,
            None => key,
        };
        let only = |(file, text): &(PathBuf, String)| match &read_notes(file, text, key.as_ref())?[..] {
            [one] => Ok(one.checkpoint.clone()),
            notes => Err(EvidenceError::InvalidNote {
                file: file.clone(),
                number: 2,
                reason: format!(
                    "the file contains {} notes, but exactly one is expected",
                    notes.len()
                )
                .into(),
            }),
        };
        let (old, new) = (only(&old)?, only(&new)?);
        let hashes = match path {
            Some(path) => proofgate_evidence::prove_consistency(&FileStorage, &path, &old, &new)?,
            None => {
                let hashes = proof.unwrap_or_default();
                check_consistency(&old, &new, &hashes)?;
                hashes
            }
        };
        Ok((old, new, hashes))
    });
    let (old, new, hashes) = checked.map_err(|error| evidence_error(python, &error))?;
    let hashes: Vec<String> = hashes.iter().map(|hash| STANDARD.encode(hash)).collect();
    let facts = serde_json::json!({"origin": new.origin, "old": old.size, "new": new.size, "hashes": hashes});
    Ok(facts.to_string())
}

fn invalid_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn random_seed() -> PyResult<[u8; 32]> {
    let mut seed = [0; 32];
    rand::rngs::OsRng
        .try_fill_bytes(&mut seed)
        .map_err(invalid_error)?;
    Ok(seed)
}

#[pyfunction]
fn generate_key(name: &str) -> PyResult<(String, String)> {
    let key = SigningKey::generate(name, random_seed()?).map_err(invalid_error)?;
    Ok((key.to_text(), key.verifying_key().to_text()))
}

#[pyfunction]
fn generate_witness_key(name: &str) -> PyResult<(String, String)> {
    let key = CosigningKey::generate(name, random_seed()?).map_err(invalid_error)?;
    Ok((key.to_text(), key.verifying_key().to_text()))
}

#[pyfunction]
fn verifying_key(signing_key: &str) -> PyResult<String> {
    let key = proofgate_signer::parse_public_key(signing_key);
    key.map(|key| key.to_text()).map_err(invalid_error)
}

#[pyfunction]
fn sign_key_succession(old: &str, new: &str, made_us: u64, until_us: u64) -> PyResult<String> {
    let key = |text: &str| proofgate_signer::read_keys(text).map_err(invalid_error);
    KeySuccession::sign(&key(old)?.0, &key(new)?.0, made_us, until_us).map_err(invalid_error)
}

#[pyfunction]
fn split_key_successions(text: &str) -> Vec<String> {
    KeySuccession::split_notes(text)
}

#[pyfunction]
fn key_line(key_file: &str) -> PyResult<Vec<(String, Option<u64>)>> {
    let key = match proofgate_signer::is_secret_key_text(key_file) {
        true => proofgate_signer::parse_public_key(key_file),
        false => VerifyingKey::from_file_text(key_file),
    };
    let line = key.map_err(invalid_error)?.lineage();
    Ok(line
        .into_iter()
        .map(|member| (member.key.to_text(), member.valid_until))
        .collect())
}

#[pyfunction]
fn hash_api_key(key: &str) -> String {
    proofgate_auth::hash_api_key(key.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
