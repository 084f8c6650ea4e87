//! Signers: another process holds the secret half of a key.

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
