//! The entries of scanned runs in a fixed amount of memory, which tenants share fairly.
//!
//! If there is no capacity for a new entry, the tenant that holds the most loses its oldest one;
//! this is the tenant of the new entry if it would then hold more than any other. Therefore a
//! tenant loses nothing to another tenant that holds more, and a single tenant can use the whole
//! capacity. Inserting and evicting an entry take constant time.

use proofgate_policy::Match;

use super::index::HashIndex;
use super::key::{RunKey, home_slot};
use super::occupancy::{OCCUPANCY_TENANT_BYTES, OCCUPANCY_UNIT_BYTES, TenantOccupancy};
use crate::tags::Tag;

/// Approximate overhead of an allocation, in bytes.
const ALLOCATION_OVERHEAD: usize = 16;

/// Bytes of matches that are counted as one unit.
const MATCH_UNIT_BYTES: usize = 64;

/// Number of entries for each tenant that is tracked separately.
const ENTRIES_PER_TENANT: usize = 16;

/// The number that all other tenants share if there are too many to track.
const SHARED_TENANT: u32 = 1;

/// Bytes of an index for each number.
const INDEX_ENTRY_BYTES: usize = 4 * size_of::<u32>();

/// Bytes of memory for each tenant.
const TENANT_BYTES: usize = size_of::<Tenant>() + 2 * OCCUPANCY_TENANT_BYTES + INDEX_ENTRY_BYTES;

/// Bytes of memory for each entry, without its matches.
pub(super) const ENTRY_BYTES: usize =
    size_of::<Entry>() + OCCUPANCY_UNIT_BYTES + INDEX_ENTRY_BYTES + TENANT_BYTES / ENTRIES_PER_TENANT;

/// Bytes of memory for an empty table.
pub(super) const BASE_BYTES: usize = TENANT_BYTES + 2 * OCCUPANCY_UNIT_BYTES;

#[derive(Default)]
struct Entry {
    key: RunKey,
    /// The matches, with offsets from the beginning of the run.
    matches: Box<[Match]>,
    /// The tenant's next newer entry or, for a free entry, the next free one.
    next: u32,
}

impl Entry {
    fn match_bytes(&self) -> usize {
        match self.matches.len() {
            0 => 0,
            count => count * size_of::<Match>() + ALLOCATION_OVERHEAD,
        }
    }

    fn units(&self) -> u32 {
        u32::try_from(self.match_bytes().div_ceil(MATCH_UNIT_BYTES)).unwrap_or(u32::MAX)
    }
}

#[derive(Default)]
struct Tenant {
    tag: Tag,
    /// The tenant's oldest entry; 0 for none.
    oldest: u32,
    /// The tenant's newest entry or, for a free tenant number, the next free one.
    newest: u32,
}

/// The number of entries and matches that fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capacity {
    pub(super) entries: usize,
    tenants: usize,
    units: usize,
}

impl Capacity {
    /// Splits this many bytes of memory: three quarters for entries, one quarter for their matches.
    pub(super) fn from_bytes(bytes: usize) -> Self {
        let entries = (bytes / 4 * 3).saturating_sub(BASE_BYTES) / ENTRY_BYTES;
        let entries = entries.min(u32::MAX as usize / 8);
        Self {
            entries,
            tenants: entries / ENTRIES_PER_TENANT + 1,
            units: (bytes / 4 / (MATCH_UNIT_BYTES + OCCUPANCY_UNIT_BYTES)).min(u32::MAX as usize / 8),
        }
    }
}

/// Entries, numbered from 1.
pub(super) struct Table {
    entries: Vec<Entry>,
    free_entry: u32,
    index: HashIndex,
    /// The first one is [`SHARED_TENANT`].
    tenants: Vec<Tenant>,
    free_tenant: u32,
    tenant_index: HashIndex,
    entry_holdings: TenantOccupancy,
    match_holdings: TenantOccupancy,
    match_bytes: usize,
}

impl Table {
    pub(super) fn with_capacity(capacity: Capacity) -> Self {
        let mut tenants = Vec::with_capacity(capacity.tenants);
        tenants.push(Tenant::default());
        Self {
            entries: Vec::with_capacity(capacity.entries),
            free_entry: 0,
            index: HashIndex::with_capacity(capacity.entries),
            tenants,
            free_tenant: 0,
            tenant_index: HashIndex::with_capacity(capacity.tenants),
            entry_holdings: TenantOccupancy::with_capacity(capacity.tenants, capacity.entries),
            match_holdings: TenantOccupancy::with_capacity(capacity.tenants, capacity.units),
            match_bytes: 0,
        }
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.tenants.capacity() * size_of::<Tenant>()
            + self.index.memory_bytes()
            + self.tenant_index.memory_bytes()
            + self.entry_holdings.memory_bytes()
            + self.match_holdings.memory_bytes()
            + self.match_bytes
    }

    /// Returns the matches found in a run, if it is stored.
    pub(super) fn find(&self, key: &RunKey) -> Option<&[Match]> {
        let entries = &self.entries;
        let is_it = |number| entry_of(entries, number).is_some_and(|entry| entry.key == *key);
        let number = self.index.find(key.home_slot(), is_it)?;
        entry_of(entries, number).map(|entry| &*entry.matches)
    }

