//! API keys, represented by their digests.

use std::sync::Arc;

use sha2::{Digest, Sha256};

/// SHA-256 of an API key.
pub type KeyHash = [u8; 32];

/// Returns the digest under which a key is stored.
pub fn hash_api_key(key: &[u8]) -> KeyHash {
    Sha256::digest(key).into()
}

/// One API key of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// SHA-256 of the key.
    pub hash: KeyHash,
    /// Unix seconds from which the key is refused; `None`: the key never expires.
    pub expires_at: Option<u64>,
    /// The tenant's name for the key, as in records; `None`: the key has no name.
    pub name: Option<Arc<str>>,
}

/// Creates a key without an expiry and without a name.
impl From<KeyHash> for ApiKey {
    fn from(hash: KeyHash) -> Self {
        ApiKey {
            hash,
            expires_at: None,
            name: None,
        }
    }
}
