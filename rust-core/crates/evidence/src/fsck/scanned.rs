//! What was found of one log, and what the checks of others need to know of it.

use crate::Refusal;
use crate::layout::parse_incarnation;
use crate::report::{CheckpointState, Finding, IncarnationReport, TreeState, Verdict};
use crate::rules::LogTracker;
use proofgate_ledger::record::{self, Analysis, Record};
use proofgate_ledger::{Checkpoint, Hash, VerifyingKey};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// A size and root that somebody stated of a log.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) size: u64,
    pub(super) root: Hash,
    /// Where it is stated.
    pub(super) file: PathBuf,
    /// Who states it, as in "… says".
    pub(super) source: String,
    /// The log's own checkpoint.
    pub(super) own: bool,
}

/// What was found of one incarnation, and what others need to know of it.
pub(super) struct ScannedLog {
    pub(super) report: IncarnationReport,
    pub(super) dir: PathBuf,
    pub(super) incarnation: Ulid,
    pub(super) tracker: LogTracker,
    /// Whether every record up to its end is there.
    pub(super) complete: bool,
    /// Records of logs before it that the notes which it keeps cover.
    pub(super) note_coverage: BTreeMap<Ulid, u64>,
    /// The ledger's key that signed its checkpoint, if that was checked.
    pub(super) signer: Option<VerifyingKey>,
    /// What its analyses refer to.
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

    /// Finds that a file is refused.
    pub(super) fn add_refusal(&mut self, file: &Path, refusal: Refusal) {
        self.report.findings.push(refusal_finding(file, refusal));
    }

    /// Finds what has a name.
    pub(super) fn add_finding_with_code(&mut self, code: &'static str, verdict: Verdict, message: String) {
        let found = finding(&self.dir, 0, verdict, message);
        self.report.findings.push(Finding {
            code: Some(code),
            ..found
        });
    }

    /// Whether it holds nothing but what a start writes, and nothing was signed: it never served, and nothing rests on it.
    pub(super) fn never_served(&self) -> bool {
        self.tracker.served().is_none() && self.report.checkpoint == CheckpointState::Missing
    }
}

/// A file that is refused; by its name, whether the key is why.
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

/// What is to be said of an incarnation before it is read.
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

/// What an analysis refers to.
pub(super) struct AnalysisRef {
    pub(super) seq: u64,
    /// The log of the admission; none when it is the same.
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

    pub(super) fn matches(&self, payload: &[u8]) -> bool {
        matches!(record::parse(payload), Ok(Record::Admission(admission))
            if admission.id == self.exchange && admission.tenant == self.tenant)
    }
}

/// Reads a note, and checks its signature if there is a key to do it with; then also who of its line signed.
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
