use std::fmt;
use std::ops::Range;

use crate::Credential;
use crate::digest::digests_equal;
use crate::shards::TenantName;

/// How many tokens can have one slot in common.
const WAYS: usize = 4;
/// A power of two.
const SETS: usize = 1024;

/// A token that was verified.
#[derive(Debug, Clone)]
pub(super) struct VerifiedToken {
    /// SHA-256 of the token.
    pub(super) token: [u8; 32],
    /// The seconds since 1970 in which it is valid: a clock that is set back can come to before their beginning.
    pub(super) valid_seconds: Range<u64>,
    pub(super) issuer: usize,
    /// Of the key set that it was verified with.
    pub(super) generation: u64,
    /// Whom it is about; `None` in an entry that was never used.
    pub(super) subject: Option<Subject>,
}

/// The tenant that a token names, which may be gone by now, and what tells its subject from others.
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

/// The last tokens that were verified, in a fixed table of 4096 entries (500 KB). Only genuine tokens get in, so
/// nobody without a signing key can push others out.
pub(super) struct TokenCache {
    entries: Box<[[VerifiedToken; WAYS]]>,
    /// The way to overwrite when all of a slot are in use.
    next: usize,
}

impl TokenCache {
    pub(super) fn new() -> Self {
        TokenCache {
            entries: vec![[const { EMPTY }; WAYS]; SETS].into(),
            next: 0,
        }
    }

    /// Whom a token is about, if its entry still counts.
    pub(super) fn get(&self, token: &[u8; 32], is_live: impl Fn(&VerifiedToken) -> bool) -> Option<Subject> {
        self.entries[slot(token)]
            .iter()
            .find(|entry| is_live(entry) && digests_equal(&entry.token, token))
            .and_then(|entry| entry.subject.clone())
    }

    /// Remembers a token, in place of one that no longer counts if there is one.
    pub(super) fn insert(&mut self, verified: VerifiedToken, is_live: impl Fn(&VerifiedToken) -> bool) {
        let ways = &mut self.entries[slot(&verified.token)];
        let way = ways.iter().position(|entry| !is_live(entry)).unwrap_or(self.next);
        ways[way] = verified;
        self.next = (self.next + 1) % WAYS;
    }
}

/// Without the entries: they are many and tell nothing.
impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

fn slot(token: &[u8; 32]) -> usize {
    usize::from(u16::from_be_bytes([token[0], token[1]])) % SETS
}
