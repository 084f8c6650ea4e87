//! Reads the log of an earlier incarnation once, from its resume point or from its start.

use super::key::log_key;
use super::recovery_result::{PreviousLog, TornTail, UnfinishedExchange};
use super::shard::Shard;
use crate::authenticity::FrameTags;
use crate::resume::{self, ResumeKey, ResumePoint};
use crate::{Storage, WalError};
use proofgate_evidence::checkpoint_file::CHECKPOINT_FILE;
use proofgate_evidence::log_reader::{Flaw, LogItem, LogReader, ResumePosition};
use proofgate_evidence::rules::LogTracker;
use proofgate_evidence::{EvidenceError, ReadFile, ReadStorage, TreeFile, checkpoint_file};
use proofgate_ledger::record::{Admission, Record};
use proofgate_ledger::{Checkpoint, Mmr, SigningKey, leaf_hash, node_count};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use ulid::Ulid;

/// A storage whose reads return the data on the disk.
struct DurableStorage<'a>(&'a dyn Storage);

impl ReadStorage for DurableStorage<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.0.open_synced(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }
}

/// The state of a log after it was read.
pub(super) struct Log {
    pub(super) previous: PreviousLog,
    /// Exchanges open at the end of the log, by the incarnation and number of their admission.
    pub(super) open: BTreeMap<(Ulid, u64), UnfinishedExchange>,
    /// Whether `open` includes the open exchanges of earlier logs.
    pub(super) open_is_complete: bool,
    /// Exchanges of earlier logs that ended in this log.
    pub(super) ended_earlier_exchanges: Vec<(Ulid, u64)>,
    /// The log that this log continues.
    continues: Option<Ulid>,
    /// Whether the log records the end of its predecessor.
    pub(super) predecessor_ended: bool,
    pub(super) records_read: u64,
}

impl Log {
    /// Returns the predecessor if recovery needs its records too.
    pub(super) fn needed_predecessor(&self) -> Option<Ulid> {
        self.continues
            .filter(|_| !self.predecessor_ended || !self.open_is_complete)
    }
}

