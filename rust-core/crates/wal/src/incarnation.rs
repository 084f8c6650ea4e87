//! Incarnations. An incarnation is a log directory that one worker run claims and no other run
//! writes to.

use crate::authenticity::FrameTags;
use crate::follower::Follower;
use crate::preparer::{Preparer, create_allocated};
use crate::recovery::Shard;
use crate::resume::ResumeKey;
use crate::salts::Salts;
use crate::segment_queue::{Segment, SegmentQueue};
use crate::tree_writer::TreeWriter;
use crate::{EvidenceError, Storage, WalError, Watermark, Writer};
use proofgate_evidence::TREE_FILE;
use proofgate_evidence::checkpoint_file;
use proofgate_evidence::frame::{SEGMENT_HEADER_LEN, SegmentHeader, frame_len};
use proofgate_evidence::layout::parse_incarnation;
use proofgate_evidence::salts::SALTS_FILE;
use proofgate_evidence::segment::{MAX_SEGMENT_BYTES, segment_name};
use proofgate_ledger::record::MAX_RECORD_BYTES;
use proofgate_ledger::{Checkpoint, LedgerError};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ulid::Ulid;

/// The layout of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Size of a segment in bytes: a multiple of 8, 64 KiB to 1 GiB. A record may take at most a
    /// quarter of a segment.
    pub segment_bytes: u64,
    /// Number of prepared segments ahead of the segment being written.
    pub segments_ahead: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 32 << 20,
            segments_ahead: 1,
        }
    }
}

impl LogOptions {
    const MIN_SEGMENT_BYTES: u64 = 64 << 10;

    fn check(&self) -> Result<(), WalError> {
        if !self.segment_bytes.is_multiple_of(8)
            || !(Self::MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES).contains(&self.segment_bytes)
        {
            return Err(WalError::InvalidOptions(format!(
                "the segment size is {} bytes, but must be a multiple of 8 from 64 KiB to 1 GiB",
                self.segment_bytes
            )));
        }
        Ok(())
    }

    /// Returns the size of the largest record, in bytes.
    fn max_record_bytes(&self) -> usize {
        let overhead = frame_len(0) + SEGMENT_HEADER_LEN as u64;
        usize::try_from(self.segment_bytes / 4 - overhead)
            .unwrap_or(MAX_RECORD_BYTES)
            .min(MAX_RECORD_BYTES)
    }
}

/// A new log, ready for its first record.
pub struct Incarnation {
    /// Origin of the log's checkpoints: `<ledger>/<shard>/<incarnation>`.
    pub origin: String,
    /// The last part of the origin.
    pub incarnation: Ulid,
    /// Directory of the log.
    pub dir: PathBuf,
    /// The writer, for the data-plane thread.
    pub writer: Writer,
    /// The follower, for the ledger thread.
    pub follower: Follower,
}

impl std::fmt::Debug for Incarnation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Incarnation")
            .field("origin", &self.origin)
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

/// An empty directory that was claimed for an incarnation.
#[derive(Debug)]
pub(crate) struct ClaimedDirectory {
    pub(crate) incarnation: Ulid,
    pub(crate) dir: PathBuf,
    /// A skipped name on the shard: its time is in the future, and it has no signed checkpoint.
    pub(crate) skipped: Option<Ulid>,
}

/// Largest lead of an unsigned name's time over the clock before the name is skipped, in
/// milliseconds. Clocks differ, and a log that starts concurrently gets its first signature
/// slightly later.
const MAX_CLOCK_SKEW_MS: u64 = 600_000;

