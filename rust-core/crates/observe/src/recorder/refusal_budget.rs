//! Limits the number of refusals per second that have their own record, and counts the others.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use proofgate_base::routing::ClientNetwork;

use crate::rejected_request::RejectedRequest;

/// Maximum number of individually recorded refusals per second, for one sender without a tenant.
const MAX_PER_SENDER: u32 = 100;
/// Maximum number of individually recorded refusals per second, for all senders without a tenant
/// together.
const MAX_ALL_SENDERS: u32 = 500;
/// Maximum number of individually recorded refusals per second for one tenant, except for refusals
/// by the rules.
const MAX_PER_TENANT: u32 = 200;
/// Maximum number of senders that are counted separately per second. With more senders,
/// `MAX_ALL_SENDERS` is reached in any case.
const MAX_SENDERS: usize = MAX_ALL_SENDERS as usize;
/// Maximum number of pairs of tenant and code whose unrecorded refusals are counted separately.
const MAX_UNRECORDED_GROUPS: usize = 256;
/// Code of the refusals beyond `MAX_UNRECORDED_GROUPS`.
const OTHER_CODES: &str = "others";

/// The refusals of the current second.
pub(super) struct RefusalBudget {
    second: Instant,
    sender_total: u32,
    by_sender: HashMap<ClientNetwork, u32>,
    by_tenant: HashMap<Box<str>, u32>,
    pub(super) unrecorded: HashMap<RefusalGroup, UnrecordedRefusals>,
}

/// Refusals that are counted together.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct RefusalGroup {
    pub(super) tenant: Option<Box<str>>,
    pub(super) code: &'static str,
    pub(super) reason: &'static str,
}

#[derive(Clone, Copy)]
pub(super) struct UnrecordedRefusals {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) count: u64,
}

impl RefusalBudget {
    pub(super) fn new() -> Self {
        Self {
            second: Instant::now(),
            sender_total: 0,
            by_sender: HashMap::new(),
            by_tenant: HashMap::new(),
            unrecorded: HashMap::new(),
        }
    }

    /// Returns whether a refusal may have its own record. If so, it counts as recorded.
    pub(super) fn allows(&mut self, refused: &RejectedRequest<'_>) -> bool {
        match (refused.tenant, refused.sender) {
            (Some(_), _) if refused.policy.is_some() => true,
            (Some(tenant), _) => {
                if let Some(recorded) = self.by_tenant.get_mut(tenant) {
                    return try_count(recorded, MAX_PER_TENANT);
                }
                self.by_tenant.insert(tenant.into(), 1);
                true
            }
            (None, Some(sender)) => {
                let is_known = self.by_sender.contains_key(&sender);
                let of_sender = match is_known || self.by_sender.len() < MAX_SENDERS {
                    true => self.by_sender.entry(sender).or_default(),
                    false => return false,
                };
                try_count(of_sender, MAX_PER_SENDER) && try_count(&mut self.sender_total, MAX_ALL_SENDERS)
            }
            (None, None) => try_count(&mut self.sender_total, MAX_ALL_SENDERS),
        }
    }

    pub(super) fn count_unrecorded(
        &mut self,
        now: u64,
        tenant: Option<&str>,
        code: &'static str,
        reason: &'static str,
    ) {
        let what = RefusalGroup {
            tenant: tenant.map(Into::into),
            code,
            reason,
        };
        let is_known = self.unrecorded.contains_key(&what);
        let what = match is_known || self.unrecorded.len() < MAX_UNRECORDED_GROUPS {
            true => what,
            false => RefusalGroup {
                tenant: None,
                code: OTHER_CODES,
                reason,
            },
        };
        let new = UnrecordedRefusals {
            first: now,
            last: now,
            count: 0,
        };
        let missed = self.unrecorded.entry(what).or_insert(new);
        missed.last = now;
        missed.count += 1;
    }

    pub(super) fn start_second(&mut self, now: Instant) {
        if now.saturating_duration_since(self.second) >= Duration::from_secs(1) {
            self.second = now;
            self.sender_total = 0;
            self.by_sender.clear();
            self.by_tenant.clear();
        }
    }
}

