//! Copies of relayed bodies, and shared memory limits for them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A memory limit for all copies of a kind.
pub struct CopyPool {
    used: AtomicUsize,
    /// The limit in bytes; a tenant's limit changes when the settings are reloaded.
    capacity: AtomicUsize,
    /// The pool that contains this one; `None` for the whole.
    parent: Option<Arc<CopyPool>>,
}

impl CopyPool {
    pub fn new(most: usize) -> Self {
        CopyPool {
            used: AtomicUsize::new(0),
            capacity: AtomicUsize::new(most),
            parent: None,
        }
    }

    /// Creates a pool of at most `most` bytes that is part of `whole`.
    fn with_parent(whole: &Arc<CopyPool>, most: usize) -> Self {
        CopyPool {
            parent: Some(Arc::clone(whole)),
            ..CopyPool::new(most)
        }
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    fn most(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Whether `bytes` more are currently available.
    pub fn has_capacity(&self, bytes: usize) -> bool {
        self.checked_use(self.used(), bytes).is_some()
            && self.parent.as_ref().is_none_or(|whole| whole.has_capacity(bytes))
    }

    fn checked_use(&self, taken: usize, bytes: usize) -> Option<usize> {
        taken.checked_add(bytes).filter(|taken| *taken <= self.most())
    }

    fn try_acquire(&self, bytes: usize) -> bool {
        let fit = |taken| self.checked_use(taken, bytes);
        let updated = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fit);
        if updated.is_err() {
            return false;
        }
        let taken = self.parent.as_ref().is_none_or(|whole| whole.try_acquire(bytes));
        if !taken {
            self.used.fetch_sub(bytes, Ordering::AcqRel);
        }
        taken
    }

    fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
        if let Some(whole) = &self.parent {
            whole.release(bytes);
        }
    }
}

/// A reservation of bytes or slots of a pool, released on drop.
pub struct CopyPermit {
    pool: Arc<CopyPool>,
    amount: usize,
}

impl CopyPermit {
    /// Reserves `taken`; `None` if the pool has less capacity.
    pub fn new(room: Arc<CopyPool>, taken: usize) -> Option<Self> {
        room.try_acquire(taken).then(|| CopyPermit {
            pool: room,
            amount: taken,
        })
    }
}

impl Drop for CopyPermit {
    fn drop(&mut self) {
        self.pool.release(self.amount);
    }
}

/// A pool with a limit for each tenant, so that capacity is left for others.
pub struct TenantSharedPool {
    total: Arc<CopyPool>,
    tenant_pools: RefCell<HashMap<Arc<str>, Arc<CopyPool>>>,
}

/// The number of tenants from which unused tenant pools are removed.
const PRUNE_THRESHOLD: usize = 256;

impl TenantSharedPool {
    pub fn new(most: usize) -> Self {
        TenantSharedPool {
            total: Arc::new(CopyPool::new(most)),
            tenant_pools: RefCell::default(),
        }
    }

    /// Returns the bytes in use by all tenants.
    pub fn used(&self) -> usize {
        self.total.used()
    }

    /// Returns the pool of a tenant: half of the total, or `least` if that is more. The limit also
    /// applies to existing copies.
    pub fn tenant_pool(&self, tenant: &Arc<str>, least: usize) -> Arc<CopyPool> {
        let mut parts = self.tenant_pools.borrow_mut();
        let most = (self.total.most() / 2).max(least);
        if let Some(part) = parts.get(tenant) {
            part.capacity.store(most, Ordering::Relaxed);
            return Arc::clone(part);
        }
        if parts.len() >= PRUNE_THRESHOLD {
            parts.retain(|_, part| Arc::strong_count(part) > 1);
        }
        let part = Arc::new(CopyPool::with_parent(&self.total, most));
        parts.insert(Arc::clone(tenant), Arc::clone(&part));
        part
    }
}

/// The minimum growth of a copy, in bytes.
pub const MIN_GROWTH: usize = 4096;

/// A copy of relayed bytes, as long as the pool has capacity.
pub struct BoundedCopy {
    bytes: Vec<u8>,
    /// Bytes reserved from the pool.
    reserved: usize,
    /// Maximum length in bytes.
    max_bytes: usize,
    /// Whether more bytes than the maximum arrived.
    pub is_truncated: bool,
    /// Whether the pool had no capacity for it.
    pub is_dropped: bool,
    pool: Arc<CopyPool>,
}

