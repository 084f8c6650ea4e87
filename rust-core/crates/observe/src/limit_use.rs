//! How much of its limits each tenant has used, for whoever asks the admin port. The limits thread's store tells it, about
//! a second late; the data-plane thread has no part in it.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU64;
use std::sync::Arc;

use proofgate_config::{Config, Plan};
use proofgate_limits::{Limit, Limits, Part, SubjectName, Totals};
use serde::{Serialize, Serializer};

use crate::tenant_shards::TenantShards;

/// The tenants and namespaces that have limits, by how much of them is used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitUse {
    /// Most used first: by the limit of which the greatest part is used, then by name.
    pub tenants: Vec<TenantUse>,
    /// Tenants with limits that are left out, because these are used more.
    pub more: usize,
    /// Limits that the tenants of a namespace share, most used first.
    pub namespaces: Vec<NamespaceUse>,
    /// Those that are left out, because these are used more.
    pub more_namespaces: usize,
}

/// The limits that the tenants of one namespace share by a plan, and what is used of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamespaceUse {
    /// The namespace.
    pub namespace: String,
    /// The plan.
    pub plan: String,
    /// What is used of each limit.
    #[serde(flatten)]
    pub used: UseOfLimits,
}

/// One tenant's limits and what is used of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TenantUse {
    /// Its name.
    pub tenant: String,
    /// What is used of each limit.
    #[serde(flatten)]
    pub used: UseOfLimits,
}

/// What is used of each limit, in the order of [`Limit::ALL`]; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UseOfLimits([Option<Used>; Limit::COUNT]);

/// By the fields of the worker's configuration, with null for no limit.
impl Serialize for UseOfLimits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Limit::ALL.iter().map(|limit| limit.kind().field).zip(&self.0))
    }
}

/// What is used of one limit; more than it is, when that became smaller or a provider counted beyond a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Used {
    /// How much is used.
    pub used: u64,
    /// How much may be.
    pub limit: NonZeroU64,
}

impl UseOfLimits {
    fn new(limits: &Limits, totals: &Totals) -> Self {
        UseOfLimits(Limit::ALL.map(|limit| {
            limits.get(limit).map(|most| Used {
                used: totals.used(limit),
                limit: most,
            })
        }))
    }

    /// The greatest part of a limit that is used.
    fn part(&self) -> f64 {
        let limits = &self.0;
        let parts = limits
            .iter()
            .flatten()
            .map(|one| one.used as f64 / one.limit.get() as f64);
        parts.fold(0.0, f64::max)
    }
}

/// The `most` of which most is used, and how many are left out.
fn most_used<N: Ord>(mut found: Vec<(N, UseOfLimits)>, most: usize) -> (Vec<(N, UseOfLimits)>, usize) {
    found.sort_unstable_by(|one, other| {
        let by_part = other.1.part().total_cmp(&one.1.part());
        by_part.then_with(|| one.0.cmp(&other.0))
    });
    let more = found.len().saturating_sub(most);
    found.truncate(most);
    (found, more)
}

impl LimitUse {
    /// The `most` tenants, and as many namespaces, that have used most of what they may, of those in a configuration and in
    /// its shards.
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
        let used = |tenant: &Arc<str>, part: Part, limits: &Limits| {
            let tenant = Arc::clone(tenant);
            let totals = totals.get(&SubjectName { tenant, part });
            UseOfLimits::new(limits, &totals.copied().unwrap_or_default())
        };
        let mut tenants: Vec<(Arc<str>, UseOfLimits)> = Vec::new();
        for tenant in config.tenants.iter().filter(|tenant| !tenant.limits.is_empty()) {
            let name = Arc::from(tenant.name.as_str());
            let used = used(&name, Part::Whole, &tenant.limits);
            tenants.push((name, used));
        }
        let mut sharing: BTreeSet<(&str, &str)> = BTreeSet::new();
        for tenant in shards.in_service().iter().flat_map(|shard| shard.tenants()) {
            let Some(plan) = plans.get(&*tenant.plan) else {
                continue;
            };
            if !plan.limits.is_empty() {
                let used = used(&tenant.name, Part::Whole, &plan.limits);
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
            let used = used(&namespace.into(), Part::Shared(plan.into()), limits);
            Some(((namespace, plan), used))
        });
        let (tenants, more) = most_used(tenants, most);
        let (namespaces, more_namespaces) = most_used(namespaces.collect(), most);
        LimitUse {
            tenants: tenants
                .into_iter()
                .map(|(name, used)| TenantUse {
                    tenant: name.to_string(),
                    used,
                })
                .collect(),
            more,
            namespaces: namespaces
                .into_iter()
                .map(|((namespace, plan), used)| NamespaceUse {
                    namespace: namespace.to_owned(),
                    plan: plan.to_owned(),
                    used,
                })
                .collect(),
            more_namespaces,
        }
    }
}
