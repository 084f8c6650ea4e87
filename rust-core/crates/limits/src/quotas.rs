//! Tenants' limits in a form for comparison.

use crate::config::{Ceilings, ModelBudget};
use crate::kinds::Limits;
use crate::limit_exceeded::Scope;
use crate::rate_limit_policy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The limits of a tenant and of its keys, in a form for comparison. Tenants of one plan share this
/// value.
#[derive(Debug)]
pub struct Quotas {
    /// Whether requests are counted at all.
    pub(crate) counts_requests: bool,
    /// Whether the requests of each key are counted.
    pub(crate) counts_key_requests: bool,
    pub(crate) ceilings: Ceilings,
    pub(crate) key_ceilings: Ceilings,
    /// Whether the cost of requests counts for every model.
    pub(crate) money_counted: bool,
    /// Whether tokens or money are limited at all.
    usage_counted: bool,
    /// Whether a limit needs counts that are missing in old state files.
    pub(crate) needs_all_counts: bool,
    /// Budgets of models, sorted by name.
    pub(crate) models: Box<[(Arc<str>, Ceilings)]>,
    /// The limits shared by the tenants of one namespace, and the name of their plan.
    pub(crate) shared: Option<(Arc<str>, Ceilings)>,
    /// Value of `RateLimit-Policy`.
    pub(crate) rate_limit_policy: Box<[u8]>,
}

impl Quotas {
    /// Creates quotas with `limits` for all requests of a tenant together, and `key_limits` for each of its API keys and
    /// each subject of its tokens.
    #[must_use]
    pub fn new(limits: &Limits, key_limits: &Limits) -> Self {
        Self::with_budgets(limits, key_limits, &[])
    }

    /// Creates quotas with budgets for models. If a model has several budgets, the last one
    /// applies.
    #[must_use]
    pub fn with_budgets(limits: &Limits, key_limits: &Limits, budgets: &[ModelBudget]) -> Self {
        let keys_counted = !key_limits.is_empty();
        let models: BTreeMap<Arc<str>, Ceilings> = budgets
            .iter()
            .map(|budget| (budget.model.as_str().into(), Ceilings::from(budget)))
            .collect();
        Self {
            counts_requests: keys_counted || !limits.is_empty() || !models.is_empty(),
            counts_key_requests: keys_counted,
            money_counted: limits.has_budget() || key_limits.has_budget(),
            usage_counted: [limits, key_limits].iter().any(|limits| limits.counts_usage())
                || !models.is_empty(),
            needs_all_counts: limits.needs_all_counts() || key_limits.needs_all_counts(),
            models: models.into_iter().collect(),
            ceilings: Ceilings::from(limits),
            key_ceilings: Ceilings::from(key_limits),
            shared: None,
            rate_limit_policy: rate_limit_policy::describe(limits, key_limits),
        }
    }

    /// Adds `limits` that the tenants of `plan` share within each namespace, in addition to each
    /// tenant's own limits. A tenant's namespace is its name up to the first `/`. A tenant without
    /// a namespace shares no limits.
    #[must_use]
    pub fn with_shared_limits(mut self, plan: &str, limits: &Limits) -> Self {
        if limits.is_empty() {
            return self;
        }
        self.counts_requests = true;
        self.money_counted |= limits.has_budget();
        self.usage_counted |= limits.counts_usage();
        self.needs_all_counts |= limits.needs_all_counts();
        self.rate_limit_policy =
            rate_limit_policy::with_scope(&self.rate_limit_policy, Scope::Namespace, limits);
        self.shared = Some((plan.into(), Ceilings::from(limits)));
        self
    }

    /// Returns whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        !self.counts_requests
    }

    /// Returns whether tokens or money are limited for the tenant, its keys or a model. Only the
    /// provider's responses report tokens and cost.
    #[must_use]
    pub fn counts_usage(&self) -> bool {
        self.usage_counted
    }

    /// Returns whether the cost of requests for this model is limited, so that its price must be known.
    #[inline]
    #[must_use]
    pub fn has_budget_for(&self, model: &str) -> bool {
        self.money_counted || self.model(model).is_some()
    }

    /// Returns the budget of a model, if it has one.
    #[inline]
    pub(crate) fn model(&self, model: &str) -> Option<&(Arc<str>, Ceilings)> {
        let at = self.models.binary_search_by(|(name, _)| (**name).cmp(model));
        self.models.get(at.ok()?)
    }
}

/// The limits of one tenant.
#[derive(Clone, Debug)]
pub struct TenantLimits {
    /// The tenant's name in the manifest.
    pub name: Arc<str>,
    /// The tenant's quotas.
    pub quotas: Arc<Quotas>,
}
