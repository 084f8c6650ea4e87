//! Signers: another process that holds the secret half of a key.

/// A signer, such as a PKCS#11 token or a KMS: it signs with an Ed25519 key that never leaves it
/// (RFC 8032 section 5.1.6, without randomness).
pub trait Signer: Send + Sync {
    /// Returns the public half of the key, 32 bytes.
    fn public_key(&self) -> [u8; 32];

    /// Signs a message and returns the signature, 64 bytes. The call may block, but not forever.
    ///
    /// # Errors
    /// [`SignError`] when nothing was signed or the signature is lost.
    fn sign(&self, message: &[u8]) -> Result<[u8; 64], SignError>;
}

/// The reason why signing failed, as one sentence without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SignError(pub String);
