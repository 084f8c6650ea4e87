//! The sections `plans` and `tenants`: permissions and limits.

use std::time::Duration;

use proofgate_auth::Endpoint;
use proofgate_limits::{Limits, ModelBudget};
use proofgate_policy::TenantPolicy;
use serde::Deserialize;

use crate::ledger::PayloadMode;
use crate::seconds::seconds;

/// A named plan, with the permissions and limits of its tenants.
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
    /// Features of Anthropic's API that its tenants may not use, by their beta names.
    #[serde(default)]
    pub denied_betas: Vec<String>,
    /// Tools that the model may not call after a tool text that looks like instructions; `None`: no
    /// such tools.
    #[serde(default)]
    pub guarded_tools: Option<GuardedTools>,
    /// Limits of each tenant as a whole.
    #[serde(default)]
    pub limits: Limits,
    /// Limits of each of a tenant's keys.
    #[serde(default)]
    pub key_limits: Limits,
    /// Budgets for models.
    #[serde(default)]
    pub model_budgets: Vec<ModelBudget>,
    /// Limits that the sharded tenants of one namespace with this plan share.
    #[serde(default)]
    pub namespace_limits: Limits,
    /// Maximum time that a request waits for other requests to release their reservations.
    #[serde(rename = "waitSeconds", default, deserialize_with = "seconds")]
    pub wait: Duration,
    #[serde(default)]
    pub policy: Option<TenantPolicy>,
    /// Names of the policies for its tenants' requests, in the order of evaluation.
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
    /// Features of Anthropic's API that the tenant may not use, by their beta names.
    #[serde(default)]
    pub denied_betas: Vec<String>,
    /// Tools that the model may not call after a tool text that looks like instructions; `None`: no
    /// such tools.
    #[serde(default)]
    pub guarded_tools: Option<GuardedTools>,
    /// Limits of the tenant as a whole.
    #[serde(default)]
    pub limits: Limits,
    /// Limits of each of the tenant's keys.
    #[serde(default)]
    pub key_limits: Limits,
    /// Budgets for models.
    #[serde(default)]
    pub model_budgets: Vec<ModelBudget>,
    /// Maximum time that a request waits for other requests to release their reservations.
    #[serde(rename = "waitSeconds", default, deserialize_with = "seconds")]
    pub wait: Duration,
    #[serde(default)]
    pub policy: Option<TenantPolicy>,
    /// Names of the policies for the tenant's requests, in the order of evaluation.
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
    /// The allowed kinds of tools.
    pub allow: Vec<String>,
    /// Maximum tool calls of a request, or of one of its tools, if the request sets no maximum and
    /// a money budget applies.
    pub max_calls: u64,
    /// Maximum tokens that a tool call is expected to add; `None`: as many as the model accepts.
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

/// Tools that the model may not call after a tool text that looks like instructions.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuardedTools {
    /// Names of the tools; a `*` at the end matches all names with that prefix.
    pub names: Vec<String>,
    pub on_flag: FlagAction,
}

/// The handling of a response that calls a guarded tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum FlagAction {
    /// The response is not delivered.
    Refuse,
    /// The response is delivered only with an approval.
    RequireApproval,
}

/// One API key of a tenant.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiKey {
    /// SHA-256 of the key in hex.
    pub hash: String,
    /// Unix seconds from which the key is refused; `None`: the key never expires.
    #[serde(default)]
    pub expires_at: Option<u64>,
    /// The tenant's name for the key; `None`: the key has no name.
    #[serde(default)]
    pub name: Option<String>,
}
