//! Reads all exchanges of a ledger with their stored bodies.

use crate::open::{CheckpointedAdmission, ended_admission};
use crate::{ExchangePayloads, PayloadError};
use proofgate_evidence::layout::shards;
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_evidence::removal::read_tombstone;
use proofgate_evidence::{
    EvidenceError, ReadStorage, ShredKeys, Ulid, checkpoint_file, key_successions, prove,
};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Checkpoint, Mmr, VerifyingKey, leaf_hash};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// An iterator over the exchanges of a ledger, shard by shard, in the order in which they ended. In
/// each shard, the exchanges without an end come last.
///
/// The iterator reads only the records that a log's checkpoint covers, and only after all of them
/// were hashed and matched the signed root. An error in a log ends that log, and the next item
/// comes from the next log. Removed logs, and logs without a checkpoint, are skipped.
pub struct StoredPayloads<'s> {
    storage: &'s dyn ReadStorage,
    key: VerifyingKey,
    keys: ShredKeys,
    shards: VecDeque<VecDeque<(PathBuf, Ulid)>>,
    log: Option<SignedLog<'s>>,
    /// Admissions of the shard that have not ended yet.
    open: BTreeMap<(PathBuf, u64), CheckpointedAdmission>,
}

impl<'s> StoredPayloads<'s> {
    /// Creates an iterator for the directory of a gateway, a shard or one incarnation.
    ///
    /// # Errors
    /// [`EvidenceError::NotALog`] or [`EvidenceError::Io`].
    pub fn new(
        storage: &'s dyn ReadStorage,
        path: &Path,
        key: &VerifyingKey,
        keys: ShredKeys,
    ) -> Result<Self, EvidenceError> {
        let logs = |shard: proofgate_evidence::layout::Shard| {
            let dir = |incarnation: &Ulid| (shard.dir.join(incarnation.to_string()), *incarnation);
            shard.incarnations.iter().map(dir).collect()
        };
        Ok(Self {
            storage,
            key: key_successions::follow_successions(storage, path, key)?,
            keys,
            shards: shards(storage, path)?.into_iter().map(logs).collect(),
            log: None,
            open: BTreeMap::new(),
        })
    }

    fn next_exchange(&mut self) -> Result<Option<ExchangePayloads>, PayloadError> {
        loop {
            if let Some(log) = &mut self.log {
                match log.next()? {
                    Some(record) => {
                        if let Some(exchange) = self.process(record)? {
                            return Ok(Some(exchange));
                        }
                    }
                    None => self.log = None,
                }
                continue;
            }
            let Some(shard) = self.shards.front_mut() else {
                return Ok(None);
            };
            if let Some((dir, incarnation)) = shard.pop_front() {
                self.log = SignedLog::open(self.storage, &self.key, &dir, incarnation)?;
            } else if let Some((_, admitted)) = self.open.pop_first() {
                return ExchangePayloads::open(self.storage, &self.keys, admitted, None).map(Some);
            } else {
                self.shards.pop_front();
            }
        }
    }

    /// Processes a record. Returns the exchange that it ends, if any.
    fn process(&mut self, record: Vec<u8>) -> Result<Option<ExchangePayloads>, PayloadError> {
        let Some(log) = &self.log else { return Ok(None) };
        let parsed = record::parse(&record)?;
        if let Some(request) = parsed.committed_request() {
            let place = (log.dir.clone(), request.seq);
            let admitted = CheckpointedAdmission {
                origin: log.checkpoint.origin.clone(),
                dir: log.dir.clone(),
                record: record.clone(),
            };
            if matches!(parsed, Record::Rejection(_)) {
                return ExchangePayloads::open(self.storage, &self.keys, admitted, None).map(Some);
            }
            self.open.insert(place, admitted);
            return Ok(None);
        }
        // If the admission is in a removed log, there are no bodies to open.
        let ended = ended_admission(&log.dir, &record).and_then(|place| self.open.remove(&place));
        let Some(admitted) = ended else { return Ok(None) };
        ExchangePayloads::open(self.storage, &self.keys, admitted, Some(record)).map(Some)
    }
}

impl Iterator for StoredPayloads<'_> {
    type Item = Result<ExchangePayloads, PayloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_exchange();
        if next.is_err() {
            self.log = None;
        }
        next.transpose()
    }
}

/// The records of a log up to its checkpoint.
struct SignedLog<'s> {
    dir: PathBuf,
    checkpoint: Checkpoint,
    log: LogReader<'s>,
    mmr: Mmr,
}

impl<'s> SignedLog<'s> {
    /// Opens a log whose records match the signed root; `None` for a log that was removed, or that has no checkpoint.
    fn open(
        storage: &'s dyn ReadStorage,
        key: &VerifyingKey,
        dir: &Path,
        incarnation: Ulid,
    ) -> Result<Option<Self>, PayloadError> {
        if read_tombstone(storage, dir)?.is_some() {
            return Ok(None);
        }
        let own = checkpoint_file::read(storage, dir)?;
        let own = own.map(|note| Checkpoint::verify(&note, key)).transpose()?;
        let successors = prove::successor_checkpoint(storage, dir, key)?;
        let Some(signed) = own.into_iter().chain(successors).max_by_key(|signed| signed.size) else {
            return Ok(None);
        };
        if !signed.origin.ends_with(&format!("/{incarnation}")) {
            return Err(PayloadError::Inconsistent(format!(
                "{} contains a checkpoint of another log, {}",
                dir.display(),
                signed.origin
            )));
        }
        let begin = || -> Result<Self, PayloadError> {
            let mut log = LogReader::open(storage, dir, incarnation)?;
            log.expect_records(signed.size);
            Ok(Self {
                dir: dir.to_owned(),
                checkpoint: signed.clone(),
                log,
                mmr: Mmr::new(),
            })
        };
        let mut all = begin()?;
        while all.next()?.is_some() {}
        begin().map(Some)
    }

    /// Returns the next record; `None` after the last record, if all records match the signed root.
    fn next(&mut self) -> Result<Option<Vec<u8>>, PayloadError> {
        let contradicted = |reason: &str| {
            let origin = &self.checkpoint.origin;
            Err(PayloadError::Inconsistent(format!(
                "{origin}: {reason}: run fsck"
            )))
        };
        if self.mmr.size() >= self.checkpoint.size {
            return match self.mmr.root() == self.checkpoint.root {
                true => Ok(None),
                false => contradicted("its records do not hash to the signed root"),
            };
        }
        loop {
            match self.log.next()? {
                LogItem::Record(stored) if stored.seq == self.mmr.size() => {
                    let record = self.log.payload(&stored);
                    self.mmr.push(leaf_hash(record), &mut |_| {});
                    return Ok(Some(record.to_vec()));
                }
                LogItem::Flaw(flaw) if flaw.is_trailing_data => {}
                LogItem::Record(_) | LogItem::Flaw(_) => {
                    return contradicted("some of its records are damaged");
                }
                LogItem::End => return contradicted("some signed records are missing"),
            }
        }
    }
}
