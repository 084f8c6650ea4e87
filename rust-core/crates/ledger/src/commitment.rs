//! Salted commitments to bodies: a record commits to a body without containing it.
//!
//! `HMAC-SHA256(salt, "proofgate/v1/<field>" ‖ 0x00 ‖ SHA-256(body))`. Anyone who has the 32-byte
//! random salt and the body can open the commitment; once the salt is erased, the commitment
//! reveals nothing about the body. Both commitments of an exchange use the salt of its *admission*
//! record, because a response is hashed while it streams, before its completion record has a
//! number. The field name makes the two commitments different. A denied request uses the salt of
//! its own record. The body is hashed without the salt, because a long body is hashed in pieces
//! before its record and the salt exist.

use crate::record::{Commitment, Record, SaltId};
use crate::{Hash, LedgerError};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

const DOMAIN: &[u8] = b"proofgate/v1/";
/// Domain of salt ids, short enough that it and the salt are hashed in one block.
const ID_DOMAIN: &[u8] = b"proofgate/v1/salt-id\0";

/// Returns the id by which an admission record names its salt: the first 8 bytes of
/// `SHA-256("proofgate/v1/salt-id" ‖ 0x00 ‖ salt)`. A changed salt is detected unless it has the
/// same id. The id does not reveal the salt.
#[must_use]
pub fn salt_id(salt: &[u8; 32]) -> SaltId {
    let digest = Sha256::new_with_prefix(ID_DOMAIN).chain_update(salt).finalize();
    let mut id = [0; 8];
    id.copy_from_slice(&digest[..8]);
    SaltId(id)
}

/// Computes the commitment to a whole body.
///
/// `field` is a constant of the record format (`request`, `response`, `received`) and holds no NUL.
#[must_use]
pub fn commit(salt: &[u8; 32], field: &str, body: &[u8]) -> Hash {
    let mut digest = BodyHasher::new();
    digest.update(body);
    SaltedCommitter::new(salt).commit(field, digest)
}

/// Verifies that the commitment in a record opens to `body`, and returns the name of that body's
/// field. A completion commits to the response, and to a request body that was still
/// [pending](crate::record::PendingBody) at admission.
///
/// # Errors
/// [`LedgerError::NoCommitment`] for a record without a commitment, [`LedgerError::CommitmentMismatch`] when body or
/// salt does not match.
pub fn reveal(record: &Record<'_>, salt: &[u8; 32], body: &[u8]) -> Result<&'static str, LedgerError> {
    reveal_digest(record, salt, &Sha256::digest(body).into())
}

/// Same as [`reveal`], for a body whose SHA-256 is known.
///
/// # Errors
/// Same as [`reveal`].
pub fn reveal_digest(
    record: &Record<'_>,
    salt: &[u8; 32],
    digest: &Hash,
) -> Result<&'static str, LedgerError> {
    let (field, commitment) = match record {
        Record::Admission(admission) => ("request", admission.request),
        Record::Completion(completion) => ("response", completion.response),
        Record::Rejection(rejection) => match rejection.request {
            Some(Commitment(request)) => ("request", request),
            None => return Err(LedgerError::NoCommitment),
        },
        _ => return Err(LedgerError::NoCommitment),
    };
    let salted = SaltedCommitter::new(salt);
    if salted.commit_digest(field, digest) == commitment {
        return Ok(field);
    }
    match record {
        Record::Completion(completion)
            if completion
                .received
                .is_some_and(|received| salted.commit_digest("received", digest) == received.request) =>
        {
            Ok("received")
        }
        _ => Err(LedgerError::CommitmentMismatch(field)),
    }
}

/// A hasher for a body that is read in pieces.
#[derive(Clone, Default)]
pub struct BodyHasher(Sha256);

impl std::fmt::Debug for BodyHasher {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("BodyDigest([redacted])")
    }
}

impl BodyHasher {
    /// Creates the hasher of an empty body.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next piece of the body.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }
}

/// A salt prepared once for all commitments of an exchange.
#[derive(Clone)]
pub struct SaltedCommitter(Hmac<Sha256>);

impl std::fmt::Debug for SaltedCommitter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Salted([redacted])")
    }
}

impl SaltedCommitter {
    /// Prepares the salt.
    #[must_use]
    pub fn new(salt: &[u8; 32]) -> Self {
        // A key of 32 bytes is shorter than the block, so HMAC pads it and never hashes or refuses
        // it.
        let mut key = [0u8; 64];
        key[..32].copy_from_slice(salt);
        Self(Hmac::new(&key.into()))
    }

    /// Computes the commitment to a hashed body under the name `field`.
    #[must_use]
    pub fn commit(&self, field: &str, body: BodyHasher) -> Hash {
        self.commit_digest(field, &body.0.finalize().into())
    }

    fn commit_digest(&self, field: &str, digest: &Hash) -> Hash {
        debug_assert!(!field.contains('\0'));
        let mut mac = self.0.clone();
        mac.update(DOMAIN);
        mac.update(field.as_bytes());
        mac.update(&[0]);
        mac.update(digest);
        mac.finalize().into_bytes().into()
    }
}
