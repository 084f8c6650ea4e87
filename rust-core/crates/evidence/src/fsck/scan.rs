//! One incarnation under the eye of `fsck`.

use super::erasure_check::ErasureCheck;
use super::hold_check::BACKDATED;
use super::payload_check::PayloadCheck;
use super::salt_check::{SaltCheck, SaltFate};
use super::scanned::{Analysed, Head, Scanned, believe, empty_report, finding, of_refusal};
use super::scope::Keys;
use super::tree_check::TreeCheck;
use super::{keys, removed};
use crate::checkpoint_file::{self, CHECKPOINT};
use crate::configurations;
use crate::key_destructions::{Destroyed, IN_USE};
use crate::log_reader::{Flaw, LogItem, LogReader};
use crate::removal::{self, Removal};
use crate::report::{CheckpointState, Finding, IncarnationReport, TreeState, Verdict};
use crate::rules::Rules;
use crate::salts::{SALT, SALTS};
use crate::segment_reader::Stored;
use crate::tree_file::{NODE, TREE};
use crate::{EvidenceError, ReadStorage};
use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Checkpoint, Mmr, VerifyingKey, leaf_hash, node_count};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// A salt needs a shred key that is neither among those that were given nor destroyed as was signed.
const KEY_MISSING: &str = "shred_key_missing";

/// Checks one incarnation against itself, its checkpoint and the heads that others stated of it.
pub(super) fn scan(
    storage: &dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
    (by, destroyed, mirror): (Keys<'_>, &Destroyed, bool),
    mut heads: Vec<Head>,
) -> Result<Scanned, EvidenceError> {
    let refused = match removal::read(storage, dir, by.ledger, by.keeping)? {
        Removal::Done(removed) => return removed::check(storage, dir, (incarnation, *removed), by, &heads),
        Removal::Refused(refusal) => Some(refusal),
        Removal::None => None,
    };
    let key = by.ledger;
    let mut scan = Scan::new(storage, dir, incarnation, (by, destroyed, mirror))?;
    if let Some(keeping) = by.keeping.filter(|_| !mirror) {
        scan.erasures = Some(ErasureCheck::open(storage, dir, keeping)?);
    }
    // Before the records: those of a log that is being written only grow.
    let signed = scan.read_checkpoint(storage, dir, key)?;
    if let Some(signed) = &signed {
        heads.push(Head {
            size: signed.size,
            root: signed.root,
            file: dir.join(CHECKPOINT),
            who: "it".to_owned(),
            own: true,
        });
    }
    heads.sort_by_key(|head| head.size);
    let covered = signed.as_ref().map_or(0, |signed| signed.size);
    let mut log = LogReader::open(storage, dir, incarnation)?;
    log.expect(covered);
    let mut compared = 0;
    loop {
        match log.next()? {
            LogItem::End => break,
            LogItem::Flaw(flaw) => scan.flaws.push((flaw, 0)),
            LogItem::Record(stored) => {
                scan.take(&log, &stored, covered)?;
                while let Some(head) = heads.get(compared).filter(|head| head.size <= scan.mmr.size()) {
                    scan.compare(head);
                    compared += 1;
                }
            }
        }
    }
    scan.report.segments = log.segments();
    if scan.rules.served().is_some() && scan.report.checkpoint == CheckpointState::Missing {
        scan.look_for_first_checkpoint(storage, key)?;
    }
    let erasures = scan.erasures.take();
    let mut scanned = scan.finish(signed.as_ref(), &heads, compared, log.origin())?;
    if let Some(erasures) = erasures {
        let origin = scanned.report.origin.clone().unwrap_or_default();
        for (code, verdict, message) in erasures.judge(&origin, scanned.report.records) {
            scanned.find_named(code, verdict, message);
        }
    }
    if let Some(refusal) = refused {
        removed::refuse(&mut scanned, &refusal);
    }
    Ok(scanned)
}

struct Scan<'k> {
    report: IncarnationReport,
    dir: PathBuf,
    incarnation: Ulid,
    rules: Rules,
    mmr: Mmr,
    /// Neither is in a mirror.
    tree: TreeCheck,
    salts: Option<SaltCheck<'k>>,
    mirror: bool,
    /// A mirror holds no payloads.
    payloads: Option<PayloadCheck<'k>>,
    /// Where a retention key is known.
    erasures: Option<ErasureCheck>,
    signer: Option<VerifyingKey>,
    /// Flaws, each with the largest durable count that a later record states.
    flaws: Vec<(Flaw, u64)>,
    analyses: Vec<Analysed>,
}

