//! Checks one incarnation.

use super::erasure_check::ErasureCheck;
use super::hold_check::STATEMENT_BACKDATED;
use super::payload_check::PayloadCheck;
use super::salt_check::{SaltCheck, SaltState};
use super::scanned_log::{
    AnalysisRef, ScannedLog, StatedTreeHead, empty_report, finding, refusal_finding, verify_note,
};
use super::scope::FsckKeys;
use super::tree_check::TreeCheck;
use super::{keys, removal_check};
use crate::checkpoint_file::{self, CHECKPOINT_FILE};
use crate::configurations;
use crate::key_destructions::{DestroyedKeys, KEY_USE_GRACE};
use crate::log_reader::{Flaw, LogItem, LogReader};
use crate::removal::{self, RemovalState};
use crate::report::{CheckpointState, Finding, IncarnationReport, TreeState, Verdict};
use crate::rules::LogTracker;
use crate::salts::{SALT_LEN, SALTS_FILE};
use crate::segment_reader::StoredRecord;
use crate::tree_file::{NODE_LEN, TREE_FILE};
use crate::{EvidenceError, ReadStorage};
use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Checkpoint, Mmr, VerifyingKey, leaf_hash, node_count};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// Finding code: a salt needs a shred key that was neither provided nor signed as destroyed.
const SHRED_KEY_MISSING: &str = "shred_key_missing";

/// Checks that one incarnation is consistent in itself, with its checkpoint, and with the tree
/// heads that other logs stated for it.
pub(super) fn scan(
    storage: &dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
    (by, destroyed, mirror): (FsckKeys<'_>, &DestroyedKeys, bool),
    mut heads: Vec<StatedTreeHead>,
) -> Result<ScannedLog, EvidenceError> {
    let refused = match removal::read(storage, dir, by.ledger, by.retention)? {
        RemovalState::Done(removed) => {
            return removal_check::check(storage, dir, (incarnation, *removed), by, &heads);
        }
        RemovalState::Refused(refusal) => Some(refusal),
        RemovalState::None => None,
    };
    let key = by.ledger;
    let mut scan = Scan::new(storage, dir, incarnation, (by, destroyed, mirror))?;
    if let Some(keeping) = by.retention.filter(|_| !mirror) {
        scan.erasures = Some(ErasureCheck::open(storage, dir, keeping)?);
    }
    // Read the checkpoint before the records, because a log that is being written only grows.
    let signed = scan.read_checkpoint(storage, dir, key)?;
    if let Some(signed) = &signed {
        heads.push(StatedTreeHead {
            size: signed.size,
            root: signed.root,
            file: dir.join(CHECKPOINT_FILE),
            source: "it".to_owned(),
            is_own: true,
        });
    }
    heads.sort_by_key(|head| head.size);
    let covered = signed.as_ref().map_or(0, |signed| signed.size);
    let mut log = LogReader::open(storage, dir, incarnation)?;
    log.expect_records(covered);
    let mut compared = 0;
    loop {
        match log.next()? {
            LogItem::End => break,
            LogItem::Flaw(flaw) => scan.flaws.push((flaw, 0)),
            LogItem::Record(stored) => {
                scan.process_record(&log, &stored, covered)?;
                while let Some(head) = heads.get(compared).filter(|head| head.size <= scan.mmr.size()) {
                    scan.compare_root(head);
                    compared += 1;
                }
            }
        }
    }
    scan.report.segments = log.segment_count();
    if scan.tracker.first_served().is_some() && scan.report.checkpoint == CheckpointState::Missing {
        scan.check_first_checkpoint(storage, key)?;
    }
    let erasures = scan.erasures.take();
    let mut scanned = scan.finish(signed.as_ref(), &heads, compared, log.origin_digest())?;
    if let Some(erasures) = erasures {
        let origin = scanned.report.origin.clone().unwrap_or_default();
        for (code, verdict, message) in erasures.findings(&origin, scanned.report.records) {
            scanned.add_finding_with_code(code, verdict, message);
        }
    }
    if let Some(refusal) = refused {
        removal_check::report_refused_tombstone(&mut scanned, &refusal);
    }
    Ok(scanned)
}

struct Scan<'k> {
    report: IncarnationReport,
    dir: PathBuf,
    incarnation: Ulid,
    tracker: LogTracker,
    mmr: Mmr,
    /// The check of the tree. A mirror has neither a tree nor salts.
    tree: TreeCheck,
    salts: Option<SaltCheck<'k>>,
    is_mirror: bool,
    /// `None` for a mirror, which holds no payloads.
    payloads: Option<PayloadCheck<'k>>,
    /// `None` without a retention key.
    erasures: Option<ErasureCheck>,
    signer: Option<VerifyingKey>,
    /// Flaws, each with the largest durable count that a later record states.
    flaws: Vec<(Flaw, u64)>,
    analyses: Vec<AnalysisRef>,
}