impl ClaimedDirectory {
    /// Claims `<shard>/<ulid>/`. Creating the directory makes the claim, so the claim fails if the
    /// directory already exists. The shard's directory is created if it is missing; its parent must
    /// exist. The ULID is generated from `now`, in unix microseconds, and sorts after all other
    /// ULIDs on the shard even if the clock went back. The shard is listed after the directory was
    /// created, because the creation makes a network file system refresh its listing.
    ///
    /// A name in the future counts only if a checkpoint is signed for it, because the time in a
    /// name alone is not trusted.
    ///
    /// # Errors
    /// [`EvidenceError::Io`](crate::EvidenceError::Io);
    /// [`Corruption`](crate::EvidenceError::Corruption) when no ULID sorts after an existing name.
    pub(crate) fn acquire(storage: &dyn Storage, shard: &Shard<'_>, now: u64) -> Result<Self, WalError> {
        let shard_dir = shard.dir;
        let fresh = Ulid::from_parts(now / 1000, Ulid::new().random());
        let mut claim = Self::claim_at(storage, shard_dir, fresh)?;
        let names = storage.list(shard_dir).map_err(WalError::io("list", shard_dir))?;
        let latest = (now / 1000).saturating_add(MAX_CLOCK_SKEW_MS);
        let (counted, unsigned): (Vec<Ulid>, Vec<Ulid>) = names
            .iter()
            .filter_map(|name| parse_incarnation(name))
            .filter(|incarnation| *incarnation != claim.incarnation)
            .partition(|name| name.timestamp_ms() <= latest || is_signed(storage, shard, *name));
        let newest = counted.into_iter().max();
        if let Some(newest) = newest.filter(|newest| *newest > claim.incarnation) {
            claim.abandon(storage);
            let behind = ulid_after(newest).ok_or_else(|| EvidenceError::Corruption {
                path: shard_dir.join(newest.to_string()),
                offset: 0,
                reason: "its name has the last possible timestamp, so no later log can be named".to_owned(),
            })?;
            claim = Self::claim_at(storage, shard_dir, behind)?;
        }
        claim.skipped = unsigned.into_iter().max();
        Ok(claim)
    }

    fn claim_at(storage: &dyn Storage, shard_dir: &Path, incarnation: Ulid) -> Result<Self, WalError> {
        let dir = shard_dir.join(incarnation.to_string());
        make_directory(storage, shard_dir, &dir)?;
        Ok(Self {
            incarnation,
            dir,
            skipped: None,
        })
    }

    /// Removes the directory. If the removal fails, the directory remains empty, and every reader
    /// skips it.
    pub(crate) fn abandon(self, storage: &dyn Storage) {
        let _ = storage.remove_dir(&self.dir);
    }
}

/// Returns whether the ledger's key has signed a checkpoint of a log; true if the checkpoint cannot
/// be read.
fn is_signed(storage: &dyn Storage, shard: &Shard<'_>, incarnation: Ulid) -> bool {
    let dir = shard.dir.join(incarnation.to_string());
    let note = match checkpoint_file::read(storage, &dir) {
        Ok(note) => note,
        Err(EvidenceError::Io { .. }) => return true,
        Err(_) => return false,
    };
    note.is_some_and(
        |note| match Checkpoint::verify_signer(&note, &shard.key.verifying_key()) {
            Ok((signed, _)) => signed.origin == shard.origin(incarnation),
            Err(error) => matches!(error, LedgerError::KeySuperseded(_)),
        },
    )
}

/// Returns a new ULID that sorts after `before`; `None` if `before` has the last possible timestamp.
fn ulid_after(before: Ulid) -> Option<Ulid> {
    let later = Ulid::from_parts(before.timestamp_ms() + 1, Ulid::new().random());
    // The timestamp has 48 bits; a larger value is truncated.
    (later > before).then_some(later)
}

/// Name of the file that marks an incarnation whose lock is not visible to every node.
pub(crate) const UNLOCKED_FILE: &str = "unlocked";