impl<'k> Scan<'k> {
    fn new(
        storage: &'k dyn ReadStorage,
        dir: &Path,
        incarnation: Ulid,
        (by, destroyed, mirror): (Keys<'k>, &'k Destroyed, bool),
    ) -> Result<Self, EvidenceError> {
        Ok(Self {
            report: empty_report(dir, incarnation),
            dir: dir.to_owned(),
            incarnation,
            rules: Rules::new(incarnation),
            mmr: Mmr::new(),
            tree: match mirror {
                true => TreeCheck::none(),
                false => TreeCheck::open(storage, dir)?,
            },
            salts: match mirror {
                true => None,
                false => Some(SaltCheck::open(storage, dir, by.shred, destroyed)?),
            },
            mirror,
            payloads: (!mirror).then(|| PayloadCheck::new(storage, dir)),
            erasures: None,
            signer: None,
            flaws: Vec::new(),
            analyses: Vec::new(),
        })
    }

    fn find(&mut self, file: &Path, offset: u64, verdict: Verdict, message: String) {
        self.report.findings.push(finding(file, offset, verdict, message));
    }

    fn read_checkpoint(
        &mut self,
        storage: &dyn ReadStorage,
        dir: &Path,
        key: Option<&VerifyingKey>,
    ) -> Result<Option<Checkpoint>, EvidenceError> {
        let path = dir.join(CHECKPOINT);
        let read = match checkpoint_file::read(storage, dir) {
            Ok(None) => return Ok(None),
            Ok(Some(note)) => believe(&note, key),
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
                    self.find(&path, 0, Verdict::Incomplete, message);
                }
                Ok(Some(checkpoint))
            }
            Err(refusal) => {
                self.report.checkpoint = CheckpointState::Bad;
                self.report.findings.push(of_refusal(&path, refusal));
                Ok(None)
            }
        }
    }

    /// A worker signs what it writes as it starts before it serves; a log that was begun since the checkpoint was looked for
    /// has one by now.
    fn look_for_first_checkpoint(
        &mut self,
        storage: &dyn ReadStorage,
        key: Option<&VerifyingKey>,
    ) -> Result<(), EvidenceError> {
        let dir = self.dir.clone();
        let found = self.read_checkpoint(storage, &dir, key)?;
        // It may cover more than was read.
        self.report.checkpoint_size = self.report.checkpoint_size.min(self.mmr.size());
        if found.is_none() && self.report.checkpoint == CheckpointState::Missing {
            let message = "it served requests without a checkpoint, or its checkpoint was removed".to_owned();
            self.find(&dir.join(CHECKPOINT), 0, Verdict::Invalid, message);
        }
        Ok(())
    }

    fn take(&mut self, log: &LogReader<'_>, stored: &Stored, covered: u64) -> Result<(), EvidenceError> {
        for (flaw, durable) in &mut self.flaws {
            // A record that takes the expected place shows that nothing was lost before it.
            if !(flaw.residue && stored.seq == flaw.seq) {
                *durable = (*durable).max(stored.durable);
            }
        }
        let payload = log.payload(stored);
        let refused = if stored.seq == self.mmr.size() {
            self.push(stored, payload, covered)?;
            let taken = self.rules.take(stored.seq, payload);
            if let Some(request) = taken.as_ref().ok().and_then(Record::committed_request) {
                let salt = match &mut self.salts {
                    Some(salts) => salts.request(stored.seq, &request)?,
                    None => SaltFate::There,
                };
                if let Some(erasures) = &mut self.erasures {
                    erasures.request(stored.seq, request.tenant, request.ts, salt);
                }
            }
            if let (Ok(Record::Completion(completion)), Some(payloads)) = (&taken, &mut self.payloads) {
                payloads.completion(completion, stored.seq < covered)?;
            }
            if let Ok(Record::Analysis(analysis)) = &taken {
                self.analyses.push(Analysed::of(analysis));
            }
            if let Some(digest) = taken.as_ref().ok().and_then(configurations::named) {
                self.report.configurations.entry(digest).or_insert(stored.seq);
            }
            self.report.unknown_kinds += u64::from(matches!(taken, Ok(Record::Unknown(_))));
            taken.err()
        } else {
            self.rules.lose();
            let parsed = record::parse(payload);
            parsed
                .err()
                .map(|error| format!("record {}: {error}", stored.seq))
        };
        if let Some(message) = refused {
            self.find(log.path(), stored.offset, Verdict::Invalid, message);
        }
        Ok(())
    }

    /// Adds a record to the range and compares the nodes that it makes with the tree file.
    fn push(&mut self, stored: &Stored, payload: &[u8], covered: u64) -> Result<(), EvidenceError> {
        let wrong_before = self.tree.wrong;
        if let Some(position) = self.tree.push(&mut self.mmr, leaf_hash(payload))? {
            let path = self.dir.join(TREE);
            let offset = position * NODE as u64;
            let what = format!("node {position} does not match the records");
            // Nodes are synced before a checkpoint over them is signed; later ones can be lost legally.
            if stored.seq < covered {
                self.find(&path, offset, Verdict::Invalid, what);
            } else if !wrong_before {
                let message = format!("{what}; no checkpoint covers it, so it can be rebuilt");
                self.find(&path, offset, Verdict::Incomplete, message);
            }
        }
        self.report.records += 1;
        self.report.bytes += stored.len as u64;
        Ok(())
    }

    /// Compares the root with a head stated at this size.
    fn compare(&mut self, head: &Head) {
        if head.size != self.mmr.size() || head.root == self.mmr.root() {
            return;
        }
        if head.own {
            self.report.checkpoint = CheckpointState::Bad;
        }
        let message = format!(
            "the first {} records do not hash to the root that {} states",
            head.size, head.who
        );
        self.find(&head.file, 0, Verdict::Diverged, message);
    }

    fn finish(
        mut self,
        signed: Option<&Checkpoint>,
        heads: &[Head],
        compared: usize,
        origin: Option<[u8; 32]>,
    ) -> Result<Scanned, EvidenceError> {
        let size = self.mmr.size();
        self.report.sealed = self.rules.sealed();
        self.report.origin = self.rules.opened().map(|opened| opened.origin.clone());
        self.report.key = self.rules.opened().and_then(|opened| opened.key.clone());
        let whole = self.judge_flaws(heads.last().map_or(0, |head| head.size));
        for head in &heads[compared..] {
            if head.own {
                self.report.checkpoint = CheckpointState::Bad;
            }
            let message = format!(
                "{} states {} records, but only {size} are there",
                head.who, head.size
            );
            self.find(&head.file, 0, Verdict::Diverged, message);
        }
        self.compare_origins(signed, origin);
        if size > 0 && whole {
            self.report.root = Some(STANDARD.encode(self.mmr.root()));
        }
        self.judge_tree();
        self.judge_salts(signed.map_or(0, |signed| signed.size));
        let payloads = self.payloads.take().map(PayloadCheck::judge);
        for (file, code, verdict, message) in payloads.into_iter().flatten() {
            let found = finding(&file, 0, verdict, message);
            self.report.findings.push(Finding {
                code: Some(code),
                ..found
            });
        }
        let mut scanned = Scanned {
            report: self.report,
            dir: self.dir,
            incarnation: self.incarnation,
            rules: self.rules,
            whole,
            keeps: BTreeMap::new(),
            signer: self.signer,
            analyses: self.analyses,
        };
        keys::compare(&mut scanned);
        Ok(scanned)
    }

    /// Says of each flaw whether it is a torn tail or damage; whether all records up to the end are there. `known` is the
    /// largest size that anybody stated.
    fn judge_flaws(&mut self, known: u64) -> bool {
        let size = self.mmr.size();
        let mut whole = true;
        for (flaw, durable) in std::mem::take(&mut self.flaws) {
            let continued = flaw.residue && size > flaw.seq;
            let proven = flaw.seq < known.max(durable);
            let torn = !proven && !continued && !self.report.sealed;
            whole &= !proven || continued;
            self.report.torn |= torn;
            let (verdict, what) = match torn {
                true => (Verdict::Incomplete, "torn tail, cut off"),
                false => (Verdict::Invalid, "damage"),
            };
            let message = format!("{what} at record {}: {}", flaw.seq, flaw.reason);
            self.find(&flaw.path, flaw.offset, verdict, message);
        }
        whole
    }

    fn judge_tree(&mut self) {
        let size = self.mmr.size();
        let path = self.dir.join(TREE);
        self.report.tree = self.tree.state(node_count(size));
        if size > 0 && self.report.tree == TreeState::Missing && !self.mirror {
            let message = "the tree file is missing; it can be rebuilt from the records".to_owned();
            self.find(&path, 0, Verdict::Incomplete, message);
        }
        if self.report.tree == TreeState::Long {
            // Without a seal, a loss of power may have taken records that were hashed and not yet synced.
            let verdict = match self.report.sealed {
                true => Verdict::Diverged,
                false => Verdict::Incomplete,
            };
            let message =
                format!("it has nodes for more than the {size} records that are there: the log was longer");
            self.find(&path, node_count(size) * NODE as u64, verdict, message);
        }
    }

    fn judge_salts(&mut self, covered: u64) {
        let Some(salts) = &self.salts else { return };
        let (erased, missing, changed) = (salts.erased, salts.missing, salts.changed);
        let (first_missing, first_changed) = (salts.first_missing, salts.first_changed);
        let (unchecked, first_unchecked) = (salts.unchecked, salts.first_unchecked);
        let first_after = salts.first_after;
        self.report.erased_salts = erased;
        self.report.unchecked_salts = unchecked;
        if let Some(first) = first_after {
            let message = format!(
                "record {first} was written under a shred key more than {} minutes after the signed time of the key's destruction: the statement is backdated, or a worker kept the key",
                IN_USE / 60_000_000
            );
            let found = finding(&self.dir, 0, Verdict::Invalid, message);
            self.report.findings.push(Finding {
                code: Some(BACKDATED),
                ..found
            });
        }
        if let Some(first) = first_unchecked {
            let message = format!(
                "the shred keys for the salts of {unchecked} requests (first: record {first}) were not given, and no signed statement says that they were destroyed"
            );
            let found = finding(&self.dir.join(SALTS), 0, Verdict::Incomplete, message);
            self.report.findings.push(Finding {
                code: Some(KEY_MISSING),
                ..found
            });
        }
        if let Some(first) = first_missing {
            // Salts are synced with the records that they are for.
            let verdict = match first < covered {
                true => Verdict::Invalid,
                false => Verdict::Incomplete,
            };
            let message = format!(
                "the salts of {missing} requests (first: record {first}) are missing: their commitments cannot be opened"
            );
            self.find(&self.dir.join(SALTS), 0, verdict, message);
        }
        if let Some(first) = first_changed {
            let message = format!(
                "the salts of {changed} requests (first: record {first}) are not the ones that their records name: their commitments cannot be opened"
            );
            let offset = first.saturating_mul(SALT as u64);
            self.find(&self.dir.join(SALTS), offset, Verdict::Invalid, message);
        }
    }

    /// The segments, the open record and the checkpoint must speak of one origin.
    fn compare_origins(&mut self, signed: Option<&Checkpoint>, origin: Option<[u8; 32]>) {
        let dir = self.dir.clone();
        let digest = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
        if let (Some(text), Some(origin)) = (self.report.origin.clone(), origin)
            && digest(&text) != origin
        {
            let message = format!("the segments belong to an origin other than {text}");
            self.find(&dir, 0, Verdict::Invalid, message);
        }
        if let (Some(signed), Some(origin)) = (signed, origin)
            && digest(&signed.origin) != origin
        {
            self.report.checkpoint = CheckpointState::Bad;
            let message = format!("it is a checkpoint of another log, {}", signed.origin);
            self.find(&dir.join(CHECKPOINT), 0, Verdict::Invalid, message);
        }
    }
}
