//! The tenants of a namespace that share limits.

use crate::config::Ceilings;

/// Tenants that share limits.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) subject: u32,
    pub(super) ceilings: Ceilings,
    /// How many tenants are in it. What one that left has used still counts.
    tenants: u32,
}

impl Group {
    /// A group of one tenant.
    pub(super) fn new(subject: u32, ceilings: Ceilings) -> Self {
        Self {
            subject,
            ceilings,
            tenants: 1,
        }
    }

    /// One more tenant, with what the limits are now.
    pub(super) fn join(&mut self, ceilings: Ceilings) {
        self.ceilings = ceilings;
        self.tenants += 1;
    }

    pub(super) fn leave(&mut self) {
        self.tenants = self.tenants.saturating_sub(1);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tenants == 0
    }
}
