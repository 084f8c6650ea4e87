//! The result of checking one log, and the facts about the log that other checks need.

use crate::Refusal;
use crate::layout::parse_incarnation;
use crate::report::{CheckpointState, Finding, IncarnationReport, TreeState, Verdict};
use crate::rules::LogTracker;
use proofgate_ledger::record::{self, Analysis, Record};
use proofgate_ledger::{Checkpoint, Hash, VerifyingKey};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// A size and root that were stated for a log.
#[derive(Clone, Debug)]
pub(super) struct StatedTreeHead {
    pub(super) size: u64,
    pub(super) root: Hash,
    /// The file that states the tree head.
    pub(super) file: PathBuf,
    /// Description of the source, for messages.
    pub(super) source: String,
    /// Whether the source is the log's own checkpoint.
    pub(super) is_own: bool,
}

/// The result of checking one incarnation, and the facts about it that other checks need.
pub(super) struct ScannedLog {
    pub(super) report: IncarnationReport,
    pub(super) dir: PathBuf,
    pub(super) incarnation: Ulid,
    pub(super) tracker: LogTracker,
    /// Whether every record up to the end of the log is present.
    pub(super) complete: bool,
    /// Number of records of each earlier log that notes in this log's directory cover.
    pub(super) note_coverage: BTreeMap<Ulid, u64>,
    /// The ledger key that signed the checkpoint; `None` if the signature was not verified.
    pub(super) signer: Option<VerifyingKey>,
    /// References in the log's analyses.
    pub(super) analyses: Vec<AnalysisRef>,
}

impl ScannedLog {
    pub(super) fn add_finding(&mut self, verdict: Verdict, message: String) {
        let dir = self.dir.clone();
        self.add_finding_in(&dir, verdict, message);
    }

    pub(super) fn add_finding_in(&mut self, file: &Path, verdict: Verdict, message: String) {
        self.report.findings.push(finding(file, 0, verdict, message));
    }

    /// Adds a finding that a file is refused.
    pub(super) fn add_refusal(&mut self, file: &Path, refusal: Refusal) {
        self.report.findings.push(refusal_finding(file, refusal));
    }

    /// Adds a finding with a machine code.
    pub(super) fn add_finding_with_code(&mut self, code: &'static str, verdict: Verdict, message: String) {
        let found = finding(&self.dir, 0, verdict, message);
        self.report.findings.push(Finding {
            code: Some(code),
            ..found
        });
    }

    /// Returns whether the log never served: it holds only the records that a start writes, and has
    /// no checkpoint. No other log depends on it.
    pub(super) fn never_served(&self) -> bool {
        self.tracker.first_served().is_none() && self.report.checkpoint == CheckpointState::Missing
    }
}

/// Returns the finding for a refused file. The code of the finding shows whether the key is the
/// reason.
pub(super) fn refusal_finding(file: &Path, refusal: Refusal) -> Finding {
    let code = refusal.code();
    Finding {
        code,
        ..finding(file, 0, Verdict::Invalid, refusal.reason)
    }
}

pub(super) fn finding(file: &Path, offset: u64, verdict: Verdict, message: String) -> Finding {
    Finding {
        file: file.display().to_string(),
        offset,
        verdict,
        code: None,
        message,
    }
}

/// Returns an empty report for an incarnation that has not been read yet.
pub(super) fn empty_report(dir: &Path, incarnation: Ulid) -> IncarnationReport {
    IncarnationReport {
        dir: dir.display().to_string(),
        incarnation: incarnation.to_string(),
        origin: None,
        segments: 0,
        records: 0,
        bytes: 0,
        root: None,
        sealed: false,
        key: None,
        checkpoint: CheckpointState::Missing,
        checkpoint_size: 0,
        tree: TreeState::Missing,
        torn: false,
        unknown_kinds: 0,
        erased_salts: 0,
        unchecked_salts: 0,
        removed: None,
        configurations: BTreeMap::new(),
        findings: Vec::new(),
    }
}

/// The reference in an analysis.
pub(super) struct AnalysisRef {
    pub(super) seq: u64,
    /// The log of the admission; `None` when it is the same log.
    pub(super) incarnation: Option<Ulid>,
    pub(super) admission: u64,
    pub(super) exchange: String,
    pub(super) tenant: String,
}

impl AnalysisRef {
    pub(super) fn from_analysis(analysis: &Analysis<'_>) -> Self {
        Self {
            seq: analysis.seq,
            incarnation: analysis.incarnation.as_deref().and_then(parse_incarnation),
            admission: analysis.admission,
            exchange: analysis.exchange.as_ref().to_owned(),
            tenant: analysis.tenant.as_ref().to_owned(),
        }
    }

    /// Returns whether `payload` is the admission of the analysed exchange.
    pub(super) fn is_admitted_by(&self, payload: &[u8]) -> bool {
        matches!(record::parse(payload), Ok(Record::Admission(admission))
            if admission.id == self.exchange && admission.tenant == self.tenant)
    }
}

/// Parses a note. If a key is given, also verifies the signature and returns the key of the lineage
/// that signed the note.
pub(super) fn verify_note(
    note: &str,
    key: Option<&VerifyingKey>,
) -> Result<(Checkpoint, Option<VerifyingKey>), Refusal> {
    match key {
        Some(key) => Checkpoint::verify_signer(note, key).map(|(signed, by)| (signed, Some(by))),
        None => Checkpoint::parse_unverified(note).map(|stated| (stated, None)),
    }
    .map_err(Refusal::from)
}
