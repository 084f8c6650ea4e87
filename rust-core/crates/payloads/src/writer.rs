//! Writes bodies next to the logs of one worker, on a separate thread.
//!
//! ```text
//! first body of a log   open payloads, open payload-index (O_EXCL), fsync directory
//! each body             pwrite sealed bytes, pwrite header, pwrite index entry
//! the ledger thread     fdatasync payloads, fdatasync payload-index, before it makes records durable
//! ```
//!
//! A record may state that the body is stored only after all three writes are done. A crash in between leaves a frame
//! that no index entry names. The file is never truncated, and a frame that was not written completely is overwritten.

use crate::{BodySlot, PayloadError, PayloadKey};
use proofgate_evidence::payloads::{
    HEADER_LEN, MAX_PAYLOAD_BYTES, PAYLOAD_INDEX_FILE, PAYLOADS_FILE, PayloadField, PayloadHeader,
};
use proofgate_evidence::{EvidenceError, Ulid};
use proofgate_wal::{Storage, StoredFile, UnsyncedFiles, write_full};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of logs whose files remain open: the current log, and earlier logs whose exchanges are
/// still open.
const MAX_OPEN_LOGS: usize = 4;

/// A body to be stored.
#[derive(Debug)]
pub struct Payload {
    /// The incarnation whose log holds the admission.
    pub incarnation: Ulid,
    /// Number of the admission in that log.
    pub seq: u64,
    /// Whether the body is the request or the response.
    pub field: PayloadField,
    /// The key of the exchange.
    pub key: PayloadKey,
    /// The body.
    pub body: Vec<u8>,
}

/// A writer of the bodies of one worker's exchanges.
pub struct PayloadWriter {
    storage: Arc<dyn Storage>,
    shard_dir: PathBuf,
    /// Prefix of the origins of the worker's logs: `<ledger>/<shard>`.
    shard: String,
    unsynced: Arc<UnsyncedFiles>,
    /// Open files of logs, with the most recently used log last.
    logs: Vec<LogFiles>,
}

/// The files of one log.
struct LogFiles {
    incarnation: Ulid,
    payloads: (Arc<dyn StoredFile>, PathBuf),
    index: (Arc<dyn StoredFile>, PathBuf),
    /// Offset of the next frame.
    end: u64,
}

impl PayloadWriter {
    /// Creates a writer for the logs of `shard_dir`. The writer adds written files that are not
    /// durable yet to `unsynced`.
    #[must_use]
    pub fn new(
        storage: Arc<dyn Storage>,
        shard_dir: &Path,
        (ledger, shard): (&str, u32),
        unsynced: Arc<UnsyncedFiles>,
    ) -> Self {
        Self {
            storage,
            shard_dir: shard_dir.to_owned(),
            shard: format!("{ledger}/{shard}"),
            unsynced,
            logs: Vec::new(),
        }
    }

    /// Seals a body and writes it. When this function returns, a record may state that the body is
    /// stored.
    ///
    /// # Errors
    /// [`PayloadError::TooLarge`]; [`PayloadError::Evidence`] when a file cannot be created or
    /// written. After lack of space ([`PayloadError::is_out_of_space`]), a later call may succeed;
    /// after any other failure, the caller must not write any more.
    pub fn store(&mut self, payload: Payload) -> Result<(), PayloadError> {
        let Payload {
            incarnation,
            seq,
            field,
            key,
            mut body,
        } = payload;
        if body.len() > MAX_PAYLOAD_BYTES {
            return Err(PayloadError::TooLarge { bytes: body.len() });
        }
        let origin = format!("{}/{incarnation}", self.shard);
        let place = BodySlot {
            origin: &origin,
            seq,
            field,
        };
        key.seal(&place, &mut body)?;
        let unsynced = Arc::clone(&self.unsynced);
        let log = self.log_files(incarnation)?;
        log.write(seq, field, &body)?;
        for (file, path) in [&log.payloads, &log.index] {
            unsynced.add(file, path);
        }
        Ok(())
    }

    /// Returns the files of a log, and creates them if they do not exist.
    fn log_files(&mut self, incarnation: Ulid) -> Result<&mut LogFiles, PayloadError> {
        let open = self.logs.iter().position(|log| log.incarnation == incarnation);
        let log = match open {
            Some(at) => self.logs.remove(at),
            None => LogFiles::open(&*self.storage, &self.shard_dir, incarnation)?,
        };
        if self.logs.len() >= MAX_OPEN_LOGS {
            self.logs.remove(0);
        }
        self.logs.push(log);
        let last = self.logs.len() - 1;
        Ok(&mut self.logs[last])
    }
}

impl LogFiles {
    fn open(storage: &dyn Storage, shard_dir: &Path, incarnation: Ulid) -> Result<Self, PayloadError> {
        let dir = shard_dir.join(incarnation.to_string());
        let directory = storage.open_dir(&dir).map_err(EvidenceError::io("open", &dir))?;
        let open = |name: &str| {
            let path = dir.join(name);
            let file = match storage.create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => storage
                    .open_writable(&path)
                    .map_err(EvidenceError::io("open", &path))?,
                other => other.map_err(EvidenceError::io("create", &path))?,
            };
            Ok::<_, PayloadError>((file, path))
        };
        let payloads = open(PAYLOADS_FILE)?;
        let index = open(PAYLOAD_INDEX_FILE)?;
        directory.sync().map_err(EvidenceError::io("sync", &dir))?;
        let end = payloads.0.len().map_err(EvidenceError::io("stat", &payloads.1))?;
        Ok(Self {
            incarnation,
            payloads,
            index,
            end,
        })
    }

    fn write(&mut self, seq: u64, field: PayloadField, sealed: &[u8]) -> Result<(), PayloadError> {
        let header = PayloadHeader {
            seq,
            field,
            // The length is at most `MAX_PAYLOAD_BYTES` plus a tag.
            sealed_len: u32::try_from(sealed.len())
                .map_err(|_| PayloadError::TooLarge { bytes: sealed.len() })?,
        };
        let beyond = || EvidenceError::Corruption {
            path: self.payloads.1.clone(),
            offset: self.end,
            reason: "the file has reached its maximum length".to_owned(),
        };
        let frame = HEADER_LEN as u64 + u64::from(header.sealed_len);
        let end = self.end.checked_add(frame).ok_or_else(beyond)?;
        let entry = field.entry_offset(seq).ok_or_else(beyond)?;
        let (file, path) = &self.payloads;
        write_full(&**file, sealed, self.end + HEADER_LEN as u64)
            .map_err(EvidenceError::io("write", path))?;
        write_full(&**file, &header.encode(), self.end).map_err(EvidenceError::io("write", path))?;
        let (index, path) = &self.index;
        let place = (self.end + 1).to_le_bytes();
        write_full(&**index, &place, entry).map_err(EvidenceError::io("write", path))?;
        self.end = end;
        Ok(())
    }
}
