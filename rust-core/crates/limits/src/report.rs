//! What a tenant and a key have used, limit by limit, for whoever asks.

use crate::CredentialId;
use crate::config::Ceilings;
use crate::kinds::{Limit, Period};
use crate::limiter::{Limiter, TenantId};
use crate::moment::Moment;
use crate::subject::Totals;
use std::sync::Arc;

/// What was used of one thing that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageEntry {
    /// What.
    pub limit: Limit,
    /// How much of it, in its unit (money in nanodollars), reservations included.
    pub used: u64,
    /// How much of it may be; `None` is no limit.
    pub value: Option<u64>,
    /// The unix second in which a day or a month ends that it is counted in; `None` of what slides.
    pub resets_at: Option<u64>,
}

/// What is counted for one sender, in the order of [`Limit::ALL`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageReport {
    /// Of the tenant; empty when nothing of it is counted.
    pub tenant: Vec<UsageEntry>,
    /// Of the key; empty when keys are not counted.
    pub key: Vec<UsageEntry>,
    /// The plan whose limits the tenants of its namespace share, and what they have used together; `None` when they share
    /// none.
    pub namespace: Option<(Arc<str>, Vec<UsageEntry>)>,
    /// Of each model that has a budget, by its name: money alone.
    pub models: Vec<(Arc<str>, Vec<UsageEntry>)>,
}

impl Limiter {
    /// What a tenant and a key have used at `now` (unix microseconds).
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
        if quotas.keys_counted {
            let of_key = self.totals_of_key(tenant, key, moment);
            report.key = usage_entries(&quotas.key_ceilings, &of_key, moment, shown);
        }
        if let Some((plan, ceilings)) = &quotas.shared {
            let together = self.totals_shared(tenant, moment);
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
                Period::Minute | Period::Now => None,
            },
        }
    });
    counted.collect()
}
