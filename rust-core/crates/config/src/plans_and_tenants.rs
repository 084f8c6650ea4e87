//! The sections `plans` and `tenants`: rights and limits.

use std::time::Duration;

use proofgate_auth::Endpoint;
use proofgate_limits::{Limits, ModelBudget};
use proofgate_policy::TenantPolicy;
use serde::Deserialize;

use crate::ledger::PayloadMode;
use crate::seconds::seconds;

/// A named plan, with the rights and limits of its tenants.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    pub name: String,
    #[serde(default)]
    pub models: Option<Vec<String>>,
    #[serde(default)]
    pub endpoints: Option<Vec<Endpoint>>,
    #[serde(default)]
    pub hosted_tools: HostedTools,
    /// Features of Anthropic's API that it may not use, by their beta names.
    #[serde(default)]
    pub denied_betas: Vec<String>,
    /// Tools that may not be called after a tool text that looks like instructions.
    #[serde(default)]
    pub guarded_tools: Option<GuardedTools>,
    /// Limits of a tenant as a whole.
    #[serde(default)]
    pub limits: Limits,
    /// Limits of each of its keys.
    #[serde(default)]
    pub key_limits: Limits,
    /// Budgets for models.
    #[serde(default)]
    pub model_budgets: Vec<ModelBudget>,
    /// Limits shared by the sharded tenants of one namespace that have this plan.
    #[serde(default)]
    pub namespace_limits: Limits,
    /// How long a request may wait for other requests to release their reservations.
    #[serde(rename = "waitSeconds", default, deserialize_with = "seconds")]
    pub wait: Duration,
    #[serde(default)]
    pub policy: Option<TenantPolicy>,
    /// Names of the policies for its requests, in their order.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Whether bodies are stored; `None`: the ledger's default.
    #[serde(default)]
    pub payloads: Option<PayloadMode>,
}

/// A tenant, with the terms of its plan already applied.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tenant {
    pub name: String,
    pub keys: Vec<ApiKey>,
    #[serde(default)]
    pub models: Option<Vec<String>>,
    #[serde(default)]
    pub endpoints: Option<Vec<Endpoint>>,
    #[serde(default)]
    pub hosted_tools: HostedTools,
    /// Features of Anthropic's API that it may not use, by their beta names.
    #[serde(default)]
    pub denied_betas: Vec<String>,
    /// Tools that may not be called after a tool text that looks like instructions.
    #[serde(default)]
    pub guarded_tools: Option<GuardedTools>,
    /// Limits of the tenant as a whole.
    #[serde(default)]
    pub limits: Limits,
    /// Limits of each of its keys.
    #[serde(default)]
    pub key_limits: Limits,
    /// Budgets for models.
    #[serde(default)]
    pub model_budgets: Vec<ModelBudget>,
    /// How long a request may wait for other requests to release their reservations.
    #[serde(rename = "waitSeconds", default, deserialize_with = "seconds")]
    pub wait: Duration,
    #[serde(default)]
    pub policy: Option<TenantPolicy>,
    /// Names of the policies for its requests, in their order.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Whether bodies are stored; `None`: the ledger's default.
    #[serde(default)]
    pub payloads: Option<PayloadMode>,
}

/// The settings of provider-run tools.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HostedTools {
    /// The allowed kinds.
    pub allow: Vec<String>,
    /// Maximum calls for a request, or for one of its tools, that sets no bound, if a money budget counts it.
    pub max_calls: u64,
    /// Maximum tokens that a call is expected to add; `None` means as many as the model accepts.
    pub tokens_per_call: Option<u64>,
}

impl Default for HostedTools {
    fn default() -> Self {
        HostedTools {
            allow: Vec::new(),
            max_calls: 10,
            tokens_per_call: None,
        }
    }
}

/// Tools that may not be called after a tool text that looks like instructions.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuardedTools {
    /// Their names; a `*` at the end matches all names with that prefix.
    pub names: Vec<String>,
    pub on_flag: FlagAction,
}

/// How a call of a guarded tool is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum FlagAction {
    /// It is not delivered.
    Refuse,
    /// It is not delivered without an approval.
    RequireApproval,
}

/// One API key of a tenant.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiKey {
    /// SHA-256 in hex.
    pub hash: String,
    /// Unix seconds from which on the key is refused.
    #[serde(default)]
    pub expires_at: Option<u64>,
    /// Its name, given by the tenant.
    #[serde(default)]
    pub name: Option<String>,
}
