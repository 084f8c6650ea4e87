//! The request that a log sends to a witness (c2sp.org/tlog-witness, `add-checkpoint`).
//!
//! ```text
//! old <decimal>
//! <base64 hash>*              consistency proof from the old size
//!
//! <checkpoint, verbatim>
//! ```

use crate::checkpoint::{parse_decimal, parse_hash};
use crate::{Hash, LedgerError, MAX_NOTE_BYTES};
use base64::{Engine, engine::general_purpose::STANDARD};

/// Most hashes in a proof: the length for a tree of 2^63 leaves. A client may not send more.
const MAX_HASHES: usize = 63;
/// Largest request that is parsed, in bytes.
pub const MAX_ADD_CHECKPOINT_BYTES: usize = MAX_NOTE_BYTES + 64 * (MAX_HASHES + 1);

/// A checkpoint, and the proof that it extends the log at `old_size` entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint<'a> {
    /// Size of the newest checkpoint that the witness has cosigned; 0 when it has cosigned none.
    pub old_size: u64,
    /// The consistency proof from `old_size` (RFC 9162 section 2.1.4.1).
    pub proof: Vec<Hash>,
    /// The signed note.
    pub note: &'a str,
}

impl<'a> AddCheckpoint<'a> {
    /// Encodes the body of the request.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = format!("old {}\n", self.old_size);
        for hash in &self.proof {
            text.push_str(&STANDARD.encode(hash));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(self.note);
        text
    }

    /// Parses a body. The note is returned verbatim, without parsing.
    ///
    /// # Errors
    /// [`LedgerError::RequestMalformed`] for any text that [`Self::encode`] would not write.
    pub fn parse(body: &'a str) -> Result<Self, LedgerError> {
        let malformed = LedgerError::RequestMalformed;
        if body.len() > MAX_ADD_CHECKPOINT_BYTES {
            return Err(malformed("larger than the limit"));
        }
        let (head, note) = body.split_once("\n\n").ok_or(malformed("no empty line"))?;
        let mut lines = head.split('\n');
        let old = lines
            .next()
            .and_then(|line| line.strip_prefix("old "))
            .and_then(parse_decimal)
            .ok_or(malformed("the first line is not \"old\" and a size"))?;
        let proof = lines
            .map(|line| parse_hash(line).ok_or(malformed("a hash is not 32 bytes of strict base64")))
            .collect::<Result<Vec<_>, _>>()?;
        if proof.len() > MAX_HASHES {
            return Err(malformed("more than 63 hashes"));
        }
        Ok(Self {
            old_size: old,
            proof,
            note,
        })
    }
}
