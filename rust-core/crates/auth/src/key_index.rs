use crate::AuthError;
use crate::api_key::KeyHash;
use crate::digest::digests_equal;

/// A key, and whom it belongs to.
#[derive(Debug)]
pub(crate) struct IndexedKey<O> {
    pub(crate) hash: KeyHash,
    pub(crate) expires_at: Option<u64>,
    pub(crate) owner: O,
}

/// Digests of keys, each with whom it belongs to; built once, never changed.
#[derive(Debug)]
pub(crate) struct KeyIndex<O> {
    /// The first eight bytes of every digest in `keys`, in the same order: a look-up touches little memory.
    prefixes: Box<[u64]>,
    /// Sorted by digest.
    keys: Box<[IndexedKey<O>]>,
}

impl<O> Default for KeyIndex<O> {
    fn default() -> Self {
        KeyIndex::new(Vec::new())
    }
}

impl<O> KeyIndex<O> {
    /// `keys` are sorted by digest, and none is there twice.
    pub(crate) fn new(keys: Vec<IndexedKey<O>>) -> Self {
        KeyIndex {
            prefixes: keys.iter().map(|key| prefix(&key.hash)).collect(),
            keys: keys.into(),
        }
    }

    /// The first eight bytes of every digest, ascending.
    pub(crate) fn prefixes(&self) -> &[u64] {
        &self.prefixes
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whose the key with this digest is. The search goes by the digest's prefix, of which an attacker can learn nothing
    /// about a key; the rest is compared in constant time.
    ///
    /// # Errors
    /// [`AuthError::UnknownKey`], or [`AuthError::ExpiredKey`] from the key's end on.
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

/// The first eight bytes of a digest.
pub(crate) fn prefix(hash: &KeyHash) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(first)
}
