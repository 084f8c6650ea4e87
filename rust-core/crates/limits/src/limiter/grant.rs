//! What was given to a request.

use crate::demand::ActualUsage;
use crate::moment::Moment;
use std::sync::Arc;

/// The index of no subject, for what is not counted.
pub(super) const NO_SUBJECT: u32 = u32::MAX;

/// A request that was admitted: one request, one place among the concurrent ones, and tokens.
///
/// It must come back to the limiter by [`settle`](crate::Limiter::settle), [`keep_reservation`](crate::Limiter::keep_reservation) or
/// [`refund`](crate::Limiter::refund). One that is dropped holds its place and its tokens for good, so keep it in
/// something that gives it back when it is dropped.
#[derive(Debug)]
#[must_use = "a grant that is not returned counts as a concurrent request permanently"]
pub struct Grant {
    pub(super) tenant: u32,
    pub(super) key: u32,
    pub(super) model: u32,
    pub(super) shared: u32,
    pub(super) shared_plan: Option<Arc<str>>,
    /// Number of its entry in `Limiter::unrecorded`, until its admission is recorded.
    pub(super) unrecorded: u32,
    /// Unix microseconds.
    pub(super) admitted_at: u64,
    pub(super) moment: Moment,
    pub(super) reserved: ActualUsage,
    /// Whether what it costs counts.
    pub(super) money_counted: bool,
}

impl Grant {
    /// When it was admitted, in unix microseconds: the time told, or a later one told before. Write it into the admission
    /// record as its time, so that a replay counts the request in the same second.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.admitted_at
    }

    /// Tokens reserved, for the admission record. `None` when the tenant has no limits and nothing is counted.
    #[must_use]
    pub fn reserved(&self) -> Option<u64> {
        (self.tenant != NO_SUBJECT).then_some(self.reserved.tokens)
    }

    /// Nanodollars reserved, for the admission record. `None` when no budget counts what it costs.
    #[must_use]
    pub fn reserved_cost(&self) -> Option<u64> {
        self.money_counted.then_some(self.reserved.cost)
    }

    /// The plan whose limits the tenants of its namespace share, for the admission record. `None` when it counts in none.
    #[must_use]
    pub fn shared_plan(&self) -> Option<&Arc<str>> {
        self.shared_plan.as_ref()
    }

    pub(super) fn reservations(&self) -> [LimitReservation; 4] {
        reservations(self.tenant, self.key, self.model, self.shared)
    }
}

/// What an admission has booked and the ledger does not know yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Booking {
    pub(super) tenant: u32,
    pub(super) key: u32,
    pub(super) model: u32,
    pub(super) shared: u32,
    pub(super) at: Moment,
    pub(super) used: ActualUsage,
}

impl Booking {
    pub(super) fn reservations(&self) -> [LimitReservation; 4] {
        reservations(self.tenant, self.key, self.model, self.shared)
    }
}

/// A subject that a request counts for.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitReservation {
    pub(super) subject: u32,
    /// Whether it only pays.
    cost_only: bool,
}

fn reservations(tenant: u32, key: u32, model: u32, shared: u32) -> [LimitReservation; 4] {
    [(tenant, false), (key, false), (model, true), (shared, false)].map(|(subject, pays_only)| {
        LimitReservation {
            subject,
            cost_only: pays_only,
        }
    })
}

impl LimitReservation {
    /// What of a request's use counts for this subject.
    pub(super) fn counted_usage(self, used: ActualUsage) -> ActualUsage {
        ActualUsage {
            tokens: if self.cost_only { 0 } else { used.tokens },
            ..used
        }
    }

    /// How often the request itself does.
    pub(super) fn request_count(self) -> u32 {
        u32::from(!self.cost_only)
    }
}
