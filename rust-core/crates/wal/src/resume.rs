//! The `resume` file: where a successor takes up reading a log, so that a restart costs the same whatever was recorded.
//!
//! It holds what reading the log up to some record comes to: the peaks of the tree, the exchanges that are open there,
//! and the place of the next frame. It is derived from the log, written behind a checkpoint that covers it, and
//! authenticated with a key derived from the signing key: who can write the volume can delete it, or put an older one
//! back, and both only make a successor read more. What it claims of the tree is compared with the checkpoint's
//! signature all the same.

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

/// Name of the file.
pub(crate) const RESUME_FILE: &str = "resume";
const TEMPORARY_FILE: &str = "resume.tmp";
const PURPOSE: &str = "proofgate/v1/resume";
/// A larger file is none of ours: a million open exchanges take a tenth of it.
const MAX_BYTES: u64 = 1 << 30;

/// What reading a log up to a record comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResumePoint {
    /// Records read.
    pub(crate) size: u64,
    /// Number of the first record in the segment where the next one is looked for; its file is named by it.
    pub(crate) segment: u64,
    /// Where the next frame starts in it.
    pub(crate) offset: u64,
    /// Payload CRC of the last record read.
    pub(crate) chain: u32,
    /// Peaks of the tree, the oldest first.
    pub(crate) peaks: Vec<Hash>,
    /// Exchanges that are open here, also such as were admitted in the log before and carried over.
    pub(crate) open: Vec<UnfinishedExchange>,
    /// The log that this one continues.
    pub(crate) continues: Option<Ulid>,
    /// Whether this one has told that one's final size and root; true where it continues none.
    pub(crate) settled: bool,
}

/// Authenticates the resume files of one incarnation.
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

/// Replaces the resume file of an incarnation. An error leaves the former one, or none that can be believed.
///
/// # Errors
/// [`WalError::Io`].
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

/// The resume file of an incarnation; `None` when there is none that can be believed.
///
/// # Errors
/// [`WalError::Io`] when the system cannot open or read it.
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
