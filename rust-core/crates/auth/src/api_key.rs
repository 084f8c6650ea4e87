//! API keys, by their digests.

use sha2::{Digest, Sha256};

/// SHA-256 of an API key.
pub type KeyHash = [u8; 32];

/// The digest by which a key is stored.
pub fn hash_api_key(key: &[u8]) -> KeyHash {
    Sha256::digest(key).into()
}

/// One API key of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiKey {
    /// SHA-256 of the key.
    pub hash: KeyHash,
    /// The first second, since 1970, at which the key is refused; `None` means never.
    pub expires_at: Option<u64>,
}

/// A key without an end.
impl From<KeyHash> for ApiKey {
    fn from(hash: KeyHash) -> Self {
        ApiKey {
            hash,
            expires_at: None,
        }
    }
}