impl BoundedCopy {
    pub fn new(most: usize, room: Arc<CopyPool>) -> Self {
        BoundedCopy {
            bytes: Vec::new(),
            reserved: 0,
            max_bytes: most,
            is_truncated: false,
            is_dropped: false,
            pool: room,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the bytes; their reservation is released when the copy is dropped.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Appends relayed bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.is_dropped {
            return;
        }
        let fitting = bytes.len().min(self.max_bytes - self.bytes.len());
        self.is_truncated |= fitting < bytes.len();
        let length = self.bytes.len() + fitting;
        if length > self.reserved {
            let wanted = length.max(self.reserved * 2).max(MIN_GROWTH).min(self.max_bytes);
            if !self.pool.try_acquire(wanted - self.reserved) {
                self.is_dropped = true;
                self.discard();
                return;
            }
            self.reserved = wanted;
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(&bytes[..fitting]);
    }

    /// Reserves at least [`MIN_GROWTH`], even for a short copy: the number of copies without a
    /// reservation would be unlimited.
    pub fn reserve_minimum(&mut self) {
        let missing = MIN_GROWTH.saturating_sub(self.reserved);
        if self.is_dropped || missing == 0 {
            return;
        }
        match self.pool.try_acquire(missing) {
            true => self.reserved = MIN_GROWTH,
            false => {
                self.is_dropped = true;
                self.discard();
            }
        }
    }

    /// Releases the memory; no more bytes are appended.
    pub fn discard(&mut self) {
        self.bytes = Vec::new();
        self.max_bytes = 0;
        self.pool.release(std::mem::take(&mut self.reserved));
    }
}

impl Drop for BoundedCopy {
    fn drop(&mut self) {
        self.discard();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_holds_what_came_up_to_its_bound_and_says_so() {
        let room = Arc::new(CopyPool::new(1 << 20));
        let mut copy = BoundedCopy::new(10_000, Arc::clone(&room));
        for piece in [&[1; 6000][..], &[2; 3000], &[3; 2000], &[4; 5]] {
            copy.append(piece);
        }
        assert!(copy.is_truncated && !copy.is_dropped);
        assert_eq!((copy.bytes().len(), copy.bytes()[9_999]), (10_000, 3));
        assert_eq!(room.used(), 10_000);
        drop(copy);
        assert_eq!(room.used(), 0);
    }

    #[test]
    fn a_part_grows_with_the_largest_that_it_must_hold_and_counts_what_it_holds_already() {
        let (rooms, tenant) = (TenantSharedPool::new(1000), Arc::from("acme"));
        let small = CopyPermit::new(rooms.tenant_pool(&tenant, 10), 400);
        assert!(CopyPermit::new(rooms.tenant_pool(&tenant, 10), 200).is_none());
        // After a reload that changed the largest size: up, and down again.
        assert!(small.is_some() && CopyPermit::new(rooms.tenant_pool(&tenant, 600), 300).is_none());
        let more = CopyPermit::new(rooms.tenant_pool(&tenant, 600), 200);
        assert!(more.is_some() && CopyPermit::new(rooms.tenant_pool(&tenant, 10), 1).is_none());
        assert!(CopyPermit::new(rooms.tenant_pool(&Arc::from("globex"), 10), 400).is_some());
        drop((small, more));
        assert_eq!(rooms.used(), 0);
        assert!(CopyPermit::new(rooms.tenant_pool(&tenant, 10), 501).is_none());
    }

    #[test]
    fn a_copy_that_takes_the_least_takes_it_once_and_is_lost_without_room() {
        let room = Arc::new(CopyPool::new(2 * MIN_GROWTH));
        let mut copies = [0, 100, MIN_GROWTH + 1].map(|most| BoundedCopy::new(most, Arc::clone(&room)));
        copies[1].append(&[1; 100]);
        for (copy, taken) in copies
            .iter_mut()
            .zip([MIN_GROWTH + 100, 2 * MIN_GROWTH, 2 * MIN_GROWTH])
        {
            copy.reserve_minimum();
            copy.reserve_minimum();
            assert_eq!(room.used(), taken);
        }
        assert_eq!(
            copies.each_ref().map(|copy| copy.is_dropped),
            [false, false, true]
        );
        assert_eq!(copies[1].bytes(), [1; 100]);
        drop(copies);
        assert_eq!(room.used(), 0);
    }

    #[test]
    fn a_part_of_a_room_is_taken_from_both_or_from_neither() {
        let whole = Arc::new(CopyPool::new(100));
        let [one, other] = [60, 60].map(|most| Arc::new(CopyPool::with_parent(&whole, most)));
        assert!(one.try_acquire(60) && !one.has_capacity(1) && !one.try_acquire(1));
        assert!(other.has_capacity(40) && !other.has_capacity(41) && !other.try_acquire(50));
        assert_eq!((one.used(), other.used(), whole.used()), (60, 0, 60));
        one.release(60);
        assert!(other.try_acquire(60));
        assert_eq!((one.used(), other.used(), whole.used()), (0, 60, 60));
    }

    #[test]
    fn copies_without_room_are_lost_and_leave_theirs_to_others() {
        let room = Arc::new(CopyPool::new(MIN_GROWTH + 100));
        let mut one = BoundedCopy::new(1 << 20, Arc::clone(&room));
        let mut other = BoundedCopy::new(1 << 20, Arc::clone(&room));
        one.append(b"one");
        other.append(b"other");
        assert!(!one.is_dropped && other.is_dropped && other.bytes().is_empty());
        assert!(room.has_capacity(100) && !room.has_capacity(101));
        one.append(&[0; 2 * MIN_GROWTH]);
        assert!(one.is_dropped);
        assert_eq!(room.used(), 0);
        one.append(b"more");
        assert_eq!(room.used(), 0);
    }
}
