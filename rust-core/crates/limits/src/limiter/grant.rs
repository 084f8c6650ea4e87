//! Grants of admitted requests.

use crate::demand::ActualUsage;
use crate::moment::Moment;
use std::sync::Arc;

/// The index for no subject, used for a part that is not counted.
pub(super) const NO_SUBJECT: u32 = u32::MAX;

/// A reservation for an admitted request: one request, one concurrency slot, and tokens.
///
/// It must be returned to the limiter with [`settle`](crate::Limiter::settle),
/// [`keep_reservation`](crate::Limiter::keep_reservation) or [`refund`](crate::Limiter::refund). A
/// dropped grant holds its slot and its tokens permanently, so store it in an object that returns
/// it on drop.
#[derive(Debug)]
#[must_use = "a grant that is not returned counts as a concurrent request permanently"]
pub struct Grant {
    pub(super) tenant: u32,
    pub(super) key: u32,
    pub(super) model: u32,
    pub(super) shared: u32,
    pub(super) shared_plan: Option<Arc<str>>,
    /// Index of the grant's entry in `Limiter::unrecorded`, until the admission is recorded.
    pub(super) unrecorded: u32,
    /// Time of the admission, in unix microseconds.
    pub(super) admitted_at: u64,
    pub(super) moment: Moment,
    pub(super) reserved: ActualUsage,
    /// Whether the cost of the request counts.
    pub(super) money_counted: bool,
}

impl Grant {
    /// Returns the time of the admission in unix microseconds: the passed time, or a later time
    /// that was passed before. Use it as the time of the admission record, so that a replay counts
    /// the request in the same second.
    #[must_use]
    pub fn admitted_at(&self) -> u64 {
        self.admitted_at
    }

    /// Returns the tokens reserved, for the admission record. `None` if the tenant has no limits and nothing is counted.
    #[must_use]
    pub fn reserved(&self) -> Option<u64> {
        (self.tenant != NO_SUBJECT).then_some(self.reserved.tokens)
    }

    /// Returns the nanodollars reserved, for the admission record. `None` if no budget counts the
    /// cost.
    #[must_use]
    pub fn reserved_cost(&self) -> Option<u64> {
        self.money_counted.then_some(self.reserved.cost)
    }

    /// Returns the plan whose limits the tenants of the namespace share, for the admission record.
    /// `None` if the request counts in no plan.
    #[must_use]
    pub fn shared_plan(&self) -> Option<&Arc<str>> {
        self.shared_plan.as_ref()
    }

    pub(super) fn reservations(&self) -> [LimitReservation; 4] {
        reservations(self.tenant, self.key, self.model, self.shared)
    }
}

/// An admission that is booked but not yet in the ledger.
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

/// A subject for which a request counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitReservation {
    pub(super) subject: u32,
    /// Whether only the cost counts.
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
    /// Returns the part of a request's usage that counts for this subject.
    pub(super) fn counted_usage(self, used: ActualUsage) -> ActualUsage {
        ActualUsage {
            tokens: if self.cost_only { 0 } else { used.tokens },
            ..used
        }
    }

    /// Returns the number of requests that count for this subject: 0 or 1.
    pub(super) fn request_count(self) -> u32 {
        u32::from(!self.cost_only)
    }
}
