//! The `resume` file, which stores the point from which a successor resumes reading a log. With
//! this file, the cost of a restart does not grow with the log.
//!
//! The file holds the state after reading the log up to some record: the peaks of the tree, the
//! open exchanges, and the offset of the next frame. It is derived from the log, written after a
//! checkpoint that covers it, and authenticated with a key derived from the signing key. Someone
//! who can write to the volume can delete the file or restore an older version, but a successor
//! then only reads more records. The tree peaks in the file are nevertheless checked against the
//! signed checkpoint.

use crate::recovery::UnfinishedExchange;
use crate::storage::{Directory, Storage};
use crate::{WalError, checkpoint_file};
use aws_lc_rs::hmac;
use proofgate_evidence::read_full;
use proofgate_ledger::{Hash, SigningKey};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use ulid::Ulid;

/// Name of the resume file.
pub(crate) const RESUME_FILE: &str = "resume";
const TEMPORARY_FILE: &str = "resume.tmp";
const PURPOSE: &str = "proofgate/v1/resume";
/// Largest valid file. A million open exchanges take a tenth of this size.
const MAX_BYTES: u64 = 1 << 30;

/// The state after reading a log up to a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResumePoint {
    /// Number of records read.
    pub(crate) size: u64,
    /// Number of the first record in the segment that holds the next record; the segment file is named after it.
    pub(crate) segment: u64,
    /// Offset of the next frame in that segment.
    pub(crate) offset: u64,
    /// Payload CRC of the last record read.
    pub(crate) chain: u32,
    /// Peaks of the tree, oldest first.
    pub(crate) peaks: Vec<Hash>,
    /// Exchanges that are open at this point, including exchanges from the preceding log.
    pub(crate) open: Vec<UnfinishedExchange>,
    /// The log that this log continues.
    pub(crate) continues: Option<Ulid>,
    /// Whether this log has recorded the final size and root of its predecessor; true if it has no predecessor.
    pub(crate) settled: bool,
}

/// The key that authenticates the resume files of one incarnation.
#[derive(Clone)]
pub(crate) struct ResumeKey(hmac::Key);

impl ResumeKey {
    pub(crate) fn new(key: &SigningKey, incarnation: Ulid) -> Self {
        let mut secret = key.derive(PURPOSE, &incarnation.to_bytes());
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        secret.fill(0);
        Self(key)
    }
}

/// Replaces the resume file of an incarnation. After an error, the former file remains, or no file
/// passes verification.
///
/// # Errors
/// [`EvidenceError::Io`](crate::EvidenceError::Io).
pub(crate) fn write(
    storage: &dyn Storage,
    directory: &dyn Directory,
    dir: &Path,
    key: &ResumeKey,
    resume: &ResumePoint,
) -> Result<(), WalError> {
    let path = dir.join(RESUME_FILE);
    let mut bytes =
        serde_json::to_vec(resume).map_err(|error| WalError::io("encode", &path)(io::Error::other(error)))?;
    let tag = hmac::sign(&key.0, &bytes);
    bytes.extend_from_slice(tag.as_ref());
    checkpoint_file::replace_file(storage, directory, dir, (TEMPORARY_FILE, RESUME_FILE), &bytes)
}

/// Reads the resume file of an incarnation; `None` when no file passes verification.
///
/// # Errors
/// [`EvidenceError::Io`](crate::EvidenceError::Io) when the system cannot open or read the file.
pub(crate) fn read(
    storage: &dyn Storage,
    dir: &Path,
    key: &ResumeKey,
) -> Result<Option<ResumePoint>, WalError> {
    let path = dir.join(RESUME_FILE);
    let file = match storage.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(WalError::io("open", &path)(error)),
    };
    let len = file.len().map_err(WalError::io("stat", &path))?;
    let Some(len) = usize::try_from(len).ok().filter(|len| *len as u64 <= MAX_BYTES) else {
        return Ok(None);
    };
    let mut bytes = vec![0; len];
    let read = read_full(&*file, &mut bytes, 0).map_err(WalError::io("read", &path))?;
    let Some(at) = read.checked_sub(hmac::HMAC_SHA256.tag_len()) else {
        return Ok(None);
    };
    let (document, tag) = bytes[..read].split_at(at);
    if hmac::verify(&key.0, document, tag).is_err() {
        return Ok(None);
    }
    Ok(serde_json::from_slice(document).ok())
}
