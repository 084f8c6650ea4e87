//! Look-up of tenants by name.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::key_index::prefix;

/// A tenant's name and its SHA-256 prefix, which is used for the look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TenantName {
    pub(crate) text: Arc<str>,
    pub(crate) hash_prefix: u64,
}

impl TenantName {
    pub(crate) fn new(text: Arc<str>) -> Self {
        let place = hash_prefix_of(&text);
        TenantName {
            text,
            hash_prefix: place,
        }
    }
}

/// Returns the first eight bytes of the SHA-256 of a tenant's name.
pub(super) fn hash_prefix_of(name: &str) -> u64 {
    prefix(&Sha256::digest(name).into())
}
