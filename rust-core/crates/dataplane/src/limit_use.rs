//! How much of its limits each tenant has used, for whoever asks the admin port. The limits thread's store tells it, about
//! a second late; the data-plane thread has no part in it.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use proofgate_limits::{Limits, Totals};
use serde::Serialize;

use crate::config::Config;
use crate::tenant_shards::TenantShards;

/// The tenants that have limits, by how much of them is used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitUse {
    /// Most used first: by the limit of which the greatest part is used, then by name.
    pub tenants: Vec<TenantUse>,
    /// Tenants with limits that are left out, because these are used more.
    pub more: usize,
}

/// One tenant's limits and what is used of them; `None` is no limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TenantUse {
    /// Its name.
    pub tenant: String,
    /// Requests of the last minute.
    pub requests_per_minute: Option<Used>,
    /// Tokens reserved or used in the last minute.
    pub tokens_per_minute: Option<Used>,
    /// Tokens reserved or used on this UTC day.
    pub tokens_per_day: Option<Used>,
    /// Requests in flight.
    pub concurrency: Option<Used>,
    /// Nanodollars set aside or spent on this UTC day.
    pub nanodollars_per_day: Option<Used>,
    /// Nanodollars set aside or spent in this UTC month.
    pub nanodollars_per_month: Option<Used>,
}

/// What is used of one limit; more than it is, when that became smaller or a provider counted beyond a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Used {
    /// How much is used.
    pub used: u64,
    /// How much may be.
    pub limit: NonZeroU64,
}

/// What is used of each limit that there is, in the order of the fields of [`TenantUse`].
fn used(limits: &Limits, totals: &Totals) -> [Option<Used>; 6] {
    [
        (totals.requests, limits.requests_per_minute),
        (totals.tokens, limits.tokens_per_minute),
        (totals.day_tokens, limits.tokens_per_day),
        (totals.in_flight, limits.concurrency),
        (totals.day_cost, limits.nanodollars_per_day),
        (totals.month_cost, limits.nanodollars_per_month),
    ]
    .map(|(used, limit)| limit.map(|limit| Used { used, limit }))
}

/// The greatest part of a limit that is used.
fn part(used: &[Option<Used>; 6]) -> f64 {
    let parts = used
        .iter()
        .flatten()
        .map(|one| one.used as f64 / one.limit.get() as f64);
    parts.fold(0.0, f64::max)
}

impl TenantUse {
    fn new(tenant: &str, used: [Option<Used>; 6]) -> Self {
        let [
            requests_per_minute,
            tokens_per_minute,
            tokens_per_day,
            concurrency,
            nanodollars_per_day,
            nanodollars_per_month,
        ] = used;
        TenantUse {
            tenant: tenant.to_owned(),
            requests_per_minute,
            tokens_per_minute,
            tokens_per_day,
            concurrency,
            nanodollars_per_day,
            nanodollars_per_month,
        }
    }
}

impl LimitUse {
    /// The `most` tenants that have used most of what they may, of those in a configuration and in its shards.
    pub(crate) fn new(
        config: &Config,
        shards: &TenantShards,
        totals: &HashMap<Arc<str>, Totals>,
        most: usize,
    ) -> Self {
        let plans: HashMap<&str, &Limits> = config
            .plans
            .iter()
            .map(|plan| (plan.name.as_str(), &plan.limits))
            .collect();
        let configured = config
            .tenants
            .iter()
            .map(|tenant| (tenant.name.as_str(), &tenant.limits));
        let sharded = shards
            .in_service()
            .iter()
            .flat_map(|shard| shard.tenants())
            .filter_map(|tenant| Some((&*tenant.name, *plans.get(&*tenant.plan)?)));
        let mut tenants: Vec<_> = configured
            .chain(sharded)
            .filter(|(_, limits)| !limits.is_empty())
            .map(|(name, limits)| {
                let used = used(limits, &totals.get(name).copied().unwrap_or_default());
                (part(&used), name, used)
            })
            .collect();
        tenants.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        let shown = tenants.iter().take(most);
        LimitUse {
            tenants: shown.map(|&(_, name, used)| TenantUse::new(name, used)).collect(),
            more: tenants.len().saturating_sub(most),
        }
    }
}
