//! The memory of requests that wait for external policies, as a part of the worker's budget.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proofgate_base::memory::{MemoryBudget, MemoryExhausted, MemoryReservation};

/// The budget reservation for all copies made for policies. A copy can outlive its request while a late policy holds
/// it. Dropping a copy therefore only lowers a shared count, and the data-plane thread shrinks the reservation to it.
pub struct PolicyCopyMemory {
    share: RefCell<MemoryReservation>,
    used_bytes: Arc<AtomicUsize>,
}

/// The reservation of one copy.
pub struct CopyPermit {
    bytes: usize,
    total_used: Arc<AtomicUsize>,
}

impl PolicyCopyMemory {
    pub fn new(budget: &Rc<MemoryBudget>) -> Self {
        PolicyCopyMemory {
            share: RefCell::new(MemoryReservation::new(budget)),
            used_bytes: Arc::default(),
        }
    }

    /// Reserves memory for a copy of `bytes` bytes.
    ///
    /// # Errors
    /// [`MemoryExhausted`] if the budget has no capacity for it.
    pub fn reserve(&self, bytes: usize) -> Result<CopyPermit, MemoryExhausted> {
        let all = self.used_bytes.load(Ordering::Relaxed).saturating_add(bytes);
        self.share.borrow_mut().resize(all)?;
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(CopyPermit {
            bytes,
            total_used: Arc::clone(&self.used_bytes),
        })
    }

    /// Shrinks the reservation to the copies that still exist.
    pub fn shrink_reservation(&self) {
        // Shrinking never fails.
        let _ = self
            .share
            .borrow_mut()
            .resize(self.used_bytes.load(Ordering::Relaxed));
    }
}

impl Drop for CopyPermit {
    fn drop(&mut self) {
        self.total_used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use prometheus_client::metrics::gauge::Gauge;

    use super::PolicyCopyMemory;
    use proofgate_base::memory::{MemoryBudget, UNRESERVED_BYTES};

    #[test]
    fn a_copy_counts_until_it_is_dropped_whatever_became_of_its_request() {
        let used = Gauge::default();
        let budget = Rc::new(MemoryBudget::new(400_000, used.clone()));
        let room = PolicyCopyMemory::new(&budget);
        let (first, second) = (room.reserve(100_000).unwrap(), room.reserve(150_000).unwrap());
        assert_eq!(used.get() as usize, 250_000 - UNRESERVED_BYTES);
        assert!(room.reserve(100_000).is_err());
        std::thread::spawn(move || drop(first)).join().unwrap();
        room.shrink_reservation();
        assert_eq!(used.get() as usize, 150_000 - UNRESERVED_BYTES);
        assert!(room.reserve(100_000).is_ok());
        drop(second);
        room.shrink_reservation();
        assert_eq!(used.get(), 0);
    }
}
