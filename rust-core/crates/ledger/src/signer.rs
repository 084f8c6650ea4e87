//! Signers: another process that holds the secret half of a key.

/// Signs with an Ed25519 key (RFC 8032 section 5.1.6, without randomness) that never leaves the signer, such as a
/// PKCS#11 token or a KMS.
pub trait Signer: Send + Sync {
    /// Returns the public half, 32 bytes.
    fn public_key(&self) -> [u8; 32];

    /// Signs a message and returns the signature, 64 bytes. The call may block, but not forever.
    ///
    /// # Errors
    /// [`SignError`]; then nothing was signed, or the signature is lost.
    fn sign(&self, message: &[u8]) -> Result<[u8; 64], SignError>;
}

/// Why signing failed: one sentence, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SignError(pub String);
