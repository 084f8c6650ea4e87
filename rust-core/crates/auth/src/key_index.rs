use crate::AuthError;
use crate::api_key::KeyHash;
use crate::digest::digests_equal;

/// A key and its owner.
#[derive(Debug)]
pub(crate) struct IndexedKey<O> {
    pub(crate) hash: KeyHash,
    pub(crate) expires_at: Option<u64>,
    pub(crate) owner: O,
}

/// Key digests with their owners; immutable after construction.
#[derive(Debug)]
pub(crate) struct KeyIndex<O> {
    /// The first eight bytes of every digest in `keys`, in the same order, so that a look-up reads
    /// little memory.
    prefixes: Box<[u64]>,
    /// The keys, sorted by digest.
    keys: Box<[IndexedKey<O>]>,
}

impl<O> Default for KeyIndex<O> {
    fn default() -> Self {
        KeyIndex::new(Vec::new())
    }
}

impl<O> KeyIndex<O> {
    /// Creates an index of `keys`, which must be sorted by digest and have no duplicates.
    pub(crate) fn new(keys: Vec<IndexedKey<O>>) -> Self {
        KeyIndex {
            prefixes: keys.iter().map(|key| prefix(&key.hash)).collect(),
            keys: keys.into(),
        }
    }

    /// Returns the first eight bytes of every digest, in ascending order.
    pub(crate) fn prefixes(&self) -> &[u64] {
        &self.prefixes
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the owner of the key with this digest. The search uses the digest's prefix, which
    /// reveals nothing about a key to an attacker; the rest is compared in constant time.
    ///
    /// # Errors
    /// [`AuthError::UnknownKey`], or [`AuthError::ExpiredKey`] after the key's expiry.
    pub(crate) fn owner(&self, hash: &KeyHash, now_unix_seconds: u64) -> Result<&O, AuthError> {
        let wanted = prefix(hash);
        let first = self.prefixes.partition_point(|prefix| *prefix < wanted);
        let same_prefix = self.prefixes[first..]
            .iter()
            .take_while(|prefix| **prefix == wanted)
            .count();
        let key = self.keys[first..first + same_prefix]
            .iter()
            .find(|key| digests_equal(&key.hash, hash))
            .ok_or(AuthError::UnknownKey)?;
        match key.expires_at {
            Some(end) if now_unix_seconds >= end => Err(AuthError::ExpiredKey),
            _ => Ok(&key.owner),
        }
    }
}

/// Returns the first eight bytes of a digest.
pub(crate) fn prefix(hash: &KeyHash) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(first)
}