/// Reads one incarnation's log; `None` when the log never served.
pub(super) fn read(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    incarnation: Ulid,
) -> Result<Option<Log>, WalError> {
    let dir = shard.dir.join(incarnation.to_string());
    let signed_at = dir.join(CHECKPOINT_FILE);
    let key = log_key(storage, shard, &dir, incarnation)?;
    let tags = FrameTags::new(key, incarnation)?;
    let from_disk = DurableStorage(storage);
    let checkpoint = match checkpoint_file::read(&from_disk, &dir)? {
        Some(note) => Some(verify_checkpoint(
            &note,
            &signed_at,
            &shard.origin(incarnation),
            key,
        )?),
        None => None,
    };
    let covered = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.size);
    let resume = resume::read(storage, &dir, &ResumeKey::new(key, incarnation))?;
    if let Some(resume) = &resume
        && resume.size > covered
    {
        let reason = format!(
            "an earlier checkpoint covered {} records, but now only {covered} are covered: the checkpoint was removed or replaced by an older one",
            resume.size
        );
        return Err(corruption(&signed_at, 0, reason));
    }
    let mut log = LogReader::open(&from_disk, &dir, incarnation)?;
    let mut scan = Scan::new(incarnation);
    log.expect_records(covered);
    if let Some(resume) = resume {
        let place = ResumePosition {
            segment: resume.segment,
            offset: resume.offset,
            seq: resume.size,
            prev_crc: resume.chain,
        };
        if let Some(flaw) = log.resume_at(&place)? {
            return Err(corruption(&flaw.path, flaw.offset, flaw.reason));
        }
        scan = Scan::resume(incarnation, resume)?;
    }
    let start = scan.mmr.size();
    if let Some(checkpoint) = checkpoint
        .as_ref()
        .filter(|signed| signed.size == start && start > 0)
        && checkpoint.root != scan.mmr.root()
    {
        return Err(corruption(&signed_at, 0, divergence_message(start)));
    }
    let mut cut: Option<Flaw> = None;
    loop {
        match log.next()? {
            LogItem::End => break,
            LogItem::Flaw(flaw) => {
                if flaw.seq < covered {
                    let reason = format!("{}, but the checkpoint covers {covered} records", flaw.reason);
                    return Err(corruption(&flaw.path, flaw.offset, reason));
                }
                cut.get_or_insert(flaw);
            }
            LogItem::Record(stored) => {
                let refused = |reason| corruption(log.path(), stored.offset, reason);
                let (frame, tag) = log.tagged_bytes(&stored);
                if !tags.verify(stored.seq, frame, tag) {
                    let reason = format!(
                        "record {} was not written with the signing key: its tag does not match",
                        stored.seq
                    );
                    return Err(refused(reason));
                }
                if let Some(flaw) = &cut {
                    if stored.durable > flaw.seq {
                        let reason = format!(
                            "{}, but record {} proves that the affected record was durable",
                            flaw.reason, stored.seq
                        );
                        return Err(corruption(&flaw.path, flaw.offset, reason));
                    }
                    if !flaw.is_trailing_data || stored.seq != flaw.seq {
                        continue;
                    }
                    cut = None;
                }
                let seq = stored.seq;
                scan.process(seq, log.payload(&stored)).map_err(refused)?;
                let signed = checkpoint.as_ref().filter(|signed| signed.size == seq + 1);
                if signed.is_some_and(|signed| signed.root != scan.mmr.root()) {
                    return Err(refused(divergence_message(seq + 1)));
                }
            }
        }
    }
    let size = scan.mmr.size();
    if size < covered {
        let reason = format!("it covers {covered} records, but the log has {size}");
        return Err(corruption(&signed_at, 0, reason));
    }
    if checkpoint.is_none() {
        if scan.has_served() {
            let reason = "it is missing, but the log has served requests: the first checkpoint is written before the first request";
            return Err(corruption(&signed_at, 0, reason.to_owned()));
        }
        return Ok(None);
    }
    let torn = cut.map(|flaw| TornTail {
        path: flaw.path,
        offset: flaw.offset,
        reason: flaw.reason,
    });
    let lost = complete_leaves(tree_nodes(storage, &dir)?).saturating_sub(size);
    let left = PreviousLog {
        incarnation,
        dir,
        size,
        root: scan.mmr.root(),
        sealed: scan.tracker.is_sealed(),
        checkpointed: covered,
        torn,
        lost_records: lost,
    };
    Ok(Some(scan.finish(left, start)))
}

/// Returns the log that another log names as its predecessor in its first record.
pub(super) fn predecessor(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    previous: &PreviousLog,
) -> Result<Option<Ulid>, WalError> {
    let tags = FrameTags::new(
        log_key(storage, shard, &previous.dir, previous.incarnation)?,
        previous.incarnation,
    )?;
    let mut log = LogReader::open(storage, &previous.dir, previous.incarnation)?;
    let stored = match log.next()? {
        LogItem::Record(stored) => stored,
        LogItem::Flaw(flaw) => return Err(corruption(&flaw.path, flaw.offset, flaw.reason)),
        LogItem::End => {
            return Err(corruption(
                &previous.dir,
                0,
                "its first record is missing".to_owned(),
            ));
        }
    };
    let (frame, tag) = log.tagged_bytes(&stored);
    let mut rules = LogTracker::new(previous.incarnation);
    let taken = match tags.verify(0, frame, tag) {
        true => rules.process(0, log.payload(&stored)).map(drop),
        false => Err("record 0 was not written with the signing key: its tag does not match".to_owned()),
    };
    taken.map_err(|reason| corruption(log.path(), stored.offset, reason))?;
    Ok(rules
        .opening()
        .and_then(|opened| opened.predecessor)
        .map(|before| before.incarnation))
}

