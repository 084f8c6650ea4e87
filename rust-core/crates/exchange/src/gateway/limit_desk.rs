//! What is left of each tenant's limits.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use proofgate_auth::Shards;
use proofgate_base::clock::ClockStep;
use proofgate_limits::Limiter;
use proofgate_upstream::catalog::Catalog;

use crate::waiting::Queues;

/// The limiter, the requests that wait for it, and whether anybody has to write its limits.
pub struct LimitDesk {
    pub limiter: RefCell<Limiter>,
    /// Requests that wait for what others have reserved.
    pub queues: Rc<Queues>,
    /// Whether limits have changed since [`LimitDesk::take_changed`].
    changed: Cell<bool>,
}

impl LimitDesk {
    pub(crate) fn new(limiter: Limiter, queues: Queues) -> Self {
        LimitDesk {
            limiter: RefCell::new(limiter),
            queues: Rc::new(queues),
            changed: Cell::new(false),
        }
    }

    /// Whether limits have changed since the last call.
    pub fn take_changed(&self) -> bool {
        self.changed.take()
    }

    /// Follows the step of the system's clock.
    pub(crate) fn follow(&self, step: ClockStep) {
        let mut limiter = self.limiter.borrow_mut();
        if step.turns_back {
            limiter.turn_back(step.to);
        } else if !step.is_back() {
            limiter.leap(step.from, step.to);
        }
    }

    /// Applies the limits of all tenants.
    pub(crate) fn set_all(&self, catalog: &Catalog, shards: &Shards) {
        let limits = catalog.terms.limits_of_all(shards);
        self.limiter.borrow_mut().set_limits(&limits);
        self.changed.set(true);
    }

    /// Applies the limits of the tenants in `after`, where only those of replaced shards can have others than in `before`.
    pub(crate) fn set_changed_shards(&self, catalog: &Catalog, before: &Shards, after: &Shards) {
        let mut limiter = self.limiter.borrow_mut();
        for (old, new) in before.iter().zip(after) {
            if Arc::ptr_eq(old, new) {
                continue;
            }
            // One that is in another shard than before is still there.
            for gone in old.tenants().iter().filter(|tenant| !after.has(&tenant.name)) {
                limiter.remove_tenant(&gone.name);
            }
            for tenant in new.tenants() {
                match catalog.terms.limits_of(tenant) {
                    Some(limits) => {
                        let is_new = limiter.find(&tenant.name).is_none();
                        let counted = limiter.subjects();
                        limiter.set_tenant(&limits);
                        let begins = is_new || limiter.subjects() > counted;
                        self.changed.set(self.changed.get() || begins);
                    }
                    None => limiter.remove_tenant(&tenant.name),
                }
            }
        }
    }
}
