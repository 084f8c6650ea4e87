//! Finding a key.

use crate::config::KeyId;
use std::hash::{BuildHasherDefault, Hasher};

/// From a tenant's key to its subject.
pub(super) type KeyMap = std::collections::HashMap<u64, u32, BuildHasherDefault<KeyHasher>>;

pub(super) fn key_index(tenant: u32, key: KeyId) -> u64 {
    u64::from(tenant) << 32 | u64::from(u32::from_be_bytes(key.to_bytes()))
}

/// Spreads one number. Keys are digests of secrets that the operator gave out, so nobody chooses them to collide.
#[derive(Debug, Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }
}