/// Increases a count unless `most` is reached. Returns whether it was increased.
fn try_count(recorded: &mut u32, most: u32) -> bool {
    let is_within = *recorded < most;
    *recorded += u32::from(is_within);
    is_within
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proofgate_ledger::record::PolicyNote;

    use super::*;

    const FLOOD: &str = "refusal_flood";

    fn of_sender(number: u32) -> RejectedRequest<'static> {
        RejectedRequest {
            sender: Some(IpAddr::V4(Ipv4Addr::from_bits(number)).into()),
            ..RejectedRequest::default()
        }
    }

    fn of_tenant(tenant: &str) -> RejectedRequest<'_> {
        RejectedRequest {
            tenant: Some(tenant),
            ..RejectedRequest::default()
        }
    }

    fn denied(tenant: &str) -> RejectedRequest<'_> {
        RejectedRequest {
            policy: Some(PolicyNote::default()),
            ..of_tenant(tenant)
        }
    }

    fn allowed(refusals: &mut RefusalBudget, of: &RejectedRequest<'_>, attempts: usize) -> usize {
        (0..attempts).filter(|_| refusals.allows(of)).count()
    }

    #[test]
    fn a_flood_takes_nothing_from_another_sender_from_a_tenant_or_from_what_was_judged() {
        let mut refusals = RefusalBudget::new();
        let flood = of_sender(1);
        assert_eq!(allowed(&mut refusals, &flood, 10_000), MAX_PER_SENDER as usize);
        let other = of_sender(2);
        assert_eq!(allowed(&mut refusals, &other, 10), 10);
        assert_eq!(
            allowed(&mut refusals, &of_tenant("loud"), 10_000),
            MAX_PER_TENANT as usize
        );
        assert_eq!(allowed(&mut refusals, &of_tenant("acme"), 10), 10);
        assert_eq!(allowed(&mut refusals, &denied("loud"), 10_000), 10_000);
    }

    #[test]
    fn however_many_addresses_a_flood_has_it_gets_what_all_senders_have_and_no_more_memory() {
        let mut refusals = RefusalBudget::new();
        let recorded = (0..100_000).filter(|number| refusals.allows(&of_sender(*number)));
        assert_eq!(recorded.count(), MAX_ALL_SENDERS as usize);
        assert!(refusals.by_sender.len() <= MAX_SENDERS);
        assert_eq!(allowed(&mut refusals, &of_tenant("acme"), 10), 10);
        assert_eq!(allowed(&mut refusals, &denied("acme"), 10), 10);
    }

    #[test]
    fn a_second_later_the_budgets_are_whole_again() {
        let mut refusals = RefusalBudget::new();
        let flood = of_sender(1);
        allowed(&mut refusals, &flood, 1000);
        let begun = refusals.second;
        refusals.start_second(begun + Duration::from_millis(999));
        assert_eq!(allowed(&mut refusals, &flood, 1), 0);
        refusals.start_second(begun + Duration::from_secs(1));
        assert_eq!(allowed(&mut refusals, &flood, 1000), MAX_PER_SENDER as usize);
    }

    #[test]
    fn what_is_missing_is_told_by_code_and_tenant_within_a_bound() {
        let mut refusals = RefusalBudget::new();
        for now in 1..=3 {
            refusals.count_unrecorded(now, None, "unauthorized", FLOOD);
            refusals.count_unrecorded(now, Some("acme"), "rate_limited", FLOOD);
        }
        let told = |refusals: &RefusalBudget, tenant: Option<&str>, code| {
            let what = RefusalGroup {
                tenant: tenant.map(Into::into),
                code,
                reason: FLOOD,
            };
            (refusals.unrecorded.get(&what)).map(|missed| (missed.first, missed.last, missed.count))
        };
        assert_eq!(told(&refusals, None, "unauthorized"), Some((1, 3, 3)));
        assert_eq!(told(&refusals, Some("acme"), "rate_limited"), Some((1, 3, 3)));
        for tenant in 0..1000 {
            refusals.count_unrecorded(9, Some(&tenant.to_string()), "rate_limited", FLOOD);
        }
        assert!(refusals.unrecorded.len() <= MAX_UNRECORDED_GROUPS + 2);
        let all: u64 = refusals.unrecorded.values().map(|missed| missed.count).sum();
        assert_eq!(all, 1006, "not one is lost");
        assert_eq!(told(&refusals, None, "unauthorized"), Some((1, 3, 3)));
    }
}
