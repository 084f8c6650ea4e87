//! Checkpoints: signed statements of a log's size and root (c2sp.org/tlog-checkpoint).

use crate::{Hash, LedgerError, SigningKey, VerifyingKey, note::Note};
use base64::{Engine, engine::general_purpose::STANDARD};

/// A tree head with its origin. Size and root are signed together, because the root alone does not
/// commit to the size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Origin of the log: `<ledger>/<shard>/<incarnation>`.
    pub origin: String,
    /// Number of leaves covered.
    pub size: u64,
    /// RFC 6962 tree head of those leaves.
    pub root: Hash,
}

impl Checkpoint {
    /// Returns the signed text: origin, decimal size, base64 root, each with a newline.
    #[must_use]
    pub fn body(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root))
    }

    /// Signs the checkpoint with `key` under the name of the origin and returns the note.
    ///
    /// # Errors
    /// [`LedgerError::OriginNotBelowKey`] or [`LedgerError::KeyMalformed`] when the key is not valid for the origin;
    /// [`LedgerError::SignerFailed`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, LedgerError> {
        key.for_origin(&self.origin)?.sign_note(&self.body())
    }

    /// Parses a signed note and verifies that the ledger key signed it under the name of the note's
    /// origin.
    ///
    /// `key` is the key of the ledger or of one origin. The note's origin must be the key's name or
    /// below it. Signatures by other keys are ignored. A signature that claims to be by this key
    /// but does not verify makes the note invalid.
    ///
    /// # Errors
    /// Any error in the note, its checkpoint text or its signature.
    pub fn verify(note: &str, key: &VerifyingKey) -> Result<Self, LedgerError> {
        Ok(Self::verify_signer(note, key)?.0)
    }

    /// Same as [`Self::verify`], and also returns the key that signed, without its lineage and
    /// under the name of the origin. A succeeded key is not valid for a log that, according to the
    /// ULID in its origin, started after the key's validity ended.
    ///
    /// # Errors
    /// Same as [`Self::verify`]; [`LedgerError::KeySuperseded`].
    pub fn verify_signer(note: &str, key: &VerifyingKey) -> Result<(Self, VerifyingKey), LedgerError> {
        let note = Note::parse(note)?;
        let checkpoint = Self::parse_body(note.text)?;
        let at = start_time(&checkpoint.origin);
        let signer = note.verify_signer(&key.for_origin(&checkpoint.origin)?, at)?;
        Ok((checkpoint, signer))
    }

    /// Parses a signed note **without verifying it**: no signature is checked.
    ///
    /// # Errors
    /// Any error in the note's form or the checkpoint text.
    pub fn parse_unverified(note: &str) -> Result<Self, LedgerError> {
        Self::parse_body(Note::parse(note)?.text)
    }

    /// Parses a checkpoint text. Extension lines are refused, because Proofgate never writes them
    /// (metadata belongs in a leaf).
    fn parse_body(text: &str) -> Result<Self, LedgerError> {
        let (checkpoint, extensions) = Self::parse_extended(text)?;
        match extensions {
            "" => Ok(checkpoint),
            _ => Err(LedgerError::CheckpointMalformed("not exactly three lines")),
        }
    }

    /// Parses a checkpoint text, and also returns the extension lines after its third line.
    pub(crate) fn parse_extended(text: &str) -> Result<(Self, &str), LedgerError> {
        let malformed = LedgerError::CheckpointMalformed;
        let mut lines = text.splitn(4, '\n');
        let (Some(origin), Some(size), Some(root), Some(extensions)) =
            (lines.next(), lines.next(), lines.next(), lines.next())
        else {
            return Err(malformed("fewer than three lines"));
        };
        if origin.is_empty() {
            return Err(malformed("empty origin"));
        }
        let size = parse_decimal(size).ok_or(malformed("the size is not a decimal number"))?;
        let root = parse_hash(root).ok_or(malformed("the root is not 32 bytes of strict base64"))?;
        let checkpoint = Self {
            origin: origin.to_owned(),
            size,
            root,
        };
        Ok((checkpoint, extensions))
    }
}

/// Returns the start time of an origin's log in unix microseconds, from the first 48 bits of the
/// ULID in the origin's last part. `None` if that part is not a ULID, as for a log without
/// incarnations.
fn start_time(origin: &str) -> Option<u64> {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let (_, ulid) = origin.rsplit_once('/')?;
    if ulid.len() != 26 || ulid.as_bytes()[0] > b'7' {
        return None;
    }
    let mut milliseconds = 0u64;
    for (at, digit) in ulid.bytes().enumerate() {
        let digit = ALPHABET.iter().position(|known| *known == digit)? as u64;
        if at < 10 {
            milliseconds = milliseconds << 5 | digit;
        }
    }
    milliseconds.checked_mul(1000)
}

/// Parses a decimal number without sign or leading zeros.
pub(crate) fn parse_decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|c| c.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// Parses 32 bytes in strict standard base64.
pub(crate) fn parse_hash(text: &str) -> Option<Hash> {
    if text.len() != 44 {
        return None;
    }
    STANDARD.decode(text).ok()?.try_into().ok()
}
