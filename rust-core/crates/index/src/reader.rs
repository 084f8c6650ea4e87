//! Reads a log in batches from a cursor, up to a checkpoint and never beyond it.
//!
//! The checkpoint signs only the root of all records that it covers. A batch ends earlier, so a
//! consistency proof from the log's file `tree` (RFC 9162 section 2.1.4) connects its root with the
//! signed root. That file is derived and may be missing or wrong. In that case all records up to
//! the checkpoint are hashed once before the next batch is returned, and the intermediate roots are
//! stored.

use crate::IndexError;
use crate::batch::{Batch, BatchBuilder};
use crate::cursor::LogCursor;
use proofgate_evidence::layout::parse_incarnation;
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_evidence::segment_reader::StoredRecord;
use proofgate_evidence::{ReadStorage, TreeFile, Ulid};
use proofgate_ledger::{
    Checkpoint, Hash, Mmr, VerifyingKey, consistency_proof, leaf_hash, record, verify_consistency,
};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Largest size of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Number of records.
    pub records: u64,
    /// Size of their payloads in bytes, not counting the last record.
    pub bytes: u64,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self {
            records: 1 << 15,
            bytes: 16 << 20,
        }
    }
}

impl BatchLimits {
    fn are_reached(self, records: u64, bytes: u64) -> bool {
        records >= self.records || bytes >= self.bytes
    }
}

/// A reader of one log.
pub struct BatchReader<'s> {
    storage: &'s dyn ReadStorage,
    dir: PathBuf,
    incarnation: Ulid,
    checkpoint: Checkpoint,
    limits: BatchLimits,
    log: LogReader<'s>,
    mmr: Mmr,
    /// Ends of batches and their roots, for a log whose tree file does not provide them.
    roots: VecDeque<(u64, Hash)>,
}

impl<'s> BatchReader<'s> {
    /// Opens the log in `dir` up to the checkpoint in `note`, at a cursor or at the beginning.
    ///
    /// # Errors
    /// [`IndexError::Ledger`] when `key` did not sign the note; [`IndexError::WrongLog`]; [`IndexError::Inconsistent`]
    /// when the log's files do not contain the cursor's position; [`IndexError::Evidence`].
    pub fn open(
        storage: &'s dyn ReadStorage,
        dir: &Path,
        note: &str,
        key: &VerifyingKey,
        place: Option<&LogCursor>,
        limits: BatchLimits,
    ) -> Result<Self, IndexError> {
        let signed = Checkpoint::verify(note, key)?;
        let other_log = || IndexError::WrongLog {
            signed: signed.origin.clone(),
            directory: dir.display().to_string(),
        };
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let named = name(dir).zip(dir.parent().and_then(name));
        let (log, shard) = named.ok_or_else(other_log)?;
        let incarnation = parse_incarnation(&log).ok_or_else(other_log)?;
        if signed.origin != format!("{}/{shard}/{log}", key.name()) {
            return Err(other_log());
        }
        let mut reader = Self {
            storage,
            dir: dir.to_owned(),
            incarnation,
            limits,
            log: LogReader::open(storage, dir, incarnation)?,
            mmr: Mmr::new(),
            roots: VecDeque::new(),
            checkpoint: signed,
        };
        if let Some(place) = place {
            reader.mmr = place.mmr.clone();
            reader.log = reader.open_log_at(place)?;
        } else {
            reader.log.expect_records(reader.checkpoint.size);
        }
        Ok(reader)
    }

