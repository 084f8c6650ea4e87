//! Whoever holds the secret half of a key: this process, or another one.

use crate::{LedgerError, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What a signer is asked to sign so that secrets can be derived of a key whose seed nobody here has. No note: it holds no
/// newline.
const DERIVATION: &[u8] = b"proofgate/v1/derivation\0";

/// Signs with an Ed25519 key (RFC 8032 section 5.1.6, without randomness) that it keeps to itself: a PKCS#11 token, a KMS.
pub trait Signer: Send + Sync {
    /// The public half, 32 bytes.
    fn public_key(&self) -> [u8; 32];

    /// The signature over a message, 64 bytes. It may wait, and must not do so for ever.
    ///
    /// # Errors
    /// [`SignError`]; nothing was signed then, or nobody will learn what.
    fn sign(&self, message: &[u8]) -> Result<[u8; 64], SignError>;
}

/// Why there is no signature: one sentence, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SignError(pub String);

impl SigningKey {
    /// A key that a signer holds. It is asked twice for one signature, of which the secrets of [`Self::derive`] are made:
    /// they are as secret as that signature, so a signer gives it to the ledger's own processes alone.
    ///
    /// # Errors
    /// [`LedgerError::Signer`] when it does not answer, holds another key, or signs one message in two ways.
    pub fn of_signer(public: &VerifyingKey, signer: Arc<dyn Signer>) -> Result<Self, LedgerError> {
        let refused = |why: &str| LedgerError::Signer(why.to_owned());
        let asked = || {
            signer
                .sign(DERIVATION)
                .map_err(|error| LedgerError::Signer(error.0))
        };
        if signer.public_key() != public.point() {
            return Err(refused("it holds another key than the one that is named"));
        }
        let (first, second) = (asked()?, asked()?);
        public
            .check_bytes(DERIVATION, &first)
            .map_err(|_| refused("its signature does not verify"))?;
        if first != second {
            return Err(refused(
                "it signs one message in two ways: Ed25519 without randomness is needed",
            ));
        }
        Ok(Self::away(public, signer, Sha256::digest(first).into()))
    }
}
