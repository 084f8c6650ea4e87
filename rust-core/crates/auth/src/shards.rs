//! Tenants outside the configuration, in shards that change separately.
//!
//! The shard of a key or a tenant is not derived from its digest, which a tenant can choose: the
//! writer of the shards assigns it, and a [`PrefixIndex`] over all shards finds it.

mod line;
mod prefix_index;
mod shard;
mod tenant_name;

use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use line::LineError;
use prefix_index::PrefixIndex;
pub use shard::{Shard, ShardError, ShardFile, ShardedTenant, WellKnownKey};
pub(crate) use tenant_name::TenantName;
use tenant_name::hash_prefix_of;

use crate::AuthError;
use crate::api_key::KeyHash;
use crate::key_index::prefix;

/// The number of shards.
pub const SHARD_COUNT: usize = 32;

/// All active shards. A clone shares them.
#[derive(Debug, Clone)]
pub struct Shards {
    parts: [Arc<Shard>; SHARD_COUNT],
    keys: Arc<PrefixIndex>,
    tenants: Arc<PrefixIndex>,
}

impl Default for Shards {
    fn default() -> Self {
        let empty = Arc::new(Shard::default());
        Shards {
            parts: std::array::from_fn(|_| Arc::clone(&empty)),
            keys: Arc::default(),
            tenants: Arc::default(),
        }
    }
}

impl Shards {
    /// Returns the shards with some of them replaced, by shard number; unknown numbers are ignored.
    #[must_use]
    pub fn with_shards(&self, changed: impl IntoIterator<Item = (usize, Shard)>) -> Self {
        let mut parts = self.parts.clone();
        for (number, shard) in changed {
            if let Some(part) = parts.get_mut(number) {
                *part = Arc::new(shard);
            }
        }
        Shards {
            keys: Arc::new(PrefixIndex::new(parts.iter().map(|shard| shard.key_prefixes()))),
            tenants: Arc::new(PrefixIndex::new(
                parts.iter().map(|shard| shard.tenant_prefixes()),
            )),
            parts,
        }
    }

    /// Iterates over all shards, in the order of their numbers.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Shard>> {
        self.parts.iter()
    }

    /// Whether any shard has a tenant with this name.
    pub fn has_tenant(&self, tenant: &str) -> bool {
        self.find_tenant(tenant, hash_prefix_of(tenant)).is_some()
    }

    /// Returns the SHA-256 of a configuration's digest and the digests of all shards.
    pub fn digest_with(&self, configuration: &[u8; 32]) -> [u8; 32] {
        let mut digest = Sha256::new().chain_update(configuration);
        for shard in self.iter() {
            digest.update(shard.digest());
        }
        digest.finalize().into()
    }

    /// Returns the tenant that owns the key with this digest, and the key's name. The key and its
    /// tenant may be in different shards. If several shards contain the key, the first shard in
    /// which it has not expired applies.
    ///
    /// # Errors
    /// [`AuthError::UnknownKey`], also if the tenant does not exist; [`AuthError::ExpiredKey`].
    #[inline]
    pub(crate) fn owner(
        &self,
        hash: &KeyHash,
        now_unix_seconds: u64,
    ) -> Result<(&ShardedTenant, &str), AuthError> {
        let mut denial = AuthError::UnknownKey;
        for shard in self.keys.shards_with_prefix(prefix(hash)) {
            match self.parts[shard].owner(hash, now_unix_seconds) {
                Ok(key) => {
                    let tenant = self.find_tenant(key.tenant, key.hash_prefix);
                    return Ok((tenant.ok_or(AuthError::UnknownKey)?, key.key_name));
                }
                Err(AuthError::UnknownKey) => {}
                Err(other) => denial = other,
            }
        }
        Err(denial)
    }

    #[inline]
    pub(crate) fn find_tenant(&self, name: &str, place: u64) -> Option<&ShardedTenant> {
        self.tenants
            .shards_with_prefix(place)
            .find_map(|shard| self.parts[shard].tenant(name, place))
    }
}

impl<'s> IntoIterator for &'s Shards {
    type Item = &'s Arc<Shard>;
    type IntoIter = std::slice::Iter<'s, Arc<Shard>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