    /// Returns the origin of the log.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.checkpoint.origin
    }

    /// Returns the number of records under the checkpoint.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.checkpoint.size
    }

    /// Returns the next batch; `None` at the checkpoint. After an error, the reader must not be used again.
    ///
    /// # Errors
    /// [`IndexError::Inconsistent`] when the records do not lead to the signed root, or are not records of this log;
    /// [`IndexError::Evidence`] when they cannot be read.
    #[expect(
        clippy::should_implement_trait,
        reason = "not an Iterator: a step can fail, and reading stops at a failure"
    )]
    pub fn next(&mut self) -> Result<Option<Batch>, IndexError> {
        let mut batch = BatchBuilder::default();
        let place = self.read_batch(|seq, record| batch.process(seq, record))?;
        Ok(place.map(|place| batch.finish(place)))
    }

    /// Passes the records of the next batch to `take`, each with its number, and returns the position after it; `None` at
    /// the checkpoint. The records are verified only after this has returned without an error.
    ///
    /// # Errors
    /// The errors of [`next`](BatchReader::next); an error that `take` returns for a record
    /// contradicts the checkpoint.
    pub fn read_batch(
        &mut self,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), String>,
    ) -> Result<Option<LogCursor>, IndexError> {
        let start = self.mmr.size();
        if start >= self.checkpoint.size {
            return Ok(None);
        }
        let mut bytes = 0;
        while self.mmr.size() < self.checkpoint.size
            && !self.limits.are_reached(self.mmr.size() - start, bytes)
        {
            let stored = next_record(&mut self.log, &self.checkpoint)?;
            let payload = self.log.payload(&stored);
            self.mmr.push(leaf_hash(payload), &mut |_| {});
            bytes += payload.len() as u64;
            if stored.seq == 0 {
                require_origin(payload, &self.checkpoint)?;
            }
            take(stored.seq, payload).map_err(|reason| inconsistent(&self.checkpoint, reason))?;
        }
        let place = self.log.resume_position().map(|resume| LogCursor {
            mmr: self.mmr.clone(),
            resume,
        });
        let place = place.ok_or_else(|| inconsistent(&self.checkpoint, "it has no records".to_owned()))?;
        self.require_signed(&place)?;
        Ok(Some(place))
    }

    /// Requires that the records read so far lead to the signed root.
    fn require_signed(&mut self, place: &LogCursor) -> Result<(), IndexError> {
        let (size, root) = (self.mmr.size(), self.mmr.root());
        let unlike = || {
            let reason = format!(
                "its records do not hash to the root that was signed at {}",
                self.checkpoint.size
            );
            inconsistent(&self.checkpoint, reason)
        };
        if size == self.checkpoint.size {
            return if root == self.checkpoint.root {
                Ok(())
            } else {
                Err(unlike())
            };
        }
        if self.roots.is_empty() && !self.tree_proves(size, &root) {
            self.roots = self.read_ahead(place)?;
        } else if let Some(known) = self.roots.pop_front() {
            return if known == (size, root) {
                Ok(())
            } else {
                Err(unlike())
            };
        }
        Ok(())
    }

    fn tree_proves(&self, size: u64, root: &Hash) -> bool {
        let proved = TreeFile::open(self.storage, &self.dir)
            .and_then(|tree| consistency_proof(&tree, size, self.checkpoint.size));
        proved.is_ok_and(|hashes| {
            verify_consistency(size, root, self.checkpoint.size, &self.checkpoint.root, &hashes).is_ok()
        })
    }

    /// Hashes the records from a position up to the checkpoint, and returns the roots at the ends
    /// of the future batches. Because the records lead to the signed root, the records before the
    /// position are verified too.
    fn read_ahead(&self, place: &LogCursor) -> Result<VecDeque<(u64, Hash)>, IndexError> {
        let mut log = self.open_log_at(place)?;
        let mut mmr = place.mmr.clone();
        let mut roots = VecDeque::new();
        let (mut records, mut bytes) = (0, 0);
        while mmr.size() < self.checkpoint.size {
            let stored = next_record(&mut log, &self.checkpoint)?;
            mmr.push(leaf_hash(log.payload(&stored)), &mut |_| {});
            records += 1;
            bytes += stored.len as u64;
            if self.limits.are_reached(records, bytes) {
                roots.push_back((mmr.size(), mmr.root()));
                (records, bytes) = (0, 0);
            }
        }
        if mmr.root() != self.checkpoint.root {
            let reason = format!(
                "its records do not hash to the root that was signed at {}",
                self.checkpoint.size
            );
            return Err(inconsistent(&self.checkpoint, reason));
        }
        Ok(roots)
    }

    fn open_log_at(&self, place: &LogCursor) -> Result<LogReader<'s>, IndexError> {
        let mut log = LogReader::open(self.storage, &self.dir, self.incarnation)?;
        log.expect_records(self.checkpoint.size);
        match log.resume_at(&place.resume)? {
            None => Ok(log),
            Some(flaw) => Err(inconsistent(&self.checkpoint, flaw.reason)),
        }
    }
}

fn inconsistent(signed: &Checkpoint, reason: String) -> IndexError {
    IndexError::Inconsistent {
        origin: signed.origin.clone(),
        reason,
    }
}

fn next_record(log: &mut LogReader<'_>, signed: &Checkpoint) -> Result<StoredRecord, IndexError> {
    loop {
        match log.next()? {
            LogItem::Record(stored) => return Ok(stored),
            LogItem::Flaw(flaw) if flaw.is_trailing_data => {}
            LogItem::Flaw(flaw) => {
                let reason = format!(
                    "{} at byte {}, record {}: {}",
                    flaw.path.display(),
                    flaw.offset,
                    flaw.seq,
                    flaw.reason
                );
                return Err(inconsistent(signed, reason));
            }
            LogItem::End => {
                let reason = format!(
                    "{} records were signed, but not all of them are present",
                    signed.size
                );
                return Err(inconsistent(signed, reason));
            }
        }
    }
}

/// Requires that a log's first record names the signed log.
fn require_origin(payload: &[u8], signed: &Checkpoint) -> Result<(), IndexError> {
    let stated = match record::parse(payload) {
        Ok(record::Record::Open(open)) => format!("{}/{}/{}", open.ledger, open.shard, open.incarnation),
        _ => String::new(),
    };
    if stated == signed.origin {
        Ok(())
    } else {
        Err(inconsistent(
            signed,
            format!("it says that it is the log {stated:?}"),
        ))
    }
}
