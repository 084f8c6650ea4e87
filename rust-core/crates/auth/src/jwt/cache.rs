use std::fmt;
use std::ops::Range;

use crate::Credential;
use crate::digest::digests_equal;
use crate::shards::TenantName;

/// Number of tokens per slot.
const WAYS: usize = 4;
/// Number of slots; a power of two.
const SETS: usize = 1024;

/// A verified token in the cache.
#[derive(Debug, Clone)]
pub(super) struct VerifiedToken {
    /// SHA-256 of the token.
    pub(super) token: [u8; 32],
    /// The Unix seconds in which the token is valid. The start is needed because a clock that is
    /// set back may be before it.
    pub(super) valid_seconds: Range<u64>,
    pub(super) issuer: usize,
    /// The generation of the key set that verified the token.
    pub(super) generation: u64,
    /// The token's subject; `None` in an unused entry.
    pub(super) subject: Option<Subject>,
}

/// The tenant that a token names, which may have been removed since then, and the credential of the
/// token's subject.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) tenant: TenantName,
    pub(crate) credential: Credential,
}

const EMPTY: VerifiedToken = VerifiedToken {
    token: [0; 32],
    valid_seconds: 0..0,
    issuer: 0,
    generation: 0,
    subject: None,
};

/// The most recently verified tokens, in a fixed table of 4096 entries (500 KB). Only valid tokens
/// are inserted, so only the owner of a signing key can evict others.
pub(super) struct TokenCache {
    entries: Box<[[VerifiedToken; WAYS]]>,
    /// The way to overwrite if all ways of a slot are in use.
    next: usize,
}

impl TokenCache {
    pub(super) fn new() -> Self {
        TokenCache {
            entries: vec![[const { EMPTY }; WAYS]; SETS].into(),
            next: 0,
        }
    }

    /// Returns the subject of a token; `None` if its entry is missing or not live.
    pub(super) fn get(&self, token: &[u8; 32], is_live: impl Fn(&VerifiedToken) -> bool) -> Option<Subject> {
        self.entries[slot(token)]
            .iter()
            .find(|entry| is_live(entry) && digests_equal(&entry.token, token))
            .and_then(|entry| entry.subject.clone())
    }

    /// Inserts a token. It replaces an entry that is not live, if there is one.
    pub(super) fn insert(&mut self, verified: VerifiedToken, is_live: impl Fn(&VerifiedToken) -> bool) {
        let ways = &mut self.entries[slot(&verified.token)];
        let way = ways.iter().position(|entry| !is_live(entry)).unwrap_or(self.next);
        ways[way] = verified;
        self.next = (self.next + 1) % WAYS;
    }
}

/// Omits the entries, because there are many and they are not informative.
impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

fn slot(token: &[u8; 32]) -> usize {
    usize::from(u16::from_be_bytes([token[0], token[1]])) % SETS
}
