//! Writes bodies beside the logs of one worker, on a thread of its own.
//!
//! ```text
//! first body of a log   open payloads, open payload-index (O_EXCL), fsync directory
//! each body             pwrite sealed bytes, pwrite header, pwrite index entry
//! the ledger thread     fdatasync payloads, fdatasync payload-index, before it makes records durable
//! ```
//!
//! Only when all three writes are done may a record say that the body is stored. What a crash cuts short is a frame that
//! no entry names. The file is never made shorter, and a frame that could not be written whole is written over.

use crate::{BodySlot, PayloadError, PayloadKey};
use proofgate_evidence::payloads::{
    HEADER_LEN, MAX_PAYLOAD_BYTES, PAYLOAD_INDEX_FILE, PAYLOADS_FILE, PayloadField, PayloadHeader,
};
use proofgate_evidence::{EvidenceError, Ulid};
use proofgate_wal::{Storage, StoredFile, UnsyncedFiles, write_full};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Logs whose files stay open: the one in service, and those before of which exchanges are still open.
const MAX_OPEN_LOGS: usize = 4;

/// A body that is to be stored.
#[derive(Debug)]
pub struct Payload {
    /// The log that holds the admission.
    pub incarnation: Ulid,
    /// Number of the admission in it.
    pub seq: u64,
    /// Which body.
    pub field: PayloadField,
    /// The key of the exchange.
    pub key: PayloadKey,
    /// The body.
    pub body: Vec<u8>,
}

/// Stores bodies of the exchanges of one worker.
pub struct PayloadWriter {
    storage: Arc<dyn Storage>,
    shard_dir: PathBuf,
    /// `<ledger>/<shard>`: what origins begin with.
    shard: String,
    unsynced: Arc<UnsyncedFiles>,
    /// The one used last is the last one.
    logs: Vec<LogFiles>,
}

/// The files of one log.
struct LogFiles {
    incarnation: Ulid,
    payloads: (Arc<dyn StoredFile>, PathBuf),
    index: (Arc<dyn StoredFile>, PathBuf),
    /// Where the next frame goes.
    end: u64,
}

impl PayloadWriter {
    /// Writes into the logs of `shard_dir`; what was written and is not durable yet is told in `unsynced`.
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

    /// Seals a body and writes it; a record may say so when this returns.
    ///
    /// # Errors
    /// [`PayloadError::TooLarge`]; [`PayloadError::Evidence`] when a file cannot be made or written: without space
    /// ([`PayloadError::is_out_of_space`]) a later one may find room, after any other failure nothing is to be written any
    /// more.
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

    /// The files of a log, made if need be.
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
            // At most MAX_PAYLOAD and a tag.
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
