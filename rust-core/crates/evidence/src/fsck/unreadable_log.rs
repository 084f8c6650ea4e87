//! Reports files that cannot be read, and checks all other files.

use super::scan::scan;
use super::scanned_log::{ScannedLog, StatedTreeHead, empty_report};
use super::scope::FsckKeys;
use crate::key_destructions::DestroyedKeys;
use crate::report::{Finding, IncarnationReport, Verdict};
use crate::segment::SegmentName;
use crate::{EvidenceError, ReadFile, ReadStorage};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ulid::Ulid;

/// Finding code: a file or directory cannot be read.
const UNREADABLE: &str = "unreadable";

/// Returns the finding for a failed read.
///
/// # Errors
/// `error`, when it is not a finding because the check itself failed.
pub(super) fn unreadable_finding(error: EvidenceError, besides: &str) -> Result<Finding, EvidenceError> {
    let (path, offset) = match &error {
        EvidenceError::Io { path, .. } => (path, 0),
        EvidenceError::Corruption { path, offset, .. } => (path, *offset),
        _ => return Err(error),
    };
    Ok(Finding {
        file: path.display().to_string(),
        offset,
        verdict: match error.is_damaged() {
            true => Verdict::Invalid,
            false => Verdict::Incomplete,
        },
        code: Some(UNREADABLE),
        message: format!("it cannot be read ({error}){besides}"),
    })
}

/// The result of checking the readable part of a log.
pub(super) enum LogScan {
    Readable(Box<ScannedLog>),
    /// A segment of the log, or its directory, cannot be read.
    Unreadable(Box<IncarnationReport>),
}

/// Checks a log like [`scan`]. An unreadable file of the log that holds no records is reported, and
/// then treated as missing.
pub(super) fn scan_readable(
    storage: &dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
    by: (FsckKeys<'_>, &DestroyedKeys, bool),
    heads: &[StatedTreeHead],
) -> Result<LogScan, EvidenceError> {
    let mut without = HidingStorage {
        storage,
        hidden: Vec::new(),
    };
    let mut findings = Vec::new();
    loop {
        let error = match scan(&without, dir, incarnation, by, heads.to_vec()) {
            Ok(mut scanned) => {
                scanned.report.findings.splice(0..0, findings);
                return Ok(LogScan::Readable(Box::new(scanned)));
            }
            Err(error) => error,
        };
        let beside = match &error {
            EvidenceError::Io { path, .. } => Some(path.clone()).filter(|path| without.can_hide(dir, path)),
            _ => None,
        };
        let Some(path) = beside else {
            findings.push(unreadable_finding(error, ": this log was not checked")?);
            return Ok(LogScan::Unreadable(Box::new(IncarnationReport {
                findings,
                ..empty_report(dir, incarnation)
            })));
        };
        findings.push(unreadable_finding(error, "")?);
        without.hidden.push(path);
    }
}

/// A storage that hides some files.
struct HidingStorage<'s> {
    storage: &'s dyn ReadStorage,
    hidden: Vec<PathBuf>,
}

impl HidingStorage<'_> {
    /// Returns whether a file of a log holds no records and is not hidden yet.
    fn can_hide(&self, dir: &Path, path: &Path) -> bool {
        let name = path.strip_prefix(dir).ok().and_then(Path::to_str);
        name.is_some_and(|name| !name.is_empty() && SegmentName::parse(name).is_none())
            && !self.is_hidden(path)
    }

    fn is_hidden(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| hidden == path)
    }
}

impl ReadStorage for HidingStorage<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        match self.is_hidden(path) {
            true => Err(io::ErrorKind::NotFound.into()),
            false => self.storage.open(path),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        match self.is_hidden(path) {
            true => Err(io::ErrorKind::NotFound.into()),
            false => self.storage.list(path),
        }
    }
}
