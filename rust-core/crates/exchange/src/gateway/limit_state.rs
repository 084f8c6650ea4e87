//! The state of the tenants' limits.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use proofgate_auth::Shards;
use proofgate_base::clock::ClockStep;
use proofgate_limits::Limiter;
use proofgate_upstream::catalog::Catalog;

use crate::limit_wait::TenantQueues;

/// The limiter, the requests that wait for capacity, and whether limits have changed.
pub struct LimitState {
    pub limiter: RefCell<Limiter>,
    /// Requests that wait until other requests release their reservations.
    pub queues: Rc<TenantQueues>,
    /// Whether limits have changed since [`LimitState::take_changed`].
    is_changed: Cell<bool>,
}

impl LimitState {
    pub(crate) fn new(limiter: Limiter, queues: TenantQueues) -> Self {
        LimitState {
            limiter: RefCell::new(limiter),
            queues: Rc::new(queues),
            is_changed: Cell::new(false),
        }
    }

    /// Returns whether limits have changed since the last call.
    pub fn take_changed(&self) -> bool {
        self.is_changed.take()
    }

    /// Adjusts the limits to a step of the system clock.
    pub(crate) fn apply_clock_step(&self, step: ClockStep) {
        let mut limiter = self.limiter.borrow_mut();
        if step.moves_limit_time_back {
            limiter.roll_back_clock(step.to);
        } else if !step.is_backward() {
            limiter.jump_forward(step.from, step.to);
        }
    }

    /// Applies the limits of all tenants.
    pub(crate) fn apply_all(&self, catalog: &Catalog, shards: &Shards) {
        let limits = catalog.settings.all_limits(shards);
        self.limiter.borrow_mut().set_limits(&limits);
        self.is_changed.set(true);
    }

    /// Applies the limits of the tenants in `after`; only replaced shards can differ from `before`.
    pub(crate) fn apply_changed_shards(&self, catalog: &Catalog, before: &Shards, after: &Shards) {
        let mut limiter = self.limiter.borrow_mut();
        for (old, new) in before.iter().zip(after) {
            if Arc::ptr_eq(old, new) {
                continue;
            }
            // A tenant that moved to another shard still exists, so it is not removed.
            for gone in old
                .tenants()
                .iter()
                .filter(|tenant| !after.has_tenant(&tenant.name))
            {
                limiter.remove_tenant(&gone.name);
            }
            for tenant in new.tenants() {
                match catalog.settings.limits_of(tenant) {
                    Some(limits) => {
                        let is_new = limiter.find(&tenant.name).is_none();
                        let counted = limiter.subject_count();
                        limiter.set_tenant(&limits);
                        let begins = is_new || limiter.subject_count() > counted;
                        self.is_changed.set(self.is_changed.get() || begins);
                    }
                    None => limiter.remove_tenant(&tenant.name),
                }
            }
        }
    }
}
