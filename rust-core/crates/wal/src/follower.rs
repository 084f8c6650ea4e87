//! The follower: reads the written records, extends the tree, makes records and tree durable, and
//! signs checkpoints.
//!
//! Order of a checkpoint (docs: "Signing order"): `fdatasync` of stored payloads, segments and
//! salts, then of the tree, then sign, then persist. After a failed sync the log stops. The sync is
//! never retried, because the kernel may have marked the lost pages clean.
//!
//! The follower hashes the records that it reads back from the volume. It signs them only if their
//! tags prove that this process wrote them.

use crate::StoredFile;
use crate::authenticity::FrameTags;
use crate::checkpoint_file;
use crate::preparer::{Preparation, Preparer};
use crate::recovery::PreviousLog;
use crate::resume::{self, ResumeKey, ResumePoint};
use crate::resume_state::PositionedResumeState;
use crate::segment_queue::Segment;
use crate::tree_writer::TreeWriter;
use crate::{UnsyncedFiles, WalError, Watermark};
use proofgate_evidence::TreeFile;
use proofgate_evidence::frame::{SEGMENT_HEADER_LEN, SegmentCrc, SegmentHeader};
use proofgate_evidence::segment::{prepared_name, segment_name};
use proofgate_evidence::segment_reader::{SegmentReader, Slot};
use proofgate_evidence::{EvidenceError, read_full};
use proofgate_ledger::{Checkpoint, Hash, Mmr, SigningKey, leaf_hash};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use ulid::Ulid;

/// Most records in one step. Together with [`MAX_STEP_BYTES`], it limits a step to a third of a
/// millisecond, because other threads on the same processor wait for the step to end.
const MAX_STEP_RECORDS: u64 = 512;
const MAX_STEP_BYTES: usize = 512 << 10;

/// Bytes of a segment that are dropped from the page cache together.
const CACHE_DROP_BYTES: u64 = 4 << 20;

/// The progress of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepProgress {
    /// Number of records that this step followed.
    pub records: u64,
    /// Whether there are more written records to follow.
    pub has_more: bool,
}

/// The reader and signer of one incarnation's log, owned by the ledger thread.
pub struct Follower {
    origin: String,
    incarnation: Ulid,
    watermark: Arc<Watermark>,
    preparer: Preparer,
    /// Segments from the one being read to the newest prepared.
    segments: VecDeque<Arc<Segment>>,
    reader: SegmentReader,
    prev_crc: u32,
    mmr: Mmr,
    tree: TreeWriter,
    salts: (Arc<dyn StoredFile>, PathBuf),
    salt_blocks_synced: u64,
    /// Segments read from since the last sync, with their paths for messages.
    unsynced: Vec<(Arc<Segment>, PathBuf)>,
    /// Bytes of the segment being read that have been dropped from the page cache.
    cache_dropped: u64,
    directory_changed: bool,
    /// Durable size and root, which may be signed.
    durable: (u64, Hash),
    /// The newest checkpoint and its signed note.
    checkpoint: Option<(Checkpoint, String)>,
    tags: FrameTags,
    resume_key: ResumeKey,
    /// Number of the first record in the segment being read.
    segment_first_seq: u64,
    /// A mark from the data-plane thread that the follower has not reached yet.
    pending_mark: Option<PositionedResumeState>,
    /// The resume point to write once a checkpoint covers it.
    resume: Option<ResumePoint>,
    /// Whether a read, write or sync of this follower has failed.
    failed: bool,
    /// Other files that must be on the disk before records are durable.
    extra_files: Option<Arc<UnsyncedFiles>>,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Follower")
            .field("origin", &self.origin)
            .field("followed", &self.mmr.size())
            .field("durable", &self.durable.0)
            .finish_non_exhaustive()
    }
}

impl Follower {
    pub(crate) fn new(
        origin: String,
        header: &SegmentHeader,
        first: Arc<Segment>,
        preparer: Preparer,
        tree: TreeWriter,
        salts: (Arc<dyn StoredFile>, PathBuf),
        (tags, resume_key): (FrameTags, ResumeKey),
    ) -> Self {
        let mmr = Mmr::new();
        Self {
            origin,
            incarnation: header.incarnation,
            watermark: Arc::clone(&preparer.watermark),
            reader: segment_reader(&first, header.incarnation),
            prev_crc: header.crc(),
            unsynced: vec![(Arc::clone(&first), preparer.dir.join(segment_name(0)))],
            segments: VecDeque::from([first]),
            durable: (0, mmr.root()),
            mmr,
            tree,
            salts,
            salt_blocks_synced: 0,
            cache_dropped: 0,
            directory_changed: false,
            checkpoint: None,
            tags,
            resume_key,
            segment_first_seq: 0,
            pending_mark: None,
            resume: None,
            failed: false,
            extra_files: None,
            preparer,
        }
    }

