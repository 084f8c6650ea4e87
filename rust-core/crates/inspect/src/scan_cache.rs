//! Scanned runs, and the matches found in them.
//!
//! The matches of a scan in a [run](crate::Run) depend only on its text, its scope, the rules, and which rules are active
//! for the tenant. The key of an entry covers all of these, and the tenant. A cached entry therefore equals the result of a
//! scan. Which message each match belongs to, and the resulting decision, are determined again each time.

mod index;
mod key;
mod occupancy;
mod table;

use proofgate_policy::{Match, Profile, Scope};

use crate::tags::{Tag, TagKind, Tagger};
pub(crate) use key::RunKey;
use table::{Capacity, Table};

/// A run with more matches is not cached.
const MAX_CACHED_MATCHES: usize = 64;

/// Counters of the scan cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanCacheCounts {
    /// Runs found in the cache.
    pub hits: u64,
    /// Runs that were scanned because they were not in the cache.
    pub misses: u64,
    /// Bytes of text found in the cache.
    pub hit_bytes: u64,
    /// Bytes of text that were scanned because they were not in the cache.
    pub miss_bytes: u64,
    /// Entries that were evicted for others.
    pub evictions: u64,
}

/// A cache of scanned runs for all tenants. If it is full, the tenant that holds the most loses its oldest entry, so that a
/// tenant loses nothing to one that sends more.
pub struct ScanCache {
    /// `None`: nothing is cached.
    tagger: Option<Tagger>,
    /// Maximum memory in bytes.
    max_bytes: usize,
    capacity: Capacity,
    /// `None` until the first run is cached.
    table: Option<Table>,
    /// Reused for hashing conditions.
    buffer: Vec<u8>,
    pub(crate) counts: ScanCacheCounts,
}

impl ScanCache {
    /// Creates an empty cache of at most `most` bytes, which are allocated when the first run is cached.
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

    /// Removes all runs, releases their memory, and sets the maximum memory to `most` bytes.
    pub fn reset(&mut self, most: usize) {
        self.max_bytes = most;
        self.capacity = Capacity::from_bytes(most);
        self.table = None;
    }

    /// Returns the maximum memory in bytes.
    pub fn max_memory_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.table.as_ref().map_or(0, Table::memory_bytes)
    }

    /// Returns the counts since the last call, and resets them.
    pub fn take_counts(&mut self) -> ScanCacheCounts {
        std::mem::take(&mut self.counts)
    }

    /// Returns the hasher for the keys of runs; `None` if nothing is cached.
    pub(crate) fn tagger(&self) -> Option<&Tagger> {
        self.tagger.as_ref().filter(|_| self.capacity.entries > 0)
    }

    /// Returns the hash of the tenant and of everything besides the text that a scan depends on.
    pub(crate) fn conditions_tag(&mut self, profile: &Profile, scope: Scope, tenant: &str) -> Option<Tag> {
        // The first part always has the same length.
        self.buffer.clear();
        profile.write_conditions(scope, &mut self.buffer);
        self.buffer.extend_from_slice(tenant.as_bytes());
        self.tagger.as_ref()?.tag(TagKind::Conditions, &self.buffer)
    }

    /// Returns the matches found in a run, if it is cached.
    pub(crate) fn find(&self, key: &RunKey) -> Option<&[Match]> {
        self.table.as_ref()?.find(key)
    }

    /// Caches the matches that a completed scan found in a run of a tenant.
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
#[path = "scan_cache/tests.rs"]
mod tests;
