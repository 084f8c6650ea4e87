//! Tenants of a namespace that share limits.

use crate::config::Ceilings;

/// A group of tenants that share limits.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) subject: u32,
    pub(super) ceilings: Ceilings,
    /// Number of tenants in the group. The usage of a tenant that left the group still counts.
    tenants: u32,
}

impl Group {
    /// Creates a group of one tenant.
    pub(super) fn new(subject: u32, ceilings: Ceilings) -> Self {
        Self {
            subject,
            ceilings,
            tenants: 1,
        }
    }

    /// Adds a tenant and sets the current limits.
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