    /// Registers files that records refer to, to be synced before those records are durable.
    pub fn set_unsynced_files(&mut self, beside: Arc<UnsyncedFiles>) {
        self.extra_files = Some(beside);
    }

    /// Returns the progress that the follower shares with the data-plane thread.
    #[must_use]
    pub fn watermark(&self) -> Arc<Watermark> {
        Arc::clone(&self.watermark)
    }

    /// Returns the incarnation of this log.
    #[must_use]
    pub fn incarnation(&self) -> Ulid {
        self.incarnation
    }

    /// Returns the newest signed checkpoint.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_ref().map(|(signed, _)| signed)
    }

    /// Returns the final state of the log, once it is finished.
    #[must_use]
    pub fn to_previous_log(&self) -> PreviousLog {
        let (size, root) = self.durable;
        PreviousLog {
            incarnation: self.incarnation,
            dir: self.preparer.dir.clone(),
            size,
            root,
            sealed: self.watermark.sealed(),
            checkpointed: self.last_checkpoint().map_or(0, |signed| signed.size),
            torn: None,
            lost_records: 0,
        }
    }

    /// Returns the number of followed records, which are hashed into the tree.
    #[must_use]
    pub fn followed_records(&self) -> u64 {
        self.mmr.size()
    }

    /// Returns the tree of the running log, for proofs. Nodes appear as [`Self::step`] writes them.
    #[must_use]
    pub fn tree(&self) -> TreeFile {
        self.tree.reader()
    }

    /// Prepares at most one segment ahead of the writer. Call this before each [`Self::step`]. It
    /// costs two atomic loads when enough segments are prepared, and otherwise a file creation and
    /// two syncs.
    pub fn prepare(&mut self) -> Preparation {
        self.prepare_bounded(u64::MAX)
    }

    /// Same as [`Self::prepare`], but stops after about `most` bytes of the segment
    /// ([`Preparation::InProgress`]), so that other threads on the same processor need not wait for
    /// the whole segment.
    pub fn prepare_bounded(&mut self, most: u64) -> Preparation {
        let (preparation, segment) = self.preparer.prepare(most);
        self.segments.extend(segment);
        preparation
    }

    /// Reads the next written records, at most 512 records or 512 KiB, hashes them into the tree
    /// and writes the tree's nodes.
    ///
    /// If there is no space for the tree, up to 4 MiB of its nodes wait in memory. Beyond that
    /// limit, the log continues without the tree, and proofs are computed from the records.
    ///
    /// # Errors
    /// [`EvidenceError::Corruption`] when records that the watermark counts as written cannot be
    /// read back, [`EvidenceError::Io`] when a read or a tree write fails. In both cases the log
    /// has stopped.
    pub fn step(&mut self) -> Result<StepProgress, WalError> {
        self.check_not_failed()?;
        let stepped = self.follow();
        self.stop_on_error(stepped)
    }

    /// Makes all followed records durable (`fdatasync` of segments and salts) and updates the
    /// durable count. Does nothing when no record was followed since the last sync.
    ///
    /// # Errors
    /// [`EvidenceError::Io`] when a sync fails. The log has then stopped, and later calls return
    /// [`WalError::Poisoned`].
    pub fn sync(&mut self) -> Result<(), WalError> {
        self.check_not_failed()?;
        if self.durable.0 == self.mmr.size() {
            return Ok(());
        }
        let synced = self.sync_files();
        self.stop_on_error(synced)?;
        self.durable = (self.mmr.size(), self.mmr.root());
        self.watermark.set_durable(self.durable.0);
        Ok(())
    }

    /// Signs the durable size and root, stores the checkpoint, and returns the signed note. If
    /// nothing became durable since the last checkpoint, returns the stored note.
    ///
    /// # Errors
    /// [`WalError::OutOfSpace`], or [`EvidenceError::Io`] from a call other than `sync`: the former
    /// checkpoint remains, and the call can be retried. A failed `sync` has stopped the log.
    /// [`EvidenceError::Ledger`] when the key is not valid for the origin.
    pub fn sign_checkpoint(&mut self, key: &SigningKey) -> Result<String, WalError> {
        self.check_not_failed()?;
        let (size, root) = self.durable;
        if let Some((_, note)) = self.checkpoint.as_ref().filter(|(signed, _)| signed.size == size) {
            return Ok(note.clone());
        }
        let flushed = self.tree.flush().and_then(|()| self.tree.sync());
        self.stop_on_error(flushed)?;
        let checkpoint = Checkpoint {
            origin: self.origin.clone(),
            size,
            root,
        };
        let note = checkpoint.sign(key)?;
        let Preparer {
            storage,
            directory,
            dir,
            ..
        } = &self.preparer;
        match checkpoint_file::replace_checkpoint(&**storage, &**directory, dir, &note) {
            Err(error @ WalError::Evidence(EvidenceError::Io { call: "sync", .. })) => {
                return self.stop_on_error(Err(error));
            }
            other => other?,
        }
        self.watermark.set_checkpointed(size);
        self.checkpoint = Some((checkpoint, note.clone()));
        self.write_resume_point(size)?;
        Ok(note)
    }

    /// Writes the resume point once the checkpoint covers it. If there is no space, the former
    /// resume point remains.
    fn write_resume_point(&mut self, covered: u64) -> Result<(), WalError> {
        let Some(resume) = self.resume.take_if(|resume| resume.size <= covered) else {
            return Ok(());
        };
        let Preparer {
            storage,
            directory,
            dir,
            ..
        } = &self.preparer;
        match resume::write(&**storage, &**directory, dir, &self.resume_key, &resume) {
            Err(WalError::Evidence(error @ EvidenceError::Io { call: "sync", .. })) => {
                self.stop_on_error(Err(error.into()))
            }
            _ => Ok(()),
        }
    }

    /// Closes the log after the writer's last flush: follows the remaining records, makes them durable, signs the last
    /// checkpoint and, if the log is sealed, releases unused allocated space. Returns the last signed note.
    ///
    /// # Errors
    /// Same as [`Self::step`], [`Self::sync`] and [`Self::sign_checkpoint`]. A failure to release
    /// space is not an error.
    pub fn finish(&mut self, key: &SigningKey) -> Result<String, WalError> {
        while self.step()?.has_more {}
        self.sync()?;
        let note = self.sign_checkpoint(key)?;
        if !self.watermark.sealed() {
            return Ok(note);
        }
        let Preparer {
            storage,
            directory,
            dir,
            in_progress: begun,
            next_ordinal,
            ..
        } = &mut self.preparer;
        let mut segments = self.segments.iter();
        if let Some(last) = segments.next() {
            let _ = last.file.set_len(self.reader.offset);
        }
        for unused in segments {
            let _ = storage.remove(&dir.join(prepared_name(unused.ordinal)));
        }
        if begun.take().is_some() {
            let _ = storage.remove(&dir.join(prepared_name(*next_ordinal)));
        }
        let _ = directory.sync();
        Ok(note)
    }

    /// Refuses to continue after a failure of the follower. After a failure of the writer, the
    /// follower still follows the earlier records.
    fn check_not_failed(&self) -> Result<(), WalError> {
        if self.failed {
            self.watermark.check()
        } else {
            Ok(())
        }
    }

    fn stop_on_error<T>(&mut self, result: Result<T, WalError>) -> Result<T, WalError> {
        if let Err(error) = &result {
            self.failed = true;
            self.watermark.poison(error.to_string());
        }
        result
    }

    fn follow(&mut self) -> Result<StepProgress, WalError> {
        let target = self.watermark.written();
        let start = self.mmr.size();
        let mut bytes = 0;
        if let Some(marked) = self.watermark.take_resume_state() {
            self.pending_mark = Some(marked);
        }
        self.reader.refresh();
        self.reach_mark();
        while self.mmr.size() < target && self.mmr.size() - start < MAX_STEP_RECORDS && bytes < MAX_STEP_BYTES
        {
            bytes += self.follow_one()?;
            self.reach_mark();
        }
        self.tree.flush()?;
        Ok(StepProgress {
            records: self.mmr.size() - start,
            has_more: self.mmr.size() < target,
        })
    }

    /// Creates the resume point when the log reaches the mark. A mark that was set too late is
    /// dropped.
    fn reach_mark(&mut self) {
        let size = self.mmr.size();
        let Some(PositionedResumeState {
            state: mark,
            size: at,
        }) = self.pending_mark.take_if(|marked| marked.size <= size)
        else {
            return;
        };
        if at < size {
            return;
        }
        self.resume = Some(ResumePoint {
            size,
            segment: self.segment_first_seq,
            offset: self.reader.offset,
            chain: self.prev_crc,
            peaks: self.mmr.peaks().to_vec(),
            open: mark.open,
            continues: mark.continues,
            settled: mark.predecessor_ended,
        });
    }

    /// Follows one record or enters the next segment. Returns the number of payload bytes.
    fn follow_one(&mut self) -> Result<usize, WalError> {
        let seq = self.mmr.size();
        let offset = self.reader.offset;
        let reason = match self.reader.next() {
            Ok(Slot::Record(stored)) if stored.seq == seq && stored.prev_crc == self.prev_crc => {
                let (frame, tag) = self.reader.tagged_bytes(&stored);
                if !self.tags.verify(seq, frame, tag) {
                    let reason = format!(
                        "record {seq} differs from the record that was written: its tag does not match"
                    );
                    return Err(WalError::Evidence(EvidenceError::Corruption {
                        path: self.path(),
                        offset,
                        reason,
                    }));
                }
                let tree = &mut self.tree;
                self.mmr
                    .push(leaf_hash(self.reader.payload(&stored)), &mut |node| {
                        tree.push(node)
                    });
                self.prev_crc = stored.crc;
                return Ok(stored.len);
            }
            Ok(Slot::Record(stored)) => {
                format!(
                    "found record {} instead, or that record does not chain to the previous record",
                    stored.seq
                )
            }
            Ok(Slot::Empty) => return self.next_segment().map(|()| 0),
            Ok(Slot::Invalid(reason)) => reason.to_owned(),
            Err(error) => return Err(WalError::io("read", &self.path())(error)),
        };
        let reason = format!("record {seq} was written but cannot be read back: {reason}");
        Err(EvidenceError::Corruption {
            path: self.path(),
            offset,
            reason,
        }
        .into())
    }

    fn next_segment(&mut self) -> Result<(), WalError> {
        let seq = self.mmr.size();
        let missing = |path, reason: &str| EvidenceError::Corruption {
            path,
            offset: 0,
            reason: format!("record {seq} was written but is in no segment: {reason}"),
        };
        let Some(next) = self.segments.get(1).cloned() else {
            return Err(missing(self.path(), "there is no further segment").into());
        };
        let Preparer { storage, dir, .. } = &self.preparer;
        let (from, to) = (dir.join(prepared_name(next.ordinal)), dir.join(segment_name(seq)));
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        read_full(&*next.file, &mut bytes, 0).map_err(WalError::io("read", &from))?;
        match SegmentHeader::decode(&bytes) {
            Ok(header) if header.first_seq == seq && header.ordinal == next.ordinal => {}
            Ok(_) => return Err(missing(from, "the next segment starts with another record").into()),
            Err(reason) => return Err(missing(from, reason).into()),
        }
        storage
            .rename(&from, &to)
            .map_err(WalError::io("rename", &from))?;
        self.directory_changed = true;
        self.reader = segment_reader(&next, self.incarnation);
        self.unsynced.push((next, to));
        self.segment_first_seq = seq;
        self.segments.pop_front();
        Ok(())
    }

    fn sync_files(&mut self) -> Result<(), WalError> {
        if let Some(beside) = &self.extra_files {
            for (file, path) in beside.take() {
                file.sync().map_err(WalError::io("sync", &path))?;
            }
        }
        for (segment, path) in &self.unsynced {
            segment.file.sync().map_err(WalError::io("sync", path))?;
        }
        let blocks = self.watermark.salt_blocks();
        if blocks != self.salt_blocks_synced {
            self.salts.0.sync().map_err(WalError::io("sync", &self.salts.1))?;
            self.salt_blocks_synced = blocks;
        }
        if self.directory_changed {
            let Preparer { directory, dir, .. } = &self.preparer;
            directory.sync().map_err(WalError::io("sync", dir))?;
            self.directory_changed = false;
        }
        self.drop_synced_from_cache();
        // Keep the last segment, which is still being written.
        self.unsynced.drain(..self.unsynced.len().saturating_sub(1));
        Ok(())
    }

    /// Drops synced bytes from the page cache, because they are read again only for a proof. In the
    /// cache, they would displace pages that are read, or fill the memory limit of the worker's
    /// container. After the drop, new records reuse the same pages.
    fn drop_synced_from_cache(&mut self) {
        let Some(((current, _), ended)) = self.unsynced.split_last() else {
            return;
        };
        for (segment, _) in ended {
            segment.file.evict(segment.bytes);
            self.cache_dropped = 0;
        }
        if self.reader.offset - self.cache_dropped >= CACHE_DROP_BYTES {
            current.file.evict(self.reader.offset);
            self.cache_dropped = self.reader.offset;
        }
    }

    fn path(&self) -> PathBuf {
        self.unsynced
            .last()
            .map_or_else(|| self.preparer.dir.clone(), |(_, path)| path.clone())
    }
}

fn segment_reader(segment: &Segment, incarnation: Ulid) -> SegmentReader {
    let key = SegmentCrc::new(incarnation, segment.ordinal);
    SegmentReader::new(Arc::clone(&segment.file) as _, key, segment.bytes)
}
