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
}

/// What is used of one limit; more than it is, when that became smaller or a provider counted beyond a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Used {
    /// How much is used.
    pub used: u64,
    /// How much may be.
    pub limit: NonZeroU64,
}

impl TenantUse {
    fn new(tenant: &str, limits: &Limits, totals: &Totals) -> Self {
        let used = |used, limit: Option<NonZeroU64>| limit.map(|limit| Used { used, limit });
        TenantUse {
            tenant: tenant.to_owned(),
            requests_per_minute: used(totals.requests, limits.requests_per_minute),
            tokens_per_minute: used(totals.tokens, limits.tokens_per_minute),
            tokens_per_day: used(totals.day_tokens, limits.tokens_per_day),
            concurrency: used(totals.in_flight, limits.concurrency),
        }
    }
}

/// The greatest part of a limit that is used.
fn part(limits: &Limits, totals: &Totals) -> f64 {
    let limits = [
        (totals.requests, limits.requests_per_minute),
        (totals.tokens, limits.tokens_per_minute),
        (totals.day_tokens, limits.tokens_per_day),
        (totals.in_flight, limits.concurrency),
    ];
    let parts = limits
        .into_iter()
        .filter_map(|(used, limit)| Some(used as f64 / limit?.get() as f64));
    parts.fold(0.0, f64::max)
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
                let totals = totals.get(name).copied().unwrap_or_default();
                (part(limits, &totals), name, limits, totals)
            })
            .collect();
        tenants.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        let shown = tenants.iter().take(most);
        LimitUse {
            tenants: shown
                .map(|(_, name, limits, totals)| TenantUse::new(name, limits, totals))
                .collect(),
            more: tenants.len().saturating_sub(most),
        }
    }
}