impl<'k> Scan<'k> {
    fn new(
        storage: &'k dyn ReadStorage,
        dir: &Path,
        incarnation: Ulid,
        (by, destroyed, mirror): (FsckKeys<'k>, &'k DestroyedKeys, bool),
    ) -> Result<Self, EvidenceError> {
        Ok(Self {
            report: empty_report(dir, incarnation),
            dir: dir.to_owned(),
            incarnation,
            tracker: LogTracker::new(incarnation),
            mmr: Mmr::new(),
            tree: match mirror {
                true => TreeCheck::without_file(),
                false => TreeCheck::open(storage, dir)?,
            },
            salts: match mirror {
                true => None,
                false => Some(SaltCheck::open(storage, dir, by.shred, destroyed)?),
            },
            is_mirror: mirror,
            payloads: (!mirror).then(|| PayloadCheck::new(storage, dir)),
            erasures: None,
            signer: None,
            flaws: Vec::new(),
            analyses: Vec::new(),
        })
    }

    fn add_finding(&mut self, file: &Path, offset: u64, verdict: Verdict, message: String) {
        self.report.findings.push(finding(file, offset, verdict, message));
    }

    fn read_checkpoint(
        &mut self,
        storage: &dyn ReadStorage,
        dir: &Path,
        key: Option<&VerifyingKey>,
    ) -> Result<Option<Checkpoint>, EvidenceError> {
        let path = dir.join(CHECKPOINT_FILE);
        let read = match checkpoint_file::read(storage, dir) {
            Ok(None) => return Ok(None),
            Ok(Some(note)) => verify_note(&note, key),
            Err(EvidenceError::Corruption { reason, .. }) => Err(reason.into()),
            Err(error) => return Err(error),
        };
        match read {
            Ok((checkpoint, signer)) => {
                self.signer = signer;
                self.report.checkpoint = match key {
                    Some(_) => CheckpointState::Verified,
                    None => CheckpointState::Unverified,
                };
                self.report.checkpoint_size = checkpoint.size;
                if key.is_none() {
                    let message = "no key was given: the signature is not checked".to_owned();
                    self.add_finding(&path, 0, Verdict::Incomplete, message);
                }
                Ok(Some(checkpoint))
            }
            Err(refusal) => {
                self.report.checkpoint = CheckpointState::Bad;
                self.report.findings.push(refusal_finding(&path, refusal));
                Ok(None)
            }
        }
    }

    /// Checks that a log that served requests has a checkpoint. A worker signs its opening records
    /// before it serves. A log that was started after the checkpoint was first read therefore has a
    /// checkpoint by now.
    fn check_first_checkpoint(
        &mut self,
        storage: &dyn ReadStorage,
        key: Option<&VerifyingKey>,
    ) -> Result<(), EvidenceError> {
        let dir = self.dir.clone();
        let found = self.read_checkpoint(storage, &dir, key)?;
        // The checkpoint may cover more records than were read.
        self.report.checkpoint_size = self.report.checkpoint_size.min(self.mmr.size());
        if found.is_none() && self.report.checkpoint == CheckpointState::Missing {
            let message =
                "the log served requests without a checkpoint, or its checkpoint was removed".to_owned();
            self.add_finding(&dir.join(CHECKPOINT_FILE), 0, Verdict::Invalid, message);
        }
        Ok(())
    }

