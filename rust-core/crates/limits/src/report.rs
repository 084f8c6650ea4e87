//! Reports of a tenant's and a key's usage of each limit.

use crate::CredentialId;
use crate::config::Ceilings;
use crate::kinds::{Limit, Period};
use crate::limiter::{Limiter, TenantId};
use crate::moment::Moment;
use crate::subject::Totals;
use std::sync::Arc;

/// The usage of one kind of limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageEntry {
    /// The kind of limit.
    pub limit: Limit,
    /// The amount used, in the limit's unit (money in nanodollars), including reservations.
    pub used: u64,
    /// The value of the limit; `None` means no limit.
    pub value: Option<u64>,
    /// The unix second in which the limit's day or month ends; `None` for a sliding window.
    pub resets_at: Option<u64>,
}

/// The usage of one client, in the order of [`Limit::ALL`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageReport {
    /// Usage of the tenant; empty if the tenant is not counted.
    pub tenant: Vec<UsageEntry>,
    /// Usage of the key; empty if keys are not counted.
    pub key: Vec<UsageEntry>,
    /// The plan whose limits the tenants of the namespace share, and their total usage; `None` if
    /// they share no limits.
    pub namespace: Option<(Arc<str>, Vec<UsageEntry>)>,
    /// Usage of each model with a budget, by name: money only.
    pub models: Vec<(Arc<str>, Vec<UsageEntry>)>,
}

impl Limiter {
    /// Reports the usage of a tenant and a key at `now` (unix microseconds).
    pub fn report(&mut self, tenant: TenantId, key: CredentialId, now: u64) -> UsageReport {
        let moment = Moment::from_micros(self.effective_now(now));
        let mut report = UsageReport::default();
        let Some(quotas) = self.quotas_of(tenant) else {
            return report;
        };
        let money = quotas.money_counted;
        let shown = |limit: Limit| money || !limit.is_money();
        let whole = self.totals_of_tenant(tenant, moment);
        report.tenant = usage_entries(&quotas.ceilings, &whole, moment, shown);
        if quotas.counts_key_requests {
            let of_key = self.totals_of_key(tenant, key, moment);
            report.key = usage_entries(&quotas.key_ceilings, &of_key, moment, shown);
        }
        if let Some((plan, ceilings)) = &quotas.shared {
            let together = self.shared_totals(tenant, moment);
            let of_namespace = together.map(|together| usage_entries(ceilings, &together, moment, shown));
            report.namespace = of_namespace.map(|counted| (Arc::clone(plan), counted));
        }
        for (model, ceilings) in &quotas.models {
            let totals = self.totals_of_model(tenant, model, moment);
            let of_model = usage_entries(ceilings, &totals, moment, Limit::is_money);
            report.models.push((Arc::clone(model), of_model));
        }
        report
    }
}

fn usage_entries(
    ceilings: &Ceilings,
    totals: &Totals,
    now: Moment,
    shown: impl Fn(Limit) -> bool,
) -> Vec<UsageEntry> {
    let limits = Limit::ALL.into_iter().filter(|limit| shown(*limit));
    let counted = limits.map(|limit| {
        let value = ceilings.get(limit);
        UsageEntry {
            limit,
            used: totals.used(limit),
            value: (value != u64::MAX).then_some(value),
            resets_at: match limit.kind().period {
                Period::Day => Some(now.next_day()),
                Period::Month => Some(now.next_month()),
                Period::Minute | Period::Instant => None,
            },
        }
    });
    counted.collect()
}
