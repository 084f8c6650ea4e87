//! Tenants that do not stand in the configuration, in parts that change one by one.

mod line;
mod shard;

use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use line::BadLine;
pub use shard::{Shard, ShardError, ShardFile, ShardedTenant};

use crate::AuthError;
use crate::tenants::KeyHash;

/// How many parts there are.
pub const SHARDS: usize = 32;

/// A tenant's name and the beginning of its SHA-256, by which it is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TenantName {
    pub(crate) text: Arc<str>,
    pub(crate) place: u64,
}

impl TenantName {
    pub(crate) fn new(text: Arc<str>) -> Self {
        let place = place_of(&text);
        TenantName { text, place }
    }
}

/// The first eight bytes of the SHA-256 of a tenant's name.
fn place_of(name: &str) -> u64 {
    crate::key_index::prefix(&Sha256::digest(name).into())
}

/// The shard of what has a digest that begins so: its first five bits.
fn shard_of(place: u64) -> usize {
    (place >> 59) as usize
}

/// Every shard as it is in service. A clone shares them.
#[derive(Debug, Clone)]
pub struct Shards([Arc<Shard>; SHARDS]);

impl Default for Shards {
    fn default() -> Self {
        let empty = Arc::new(Shard::default());
        Shards(std::array::from_fn(|_| Arc::clone(&empty)))
    }
}

impl Shards {
    /// Puts a shard in the place of the one with its number.
    ///
    /// # Panics
    /// When there is no such number.
    pub fn replace(&mut self, number: usize, shard: Arc<Shard>) -> Arc<Shard> {
        std::mem::replace(&mut self.0[number], shard)
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Shard>> {
        self.0.iter()
    }

    /// SHA-256 over a configuration's digest and those of all shards.
    pub fn digest_with(&self, configuration: &[u8; 32]) -> [u8; 32] {
        let mut digest = Sha256::new().chain_update(configuration);
        for shard in self.iter() {
            digest.update(shard.digest());
        }
        digest.finalize().into()
    }

    /// The tenant that owns the key with this digest: its key stands in one shard, and the tenant itself in another.
    ///
    /// # Errors
    /// [`AuthError::UnknownKey`], also when there is no such tenant; [`AuthError::ExpiredKey`].
    #[inline]
    pub(crate) fn owner(&self, hash: &KeyHash, now_unix_seconds: u64) -> Result<&ShardedTenant, AuthError> {
        let (name, place) = self.0[usize::from(hash[0] >> 3)].owner(hash, now_unix_seconds)?;
        self.named(name, place).ok_or(AuthError::UnknownKey)
    }

    #[inline]
    pub(crate) fn named(&self, name: &str, place: u64) -> Option<&ShardedTenant> {
        self.0[shard_of(place)].tenant(name, place)
    }
}

impl<'s> IntoIterator for &'s Shards {
    type Item = &'s Arc<Shard>;
    type IntoIter = std::slice::Iter<'s, Arc<Shard>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