    fn process_record(
        &mut self,
        log: &LogReader<'_>,
        stored: &StoredRecord,
        covered: u64,
    ) -> Result<(), EvidenceError> {
        for (flaw, durable) in &mut self.flaws {
            // A record at the expected position shows that no record before it was lost.
            if !(flaw.is_trailing_data && stored.seq == flaw.seq) {
                *durable = (*durable).max(stored.durable);
            }
        }
        let payload = log.payload(stored);
        let refused = if stored.seq == self.mmr.size() {
            self.push(stored, payload, covered)?;
            let taken = self.tracker.process(stored.seq, payload);
            if let Some(request) = taken.as_ref().ok().and_then(Record::committed_request) {
                let salt = match &mut self.salts {
                    Some(salts) => salts.check_request(stored.seq, &request)?,
                    None => SaltState::Present,
                };
                if let Some(erasures) = &mut self.erasures {
                    erasures.add_request(stored.seq, request.tenant, request.ts, salt);
                }
            }
            if let (Ok(Record::Completion(completion)), Some(payloads)) = (&taken, &mut self.payloads) {
                payloads.check_completion(completion, stored.seq < covered)?;
            }
            if let Ok(Record::Analysis(analysis)) = &taken {
                self.analyses.push(AnalysisRef::from_analysis(analysis));
            }
            if let Some(digest) = taken.as_ref().ok().and_then(configurations::configuration_digest) {
                self.report.configurations.entry(digest).or_insert(stored.seq);
            }
            self.report.unknown_kinds += u64::from(matches!(taken, Ok(Record::Unknown(_))));
            taken.err()
        } else {
            self.tracker.mark_missing();
            let parsed = record::parse(payload);
            parsed
                .err()
                .map(|error| format!("record {}: {error}", stored.seq))
        };
        if let Some(message) = refused {
            self.add_finding(log.path(), stored.offset, Verdict::Invalid, message);
        }
        Ok(())
    }

    /// Adds a record to the range and compares the new nodes with the tree file.
    fn push(&mut self, stored: &StoredRecord, payload: &[u8], covered: u64) -> Result<(), EvidenceError> {
        let wrong_before = self.tree.mismatch;
        if let Some(position) = self.tree.push(&mut self.mmr, leaf_hash(payload))? {
            let path = self.dir.join(TREE_FILE);
            let offset = position * NODE_LEN as u64;
            let what = format!("node {position} does not match the records");
            // Nodes are synced before a checkpoint that covers them is signed. A crash may lose
            // later nodes.
            if stored.seq < covered {
                self.add_finding(&path, offset, Verdict::Invalid, what);
            } else if !wrong_before {
                let message = format!("{what}; no checkpoint covers this node, so it can be rebuilt");
                self.add_finding(&path, offset, Verdict::Incomplete, message);
            }
        }
        self.report.records += 1;
        self.report.bytes += stored.len as u64;
        Ok(())
    }

    /// Compares the root with a tree head that was stated for this size.
    fn compare_root(&mut self, head: &StatedTreeHead) {
        if head.size != self.mmr.size() || head.root == self.mmr.root() {
            return;
        }
        if head.is_own {
            self.report.checkpoint = CheckpointState::Bad;
        }
        let message = format!(
            "the first {} records do not hash to the root that {} states",
            head.size, head.source
        );
        self.add_finding(&head.file, 0, Verdict::Diverged, message);
    }

    fn finish(
        mut self,
        signed: Option<&Checkpoint>,
        heads: &[StatedTreeHead],
        compared: usize,
        origin: Option<[u8; 32]>,
    ) -> Result<ScannedLog, EvidenceError> {
        let size = self.mmr.size();
        self.report.sealed = self.tracker.is_sealed();
        self.report.origin = self.tracker.opening().map(|opened| opened.origin.clone());
        self.report.key = self.tracker.opening().and_then(|opened| opened.key.clone());
        let whole = self.classify_flaws(heads.last().map_or(0, |head| head.size));
        for head in &heads[compared..] {
            if head.is_own {
                self.report.checkpoint = CheckpointState::Bad;
            }
            let message = format!(
                "{} states {} records, but only {size} are present",
                head.source, head.size
            );
            self.add_finding(&head.file, 0, Verdict::Diverged, message);
        }
        self.compare_origins(signed, origin);
        if size > 0 && whole {
            self.report.root = Some(STANDARD.encode(self.mmr.root()));
        }
        self.check_tree();
        self.check_salts(signed.map_or(0, |signed| signed.size));
        let payloads = self.payloads.take().map(PayloadCheck::into_findings);
        for (file, code, verdict, message) in payloads.into_iter().flatten() {
            let found = finding(&file, 0, verdict, message);
            self.report.findings.push(Finding {
                code: Some(code),
                ..found
            });
        }
        let mut scanned = ScannedLog {
            report: self.report,
            dir: self.dir,
            incarnation: self.incarnation,
            tracker: self.tracker,
            complete: whole,
            note_coverage: BTreeMap::new(),
            signer: self.signer,
            analyses: self.analyses,
        };
        keys::check_signer(&mut scanned);
        Ok(scanned)
    }