/// Returns the number of nodes in the tree of a log; 0 if there is no tree.
fn tree_nodes(storage: &dyn Storage, dir: &Path) -> Result<u64, WalError> {
    match TreeFile::open(storage, dir) {
        Err(EvidenceError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(0),
        opened => Ok(opened?.node_count()?),
    }
}

/// Returns the number of complete leaves in a tree of `nodes` nodes.
fn complete_leaves(nodes: u64) -> u64 {
    let mut leaves = nodes / 2;
    while node_count(leaves + 1) <= nodes {
        leaves += 1;
    }
    leaves
}

fn divergence_message(size: u64) -> String {
    format!("the first {size} records do not hash to the signed root")
}

pub(super) fn corruption(path: &Path, offset: u64, reason: String) -> WalError {
    WalError::Evidence(EvidenceError::Corruption {
        path: path.to_owned(),
        offset,
        reason,
    })
}

/// Verifies that a checkpoint is signed by exactly this key and names this log.
pub(super) fn verify_checkpoint(
    note: &str,
    path: &Path,
    origin: &str,
    key: &SigningKey,
) -> Result<Checkpoint, WalError> {
    let checkpoint = Checkpoint::verify(note, &key.verifying_key().without_lineage())?;
    if checkpoint.origin != origin {
        let reason = format!("it is a checkpoint of {:?}", checkpoint.origin);
        return Err(corruption(path, 0, reason));
    }
    Ok(checkpoint)
}

/// State collected while the records are read.
struct Scan {
    incarnation: Ulid,
    tracker: LogTracker,
    mmr: Mmr,
    open: BTreeMap<(Ulid, u64), UnfinishedExchange>,
    open_is_complete: bool,
    continues: Option<Ulid>,
    predecessor_ended: bool,
    resumed: bool,
}

impl Scan {
    fn new(incarnation: Ulid) -> Self {
        Self {
            incarnation,
            tracker: LogTracker::new(incarnation),
            mmr: Mmr::new(),
            open: BTreeMap::new(),
            open_is_complete: true,
            continues: None,
            predecessor_ended: true,
            resumed: false,
        }
    }

    fn resume(incarnation: Ulid, resume: ResumePoint) -> Result<Self, WalError> {
        let own = resume.open.iter().filter(|open| open.incarnation == incarnation);
        let rules = LogTracker::resume(incarnation, own.map(|open| (open.admission, open.id.clone())));
        let keyed = |open: UnfinishedExchange| ((open.incarnation, open.admission), open);
        Ok(Self {
            tracker: rules,
            mmr: Mmr::from_peaks(resume.size, resume.peaks)?,
            open: resume.open.into_iter().map(keyed).collect(),
            continues: resume.continues,
            predecessor_ended: resume.settled,
            resumed: true,
            ..Self::new(incarnation)
        })
    }

    /// Returns whether the log holds more records than a start writes.
    fn has_served(&self) -> bool {
        self.resumed || self.tracker.first_served().is_some()
    }

    fn process(&mut self, seq: u64, payload: &[u8]) -> Result<(), String> {
        let record = self.tracker.process(seq, payload)?;
        self.mmr.push(leaf_hash(payload), &mut |_| {});
        match record {
            Record::Open(_) => {
                let before = self.tracker.opening().and_then(|opened| opened.predecessor);
                if let Some(before) = before.filter(|before| before.running) {
                    self.continues = Some(before.incarnation);
                    self.predecessor_ended = false;
                    self.open_is_complete = false;
                }
            }
            Record::Takeover(_) => self.predecessor_ended = true,
            Record::Admission(admission) => {
                let key = (self.incarnation, seq);
                self.open.insert(key, unfinished_exchange(key, admission));
            }
            Record::Completion(completion) if completion.incarnation.is_none() => {
                self.open.remove(&(self.incarnation, completion.admission));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self, left: PreviousLog, start: u64) -> Log {
        let mut ended_elsewhere = Vec::new();
        for ended in self.tracker.foreign_ends() {
            let key = (ended.incarnation, ended.admission);
            if self.open.remove(&key).is_none() {
                ended_elsewhere.push(key);
            }
        }
        Log {
            records_read: left.size - start,
            previous: left,
            open: self.open,
            open_is_complete: self.open_is_complete,
            ended_earlier_exchanges: ended_elsewhere,
            continues: self.continues,
            predecessor_ended: self.predecessor_ended,
        }
    }
}

fn unfinished_exchange((incarnation, admission): (Ulid, u64), record: Admission<'_>) -> UnfinishedExchange {
    UnfinishedExchange {
        incarnation,
        admission,
        ts: record.ts,
        id: record.id.into_owned(),
        tenant: record.tenant.into_owned(),
        key: record.key.into_owned(),
        reserved: record.reserved,
        reserved_nanodollars: record.reserved_nanodollars,
        shared_plan: record.shared_plan.map(Into::into),
        model: record.model.into_owned(),
    }
}