impl Incarnation {
    /// Creates the files of a log in a claimed directory. When this function returns, the empty log
    /// and the names of its files are durable, and the first salts are written.
    ///
    /// # Errors
    /// [`WalError::InvalidOptions`] for options or names that cannot be used,
    /// [`EvidenceError::Io`](crate::EvidenceError::Io) when a file cannot be created,
    /// [`WalError::OutOfSpace`] when there is no space for the first salts. A directory that
    /// remains after an error holds no record, and recovery skips it.
    pub(crate) fn create(
        storage: &Arc<dyn Storage>,
        claim: ClaimedDirectory,
        shard: &Shard<'_>,
        options: LogOptions,
    ) -> Result<Self, WalError> {
        options.check()?;
        let ledger = shard.ledger;
        if ledger.is_empty() || ledger.contains(|c: char| c.is_whitespace() || c.is_control() || c == '+') {
            return Err(WalError::InvalidOptions(format!(
                "the ledger name {ledger:?} is not a valid key name"
            )));
        }
        let ClaimedDirectory { incarnation, dir, .. } = claim;
        let tags = FrameTags::new(shard.key, incarnation)?;
        let directory = storage.open_dir(&dir).map_err(WalError::io("open", &dir))?;
        let origin = shard.origin(incarnation);
        let header = SegmentHeader {
            incarnation,
            ordinal: 0,
            first_seq: 0,
            origin_digest: Sha256::digest(origin.as_bytes()).into(),
        };
        let create = |name: &str| {
            let path = dir.join(name);
            let file = storage.create(&path).map_err(WalError::io("create", &path))?;
            Ok::<_, WalError>((file, path))
        };
        let (salts, salts_path) = create(SALTS_FILE)?;
        // Write this file before any space is allocated that a successor could release.
        if !(directory.has_shared_locks() && salts.try_lock().unwrap_or(false)) {
            create(UNLOCKED_FILE)?;
        }
        let path = dir.join(segment_name(0));
        let file = create_allocated(&**storage, &path, options.segment_bytes)?;
        file.sync().map_err(WalError::io("sync", &path))?;
        let first = Arc::new(Segment {
            ordinal: 0,
            bytes: options.segment_bytes,
            file,
        });
        let (tree, tree_path) = create(TREE_FILE)?;
        directory.sync().map_err(WalError::io("sync", &dir))?;

        let (watermark, hand_over) = (Arc::new(Watermark::default()), Arc::new(SegmentQueue::default()));
        let mut first_salts = Salts::new(Arc::clone(&salts), salts_path.clone())?;
        first_salts.salt(0, &watermark)?;
        let preparer = Preparer {
            storage: Arc::clone(storage),
            directory,
            dir: dir.clone(),
            segment_bytes: options.segment_bytes,
            segments_ahead: options.segments_ahead,
            next_ordinal: 1,
            queue: Arc::clone(&hand_over),
            watermark: Arc::clone(&watermark),
            in_progress: None,
        };
        let mut follower = Follower::new(
            origin.clone(),
            &header,
            Arc::clone(&first),
            preparer,
            TreeWriter::new(tree, tree_path),
            (salts, salts_path),
            (tags.clone(), ResumeKey::new(shard.key, incarnation)),
        );
        // If there is no space for a second segment, the log starts with the capacity of the first.
        while let crate::Preparation::Prepared = follower.prepare() {}
        let writer = Writer::new(
            dir.clone(),
            &header,
            first,
            first_salts,
            (hand_over, watermark),
            tags,
            options.max_record_bytes(),
        )?;
        Ok(Self {
            origin,
            incarnation,
            dir,
            writer,
            follower,
        })
    }
}

/// Creates the directory and makes its name and its parent's name durable.
fn make_directory(storage: &dyn Storage, shard_dir: &Path, dir: &Path) -> Result<(), WalError> {
    let parent = shard_dir
        .parent()
        .filter(|path| !path.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let above = storage.open_dir(parent).map_err(WalError::io("open", parent))?;
    match storage.create_dir(shard_dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other.map_err(WalError::io("create", shard_dir))?,
    }
    above.sync().map_err(WalError::io("sync", parent))?;
    let shard = storage
        .open_dir(shard_dir)
        .map_err(WalError::io("open", shard_dir))?;
    storage.create_dir(dir).map_err(WalError::io("create", dir))?;
    shard.sync().map_err(WalError::io("sync", shard_dir))
}
