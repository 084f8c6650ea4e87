//! The use of each tenant's limits, for the admin port. The values come from the limits thread's
//! store, about a second late. The data-plane thread is not involved.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU64;
use std::sync::Arc;

use proofgate_config::{Config, Plan};
use proofgate_limits::{Limit, Limits, SubjectKind, SubjectName, Totals};
use serde::{Serialize, Serializer};

use crate::tenant_shards::TenantShards;

/// The tenants and namespaces that have limits, most used first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitUsageReport {
    /// Tenants in the order of their use: by the limit with the highest used fraction, then by
    /// name.
    pub tenants: Vec<TenantUsage>,
    /// Number of tenants with less use that are omitted.
    pub more: usize,
    /// Limits that the tenants of a namespace share, most used first.
    pub namespaces: Vec<NamespaceUsage>,
    /// Number of namespaces with less use that are omitted.
    pub more_namespaces: usize,
}

/// The limits that the tenants of one namespace share under a plan, and their use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamespaceUsage {
    /// The namespace.
    pub namespace: String,
    /// The plan.
    pub plan: String,
    /// The use of each limit.
    #[serde(flatten)]
    pub used: LimitUsages,
}

/// The limits of one tenant and their use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TenantUsage {
    /// Name of the tenant.
    pub tenant: String,
    /// The use of each limit.
    #[serde(flatten)]
    pub used: LimitUsages,
}

/// The use of each limit, in the order of [`Limit::ALL`]; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitUsages([Option<LimitUsage>; Limit::COUNT]);

/// Serialises each limit under its field name in the worker's configuration, with null for no
/// limit.
impl Serialize for LimitUsages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Limit::ALL.iter().map(|limit| limit.kind().field).zip(&self.0))
    }
}

/// The use of one limit. The use exceeds the limit if the limit was reduced, or if a provider
/// counted more than was reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LimitUsage {
    /// The amount used.
    pub used: u64,
    /// The limit.
    pub limit: NonZeroU64,
}

impl LimitUsages {
    fn new(limits: &Limits, totals: &Totals) -> Self {
        LimitUsages(Limit::ALL.map(|limit| {
            limits.get(limit).map(|most| LimitUsage {
                used: totals.used(limit),
                limit: most,
            })
        }))
    }

    /// Returns the highest used fraction of any limit.
    fn max_fraction(&self) -> f64 {
        let limits = &self.0;
        let parts = limits
            .iter()
            .flatten()
            .map(|one| one.used as f64 / one.limit.get() as f64);
        parts.fold(0.0, f64::max)
    }
}

/// Returns the `most` entries with the highest use, and the number of omitted entries.
fn most_used<N: Ord>(mut found: Vec<(N, LimitUsages)>, most: usize) -> (Vec<(N, LimitUsages)>, usize) {
    found.sort_unstable_by(|one, other| {
        let by_part = other.1.max_fraction().total_cmp(&one.1.max_fraction());
        by_part.then_with(|| one.0.cmp(&other.0))
    });
    let more = found.len().saturating_sub(most);
    found.truncate(most);
    (found, more)
}

impl LimitUsageReport {
    /// Creates the report of the `most` tenants and the `most` namespaces with the highest use, for
    /// a configuration and its shards.
    pub fn new(
        config: &Config,
        shards: &TenantShards,
        totals: &HashMap<SubjectName, Totals>,
        most: usize,
    ) -> Self {
        let plans: HashMap<&str, &Plan> = config
            .plans
            .iter()
            .map(|plan| (plan.name.as_str(), plan))
            .collect();
        let used = |tenant: &Arc<str>, part: SubjectKind, limits: &Limits| {
            let tenant = Arc::clone(tenant);
            let totals = totals.get(&SubjectName { tenant, kind: part });
            LimitUsages::new(limits, &totals.copied().unwrap_or_default())
        };
        let mut tenants: Vec<(Arc<str>, LimitUsages)> = Vec::new();
        for tenant in config.tenants.iter().filter(|tenant| !tenant.limits.is_empty()) {
            let name = Arc::from(tenant.name.as_str());
            let used = used(&name, SubjectKind::Tenant, &tenant.limits);
            tenants.push((name, used));
        }
        let mut sharing: BTreeSet<(&str, &str)> = BTreeSet::new();
        for tenant in shards.active_shards().iter().flat_map(|shard| shard.tenants()) {
            let Some(plan) = plans.get(&*tenant.plan) else {
                continue;
            };
            if !plan.limits.is_empty() {
                let used = used(&tenant.name, SubjectKind::Tenant, &plan.limits);
                tenants.push((Arc::clone(&tenant.name), used));
            }
            if !plan.namespace_limits.is_empty()
                && let Some((namespace, _)) = tenant.name.split_once('/')
            {
                sharing.insert((namespace, &plan.name));
            }
        }
        let namespaces = sharing.into_iter().filter_map(|(namespace, plan)| {
            let limits = &plans.get(plan)?.namespace_limits;
            let used = used(&namespace.into(), SubjectKind::Shared(plan.into()), limits);
            Some(((namespace, plan), used))
        });
        let (tenants, more) = most_used(tenants, most);
        let (namespaces, more_namespaces) = most_used(namespaces.collect(), most);
        LimitUsageReport {
            tenants: tenants
                .into_iter()
                .map(|(name, used)| TenantUsage {
                    tenant: name.to_string(),
                    used,
                })
                .collect(),
            more,
            namespaces: namespaces
                .into_iter()
                .map(|((namespace, plan), used)| NamespaceUsage {
                    namespace: namespace.to_owned(),
                    plan: plan.to_owned(),
                    used,
                })
                .collect(),
            more_namespaces,
        }
    }
}
