//! The `.tlog-proof` file: one record's inclusion under one signed checkpoint (c2sp.org/tlog-proof@v1).
//!
//! ```text
//! c2sp.org/tlog-proof@v1
//! extra <base64, optional, not authenticated>
//! index <decimal>
//! <base64 hash>*              leaf upward
//!
//! <checkpoint, verbatim>
//! ```

use crate::checkpoint::{parse_decimal, parse_hash};
use crate::commitment::reveal_digest;
use crate::{
    Checkpoint, Hash, LedgerError, MAX_NOTE_BYTES, VerifyingKey, leaf_hash, record, verify_inclusion,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1";
/// Prefix of a salt in `extra`.
const SALT_PREFIX: &[u8] = b"proofgate/v1/salt\0";
/// Most hashes in a path: the length in a tree of 2^63 leaves.
const MAX_HASHES: usize = 63;
/// Largest proof file that is parsed, in bytes.
pub const MAX_TLOG_PROOF_BYTES: usize = 2 * MAX_NOTE_BYTES;

/// An inclusion proof, with the checkpoint against which it is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlogProof {
    /// Opaque data stored with the proof. It is not authenticated.
    pub extra: Option<Vec<u8>>,
    /// 0-based leaf index.
    pub index: u64,
    /// Inclusion path, leaf upward.
    pub hashes: Vec<Hash>,
    /// The signed checkpoint, verbatim.
    pub checkpoint: String,
}

impl TlogProof {
    /// Encodes the file's text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        if let Some(extra) = &self.extra {
            text.push_str(&format!("extra {}\n", STANDARD.encode(extra)));
        }
        text.push_str(&format!("index {}\n", self.index));
        for hash in &self.hashes {
            text.push_str(&STANDARD.encode(hash));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&self.checkpoint);
        text
    }

    /// Parses a proof file. The checkpoint is returned verbatim, without parsing.
    ///
    /// # Errors
    /// [`LedgerError::ProofMalformed`] for any text that [`Self::encode`] would not write.
    pub fn parse(text: &str) -> Result<Self, LedgerError> {
        let malformed = LedgerError::ProofMalformed;
        if text.len() > MAX_TLOG_PROOF_BYTES {
            return Err(malformed("larger than 128 KiB"));
        }
        let (head, checkpoint) = text.split_once("\n\n").ok_or(malformed("no blank line"))?;
        let mut lines = head.split('\n').peekable();
        if lines.next() != Some(FIRST_LINE) {
            return Err(malformed("the first line is not c2sp.org/tlog-proof@v1"));
        }
        let extra = match lines.peek().and_then(|line| line.strip_prefix("extra ")) {
            Some(body) => {
                lines.next();
                Some(
                    STANDARD
                        .decode(body)
                        .map_err(|_| malformed("extra is not strict base64"))?,
                )
            }
            None => None,
        };
        let index = lines
            .next()
            .and_then(|line| line.strip_prefix("index "))
            .and_then(parse_decimal)
            .ok_or(malformed("no index line"))?;
        let hashes = lines
            .map(|line| parse_hash(line).ok_or(malformed("a hash is not 32 bytes of strict base64")))
            .collect::<Result<Vec<_>, _>>()?;
        if hashes.len() > MAX_HASHES {
            return Err(malformed("more than 63 hashes"));
        }
        Ok(Self {
            extra,
            index,
            hashes,
            checkpoint: checkpoint.to_owned(),
        })
    }

    /// Puts the salt of the record's commitment into `extra`. The salt needs no authentication: it
    /// is correct if it opens the commitment, which the proof covers.
    pub fn set_salt(&mut self, salt: &[u8; 32]) {
        self.extra = Some([SALT_PREFIX, salt].concat());
    }

    /// Returns the salt in `extra`, if any.
    #[must_use]
    pub fn salt(&self) -> Option<[u8; 32]> {
        let salt = self.extra.as_deref()?.strip_prefix(SALT_PREFIX)?;
        salt.try_into().ok()
    }

    /// Verifies the proof, and that the commitment in `record` opens to `body`. Returns the name of
    /// that body's field.
    ///
    /// # Errors
    /// Same as [`Self::verify`]; [`LedgerError::NoSalt`]; same as [`crate::commitment::reveal`].
    pub fn reveal(
        &self,
        record: &[u8],
        key: &VerifyingKey,
        body: &[u8],
    ) -> Result<&'static str, LedgerError> {
        self.reveal_digest(record, key, &Sha256::digest(body).into())
    }

    /// Same as [`Self::reveal`], for a body whose SHA-256 is known.
    ///
    /// # Errors
    /// Same as [`Self::reveal`].
    pub fn reveal_digest(
        &self,
        record: &[u8],
        key: &VerifyingKey,
        digest: &Hash,
    ) -> Result<&'static str, LedgerError> {
        self.verify(record, key)?;
        let salt = self.salt().ok_or(LedgerError::NoSalt)?;
        reveal_digest(&record::parse(record)?, &salt, digest)
    }

    /// Verifies that `record` is, byte for byte, the leaf of this proof in a log of the ledger
    /// whose key is `key`.
    ///
    /// # Errors
    /// Any error in the checkpoint or the inclusion proof.
    pub fn verify(&self, record: &[u8], key: &VerifyingKey) -> Result<Checkpoint, LedgerError> {
        let checkpoint = Checkpoint::verify(&self.checkpoint, key)?;
        verify_inclusion(
            &leaf_hash(record),
            self.index,
            checkpoint.size,
            &self.hashes,
            &checkpoint.root,
        )?;
        Ok(checkpoint)
    }
}
