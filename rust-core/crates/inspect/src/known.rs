//! Runs that were scanned before, and what was found in them.
//!
//! What a scan finds in a [run](crate::Run) depends on its text, its scope, the rules and those of them that take part for
//! the tenant, and on nothing else. All of that, and the tenant, are in the key of an entry. So what is known of a run is
//! what a scan of it would find; which message each match belongs to, and what that comes to, is judged anew each time.

mod holders;
mod index;
mod key;
mod table;

use proofgate_policy::{Match, Profile, Scope};

use crate::tags::{Tag, TagKind, Tagger};
pub(crate) use key::RunKey;
use table::{Capacity, Table};

/// A run with more matches is scanned each time.
const MAX_CACHED_MATCHES: usize = 64;

/// What is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanCacheCounts {
    /// Runs that were known.
    pub hits: u64,
    /// Runs that were scanned because they were not.
    pub misses: u64,
    /// Bytes of text that were known.
    pub hit_bytes: u64,
    /// Bytes of text that were scanned because they were not.
    pub miss_bytes: u64,
    /// Entries that made room for others.
    pub evictions: u64,
}

/// Runs that were scanned before, of all tenants. Where there is no room for a new one, the tenant that holds the most forgets its
/// oldest one: others lose nothing to one that sends more than they do.
pub struct ScanCache {
    /// `None`: nothing is kept.
    tagger: Option<Tagger>,
    /// Bytes that it may take.
    max_bytes: usize,
    capacity: Capacity,
    /// `None` until the first run is kept.
    table: Option<Table>,
    /// Kept from one hash of conditions to the next.
    buffer: Vec<u8>,
    pub(crate) counts: ScanCacheCounts,
}

impl ScanCache {
    /// Nothing known yet, in at most `most` bytes of memory, which are taken when the first run is kept.
    pub fn new(most: usize) -> Self {
        Self {
            tagger: Tagger::new(),
            max_bytes: most,
            capacity: Capacity::from_bytes(most),
            table: None,
            buffer: Vec::new(),
            counts: ScanCacheCounts::default(),
        }
    }

    /// Forgets all runs and gives their memory back. From now on it takes at most `most` bytes.
    pub fn reset(&mut self, most: usize) {
        self.max_bytes = most;
        self.capacity = Capacity::from_bytes(most);
        self.table = None;
    }

    /// Bytes of memory that it may take.
    pub fn most(&self) -> usize {
        self.max_bytes
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.table.as_ref().map_or(0, Table::memory_bytes)
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> ScanCacheCounts {
        std::mem::take(&mut self.counts)
    }

    /// What hashes the keys of runs; `None` if none are kept.
    pub(crate) fn tagger(&self) -> Option<&Tagger> {
        self.tagger.as_ref().filter(|_| self.capacity.entries > 0)
    }

    /// The hash of what a scan depends on beside its text, and of the tenant.
    pub(crate) fn conditions_tag(&mut self, profile: &Profile, scope: Scope, tenant: &str) -> Option<Tag> {
        // What comes first always has the same length.
        self.buffer.clear();
        profile.write_conditions(scope, &mut self.buffer);
        self.buffer.extend_from_slice(tenant.as_bytes());
        self.tagger.as_ref()?.tag(TagKind::Conditions, &self.buffer)
    }

    /// What was found in a run, if it is known.
    pub(crate) fn find(&self, key: &RunKey) -> Option<&[Match]> {
        self.table.as_ref()?.find(key)
    }

    /// Keeps what a scan that is done has found in a run of a tenant.
    pub(crate) fn insert(&mut self, key: RunKey, tenant: &str, matches: &[Match]) {
        if matches.len() > MAX_CACHED_MATCHES || self.find(&key).is_some() {
            return;
        }
        let tagger = self.tagger();
        let Some(tenant) = tagger.and_then(|tagger| tagger.tag(TagKind::Tenant, tenant.as_bytes())) else {
            return;
        };
        let capacity = self.capacity;
        let table = self.table.get_or_insert_with(|| Table::with_capacity(capacity));
        self.counts.evictions += table.insert(key, tenant, matches);
    }
}

#[cfg(test)]
#[path = "known/tests.rs"]
mod tests;
