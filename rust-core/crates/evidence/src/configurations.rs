//! The archived configurations that records name by digest. Workers write them beside the shards,
//! because the rules that led to a verdict are evidence like the verdict itself.

use crate::report::{Finding, Report, Verdict};
use crate::{EvidenceError, ReadFile, ReadStorage};
use proofgate_ledger::Hash;
use proofgate_ledger::record::{ConfigDigests, Record};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Name of a ledger's directory of archived configurations.
pub const CONFIGURATIONS_DIR: &str = "configurations";
/// Finding code: a record names a configuration that is not archived.
pub const CONFIGURATION_MISSING: &str = "configuration_missing";
/// Finding code: the file of a configuration does not match its digest.
pub const CONFIGURATION_CHANGED: &str = "configuration_changed";
/// Largest configuration that a worker archives, in bytes.
const MAX_CONFIGURATION_BYTES: u64 = 64 << 20;
/// Number of bytes per read.
const READ_CHUNK: usize = 64 << 10;

/// The state of an archived configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveState {
    /// The file matches the digest.
    Present,
    /// There is no file.
    Missing,
    /// The file does not match the digest; the text gives the reason.
    Changed(&'static str),
}

/// Returns the archive digest of the configuration that an `open` or `config` record puts in force;
/// `None` for other records.
#[must_use]
pub fn configuration_digest(record: &Record<'_>) -> Option<Hash> {
    let (config, settings) = match record {
        Record::Open(open) => (open.config, open.settings),
        Record::Config(config) => (config.config, config.settings),
        _ => return None,
    };
    Some(archive_digest(ConfigDigests { config, settings }))
}

/// Returns the digest under which a configuration is archived.
#[must_use]
pub fn archive_digest(digests: ConfigDigests) -> Hash {
    digests.settings.map_or(digests.config, |settings| settings.0)
}

/// Returns the path of the archived configuration with this digest.
#[must_use]
pub fn archive_path(ledger: &Path, digest: &Hash) -> PathBuf {
    let mut name = String::with_capacity(2 * digest.len() + 5);
    for byte in digest {
        let _ = write!(name, "{byte:02x}");
    }
    ledger.join(CONFIGURATIONS_DIR).join(name + ".json")
}

/// Checks the archived configuration with this digest. Returns its state and the number of bytes
/// read.
///
/// # Errors
/// [`EvidenceError::Io`] when the file cannot be read.
pub fn check_archived(
    storage: &dyn ReadStorage,
    ledger: &Path,
    digest: &Hash,
) -> Result<(ArchiveState, u64), EvidenceError> {
    let path = archive_path(ledger, digest);
    let file = match storage.open(&path) {
        Ok(file) => file,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok((ArchiveState::Missing, 0)),
                io::ErrorKind::InvalidData => Ok((ArchiveState::Changed("it is not a regular file"), 0)),
                _ => Err(EvidenceError::io("open", &path)(error)),
            };
        }
    };
    let read = file_digest(&*file).map_err(EvidenceError::io("read", &path))?;
    Ok(match read {
        None => (
            ArchiveState::Changed("it exceeds the size limit of a configuration"),
            0,
        ),
        Some((found, bytes)) if found == *digest => (ArchiveState::Present, bytes),
        Some((_, bytes)) => (ArchiveState::Changed("its SHA-256 differs from its name"), bytes),
    })
}

/// Returns the SHA-256 of a file and its length in bytes; `None` when the file is too long.
fn file_digest(file: &dyn ReadFile) -> io::Result<Option<(Hash, u64)>> {
    let (mut hasher, mut at, mut piece) = (Sha256::new(), 0, vec![0; READ_CHUNK]);
    if file.len()? > MAX_CONFIGURATION_BYTES {
        return Ok(None);
    }
    loop {
        match file.read_at(&mut piece, at)? {
            0 => return Ok(Some((hasher.finalize().into(), at))),
            read => {
                hasher.update(&piece[..read]);
                at += read as u64;
            }
        }
        if at > MAX_CONFIGURATION_BYTES {
            return Ok(None);
        }
    }
}

/// Adds findings about the configurations that the logs of a ledger name. A report that does not
/// cover a whole ledger remains unchanged, because a single log has no archive beside it.
pub fn check(storage: &dyn ReadStorage, report: &mut Report) {
    let Some(ledger) = report.ledger.clone() else {
        return;
    };
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for log in &report.incarnations {
        for (digest, seq) in &log.configurations {
            if !seen.insert(*digest) {
                continue;
            }
            let named_by = format!("record {seq} of {} names it", log.dir);
            let (code, verdict, message) = match check_archived(storage, &ledger, digest) {
                Ok((ArchiveState::Present, _)) => continue,
                Ok((ArchiveState::Missing, _)) => (
                    CONFIGURATION_MISSING,
                    Verdict::Incomplete,
                    format!("this configuration is missing, but {named_by}"),
                ),
                Ok((ArchiveState::Changed(why), _)) => (
                    CONFIGURATION_CHANGED,
                    Verdict::Invalid,
                    format!("{why}, and {named_by}"),
                ),
                Err(error) => {
                    let verdict = match error.is_damaged() {
                        true => Verdict::Invalid,
                        false => Verdict::Incomplete,
                    };
                    (
                        "unreadable",
                        verdict,
                        format!("it cannot be read ({error}), but {named_by}"),
                    )
                }
            };
            findings.push(Finding {
                file: archive_path(&ledger, digest).display().to_string(),
                offset: 0,
                verdict,
                code: Some(code),
                message,
            });
        }
    }
    report.add_findings(findings);
}