    /// Stores the matches of a run that is not stored yet; returns the number of entries that were evicted for it.
    pub(super) fn insert(&mut self, key: RunKey, tenant: Tag, matches: &[Match]) -> u64 {
        let entry = Entry {
            key,
            matches: matches.into(),
            next: 0,
        };
        let units = entry.units();
        if units as usize > self.match_holdings.capacity() {
            return 0;
        }
        let mut forgotten = 0;
        let holder = self.find_tenant(tenant).unwrap_or(self.holder_for_new_tenant());
        loop {
            let of_matches = &self.match_holdings;
            let yielding = if self.entry_holdings.total() == self.entry_holdings.capacity() {
                self.entry_holdings.eviction_candidate(holder, 1)
            } else if of_matches.total() + units as usize > of_matches.capacity() {
                of_matches.eviction_candidate(holder, units)
            } else {
                break;
            };
            if !self.evict_oldest(yielding) {
                return forgotten;
            }
            forgotten += 1;
        }
        let holder = self.tenant_or_insert(tenant);
        self.match_bytes += entry.match_bytes();
        self.entry_holdings.add(holder, 1);
        self.match_holdings.add(holder, units);
        let number = self.insert_entry(entry);
        self.index.insert(key.home_slot(), number);
        if let Some(tenant) = self.tenants.get_mut(holder as usize - 1) {
            let newest = std::mem::replace(&mut tenant.newest, number);
            match tenant.oldest {
                0 => tenant.oldest = number,
                _ => {
                    if let Some(newest) = self.entries.get_mut(newest as usize - 1) {
                        newest.next = number;
                    }
                }
            }
        }
        forgotten
    }

    /// Stores an entry in a free slot; returns its number.
    fn insert_entry(&mut self, entry: Entry) -> u32 {
        let number = self.free_entry;
        match self.entries.get_mut((number as usize).wrapping_sub(1)) {
            Some(free) => {
                self.free_entry = free.next;
                *free = entry;
                number
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32
            }
        }
    }

    fn find_tenant(&self, tag: Tag) -> Option<u32> {
        let tenants = &self.tenants;
        self.tenant_index.find(home_slot(&tag), |number| {
            tenants
                .get(number as usize - 1)
                .is_some_and(|tenant| tenant.tag == tag)
        })
    }

    /// Returns the holder number for a tenant that has none: 0 if a number is available for it.
    fn holder_for_new_tenant(&self) -> u32 {
        let is_full = self.free_tenant == 0 && self.tenants.len() == self.tenants.capacity();
        if is_full { SHARED_TENANT } else { 0 }
    }

    /// Returns the number of a tenant, assigning one if any is available.
    fn tenant_or_insert(&mut self, tag: Tag) -> u32 {
        if let Some(number) = self.find_tenant(tag) {
            return number;
        }
        let tenant = Tenant {
            tag,
            ..Tenant::default()
        };
        let (is_full, mut number) = (self.holder_for_new_tenant() == SHARED_TENANT, self.free_tenant);
        match self.tenants.get_mut((number as usize).wrapping_sub(1)) {
            Some(free) => {
                self.free_tenant = free.newest;
                *free = tenant;
            }
            None if is_full => return SHARED_TENANT,
            None => {
                self.tenants.push(tenant);
                number = self.tenants.len() as u32;
            }
        }
        self.tenant_index.insert(home_slot(&tag), number);
        number
    }

    /// Evicts the oldest entry of a tenant, if it has one; returns whether it had one.
    fn evict_oldest(&mut self, holder: u32) -> bool {
        let Some(tenant) = self.tenants.get_mut((holder as usize).wrapping_sub(1)) else {
            return false;
        };
        let number = tenant.oldest;
        let Some(entry) = self.entries.get_mut((number as usize).wrapping_sub(1)) else {
            return false;
        };
        let (home_of_entry, units) = (entry.key.home_slot(), entry.units());
        self.match_bytes -= entry.match_bytes();
        entry.matches = Box::default();
        tenant.oldest = std::mem::replace(&mut entry.next, self.free_entry);
        self.free_entry = number;
        let entries = &self.entries;
        self.index.remove(home_of_entry, number, |number| {
            entry_of(entries, number).map_or(0, |entry| entry.key.home_slot())
        });
        self.entry_holdings.remove(holder, 1);
        self.match_holdings.remove(holder, units);
        if tenant.oldest == 0 {
            tenant.newest = 0;
            if holder != SHARED_TENANT {
                tenant.newest = std::mem::replace(&mut self.free_tenant, holder);
                let (home_of_tenant, tenants) = (home_slot(&tenant.tag), &self.tenants);
                self.tenant_index.remove(home_of_tenant, holder, |number| {
                    tenants
                        .get(number as usize - 1)
                        .map_or(0, |tenant| home_slot(&tenant.tag))
                });
            }
        }
        true
    }
}

fn entry_of(entries: &[Entry], number: u32) -> Option<&Entry> {
    entries.get((number as usize).wrapping_sub(1))
}
