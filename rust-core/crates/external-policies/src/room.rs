//! The memory of requests that wait for policies, as a part of the worker's budget.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proofgate_base::memory::{Budget, Exhausted, MemoryReservation};

/// What all copies for policies take of the budget. A copy may outlive its request, in the hands of a policy that is
/// late, so who drops it gives its bytes back to a count, and the data-plane thread makes the share follow that.
pub struct HookRoom {
    share: RefCell<MemoryReservation>,
    taken: Arc<AtomicUsize>,
}

/// The bytes of one copy.
pub struct CopyPermit {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl HookRoom {
    pub fn new(budget: &Rc<Budget>) -> Self {
        HookRoom {
            share: RefCell::new(MemoryReservation::new(budget)),
            taken: Arc::default(),
        }
    }

    /// Room for a copy of so many bytes.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn take(&self, bytes: usize) -> Result<CopyPermit, Exhausted> {
        let all = self.taken.load(Ordering::Relaxed).saturating_add(bytes);
        self.share.borrow_mut().resize(all)?;
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Ok(CopyPermit {
            bytes,
            of: Arc::clone(&self.taken),
        })
    }

    /// Gives back what has been dropped.
    pub fn settle(&self) {
        // What becomes less is never refused.
        let _ = self.share.borrow_mut().resize(self.taken.load(Ordering::Relaxed));
    }
}

impl Drop for CopyPermit {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use prometheus_client::metrics::gauge::Gauge;

    use super::HookRoom;
    use proofgate_base::memory::{Budget, OWN};

    #[test]
    fn a_copy_counts_until_it_is_dropped_whatever_became_of_its_request() {
        let used = Gauge::default();
        let budget = Rc::new(Budget::new(400_000, used.clone()));
        let room = HookRoom::new(&budget);
        let (first, second) = (room.take(100_000).unwrap(), room.take(150_000).unwrap());
        assert_eq!(used.get() as usize, 250_000 - OWN);
        assert!(room.take(100_000).is_err());
        std::thread::spawn(move || drop(first)).join().unwrap();
        room.settle();
        assert_eq!(used.get() as usize, 150_000 - OWN);
        assert!(room.take(100_000).is_ok());
        drop(second);
        room.settle();
        assert_eq!(used.get(), 0);
    }
}
