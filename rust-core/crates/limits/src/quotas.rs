//! The limits of a tenant, ready to be compared.

use crate::config::{Ceilings, ModelBudget};
use crate::exceeded::Scope;
use crate::kinds::Limits;
use crate::policies;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The limits of a tenant and of its keys, in the form in which they are compared; tenants of one plan share them.
#[derive(Debug)]
pub struct Quotas {
    /// Whether requests are counted at all.
    pub(crate) counted: bool,
    /// Whether those of each key are.
    pub(crate) keys_counted: bool,
    pub(crate) ceilings: Ceilings,
    pub(crate) key_ceilings: Ceilings,
    /// Whether what requests cost counts whatever their model.
    pub(crate) money_counted: bool,
    /// Whether tokens or money are limited at all.
    usage_counted: bool,
    /// Whether anything is limited that old state files have no count of.
    pub(crate) needs_all_counts: bool,
    /// Budgets of models, sorted by name.
    pub(crate) models: Box<[(Arc<str>, Ceilings)]>,
    /// What the tenants of one namespace share, and the name of the plan by which they do.
    pub(crate) shared: Option<(Arc<str>, Ceilings)>,
    /// Value of `RateLimit-Policy`.
    pub(crate) policies: Box<[u8]>,
}

impl Quotas {
    /// `limits` for all requests of a tenant together, `key_limits` for each of its API keys, and each subject of its
    /// tokens, by itself.
    #[must_use]
    pub fn new(limits: &Limits, key_limits: &Limits) -> Self {
        Self::with_budgets(limits, key_limits, &[])
    }

    /// The same with what may be spent on models; of several budgets of one model the last counts.
    #[must_use]
    pub fn with_budgets(limits: &Limits, key_limits: &Limits, budgets: &[ModelBudget]) -> Self {
        let keys_counted = !key_limits.is_empty();
        let models: BTreeMap<Arc<str>, Ceilings> = budgets
            .iter()
            .map(|budget| (budget.model.as_str().into(), Ceilings::from(budget)))
            .collect();
        Self {
            counted: keys_counted || !limits.is_empty() || !models.is_empty(),
            keys_counted,
            money_counted: limits.has_budget() || key_limits.has_budget(),
            usage_counted: [limits, key_limits].iter().any(|limits| limits.counts_usage())
                || !models.is_empty(),
            needs_all_counts: limits.needs_all_counts() || key_limits.needs_all_counts(),
            models: models.into_iter().collect(),
            ceilings: Ceilings::from(limits),
            key_ceilings: Ceilings::from(key_limits),
            shared: None,
            policies: policies::describe(limits, key_limits),
        }
    }

    /// The same for the tenants of a plan that share `limits` within each namespace, besides what each may use itself. A
    /// tenant's namespace is its name up to the first `/`; a tenant without one shares nothing.
    #[must_use]
    pub fn with_shared_limits(mut self, plan: &str, limits: &Limits) -> Self {
        if limits.is_empty() {
            return self;
        }
        self.counted = true;
        self.money_counted |= limits.has_budget();
        self.usage_counted |= limits.counts_usage();
        self.needs_all_counts |= limits.needs_all_counts();
        self.policies = policies::with_scope(&self.policies, Scope::Namespace, limits);
        self.shared = Some((plan.into(), Ceilings::from(limits)));
        self
    }

    /// Whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        !self.counted
    }

    /// Whether tokens or money are limited, of the tenant, of its keys or for a model: what only the provider's answers report.
    #[must_use]
    pub fn counts_usage(&self) -> bool {
        self.usage_counted
    }

    /// Whether what a request for this model costs is limited, so that its price has to be known.
    #[inline]
    #[must_use]
    pub fn has_budget_for(&self, model: &str) -> bool {
        self.money_counted || self.model(model).is_some()
    }

    /// The budget of a model, if it has one.
    #[inline]
    pub(crate) fn model(&self, model: &str) -> Option<&(Arc<str>, Ceilings)> {
        let at = self.models.binary_search_by(|(name, _)| (**name).cmp(model));
        self.models.get(at.ok()?)
    }
}

/// One tenant's limits.
#[derive(Clone, Debug)]
pub struct TenantLimits {
    /// Name in the manifest.
    pub name: Arc<str>,
    /// What it may use.
    pub quotas: Arc<Quotas>,
}