    /// Classifies each flaw as a torn tail or damage. Returns whether all records up to the end are
    /// present. `known` is the largest size that was stated.
    fn classify_flaws(&mut self, known: u64) -> bool {
        let size = self.mmr.size();
        let mut whole = true;
        for (flaw, durable) in std::mem::take(&mut self.flaws) {
            let continued = flaw.is_trailing_data && size > flaw.seq;
            let proven = flaw.seq < known.max(durable);
            let torn = !proven && !continued && !self.report.sealed;
            whole &= !proven || continued;
            self.report.torn |= torn;
            let (verdict, what) = match torn {
                true => (Verdict::Incomplete, "the log ends in a torn tail"),
                false => (Verdict::Invalid, "damage"),
            };
            let message = format!("{what} at record {}: {}", flaw.seq, flaw.reason);
            self.add_finding(&flaw.path, flaw.offset, verdict, message);
        }
        whole
    }

    fn check_tree(&mut self) {
        let size = self.mmr.size();
        let path = self.dir.join(TREE_FILE);
        self.report.tree = self.tree.state(node_count(size));
        if size > 0 && self.report.tree == TreeState::Missing && !self.is_mirror {
            let message = "the tree file is missing; it can be rebuilt from the records".to_owned();
            self.add_finding(&path, 0, Verdict::Incomplete, message);
        }
        if self.report.tree == TreeState::Long {
            // Without a seal, a power failure may have lost records that were hashed but not yet
            // synced.
            let verdict = match self.report.sealed {
                true => Verdict::Diverged,
                false => Verdict::Incomplete,
            };
            let message =
                format!("it has nodes for more records than the {size} that are present: the log was longer");
            self.add_finding(&path, node_count(size) * NODE_LEN as u64, verdict, message);
        }
    }

    fn check_salts(&mut self, covered: u64) {
        let Some(salts) = &self.salts else { return };
        let (erased, missing, changed) = (salts.erased, salts.missing, salts.changed);
        let (first_missing, first_changed) = (salts.first_missing, salts.first_changed);
        let (unchecked, first_unchecked) = (salts.unchecked, salts.first_unchecked);
        let first_after = salts.first_after_destruction;
        self.report.erased_salts = erased;
        self.report.unchecked_salts = unchecked;
        if let Some(first) = first_after {
            let message = format!(
                "record {first} was written under a shred key more than {} minutes after the signed time of the key's destruction: the statement is backdated, or a worker kept the key",
                KEY_USE_GRACE / 60_000_000
            );
            let found = finding(&self.dir, 0, Verdict::Invalid, message);
            self.report.findings.push(Finding {
                code: Some(STATEMENT_BACKDATED),
                ..found
            });
        }
        if let Some(first) = first_unchecked {
            let message = format!(
                "the shred keys for the salts of {unchecked} requests (first: record {first}) were not given, and no signed statement says that they were destroyed"
            );
            let found = finding(&self.dir.join(SALTS_FILE), 0, Verdict::Incomplete, message);
            self.report.findings.push(Finding {
                code: Some(SHRED_KEY_MISSING),
                ..found
            });
        }
        if let Some(first) = first_missing {
            // Salts are synced with their records.
            let verdict = match first < covered {
                true => Verdict::Invalid,
                false => Verdict::Incomplete,
            };
            let message = format!(
                "the salts of {missing} requests (first: record {first}) are missing: the commitments of these requests cannot be opened"
            );
            self.add_finding(&self.dir.join(SALTS_FILE), 0, verdict, message);
        }
        if let Some(first) = first_changed {
            let message = format!(
                "the salts of {changed} requests (first: record {first}) do not match their records: the commitments of these requests cannot be opened"
            );
            let offset = first.saturating_mul(SALT_LEN as u64);
            self.add_finding(&self.dir.join(SALTS_FILE), offset, Verdict::Invalid, message);
        }
    }

    /// Checks that the segments, the open record and the checkpoint name one origin.
    fn compare_origins(&mut self, signed: Option<&Checkpoint>, origin: Option<[u8; 32]>) {
        let dir = self.dir.clone();
        let digest = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
        if let (Some(text), Some(origin)) = (self.report.origin.clone(), origin)
            && digest(&text) != origin
        {
            let message = format!("the segments belong to an origin other than {text}");
            self.add_finding(&dir, 0, Verdict::Invalid, message);
        }
        if let (Some(signed), Some(origin)) = (signed, origin)
            && digest(&signed.origin) != origin
        {
            self.report.checkpoint = CheckpointState::Bad;
            let message = format!("it is a checkpoint of another log, {}", signed.origin);
            self.add_finding(&dir.join(CHECKPOINT_FILE), 0, Verdict::Invalid, message);
        }
    }
}
