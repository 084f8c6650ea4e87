//! The sections `plans` and `tenants`: who may use what, and how much.

use std::time::Duration;

use proofgate_auth::Endpoint;
use proofgate_limits::{Limits, ModelBudget};
use proofgate_policy::TenantPolicy;
use serde::Deserialize;

use crate::ledger::PayloadMode;
use crate::seconds::seconds;

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
    /// Features of Anthropic's API that it may not use, by the names of their betas.
    #[serde(default)]
    pub denied_betas: Vec<String>,
    /// Tools that may not be called after a text of a tool that reads like instructions.
    #[serde(default)]
    pub guarded_tools: Option<GuardedTools>,
    /// Limits of a tenant as a whole.
    #[serde(default)]
    pub limits: Limits,
    /// Limits of each of its keys.
    #[serde(default)]
    pub key_limits: Limits,
    /// What may be spent on models.
    #[serde(default)]
    pub model_budgets: Vec<ModelBudget>,
    /// What the tenants of shards share that are of one namespace and have this plan.
    #[serde(default)]
    pub namespace_limits: Limits,
    /// How long a request waits that fits once others have released what they reserved.
    #[serde(rename = "waitSeconds", default, deserialize_with = "seconds")]
    pub wait: Duration,
    #[serde(default)]
    pub policy: Option<TenantPolicy>,
    /// Names of the policies that its requests ask for, in their order.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Whether bodies are stored; `None`: as the ledger has it.
    #[serde(default)]
    pub payloads: Option<PayloadMode>,
}

/// A tenant; the terms of its plan are already its own.
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
    /// Features of Anthropic's API that it may not use, by the names of their betas.
    #[serde(default)]
    pub denied_betas: Vec<String>,
    /// Tools that may not be called after a text of a tool that reads like instructions.
    #[serde(default)]
    pub guarded_tools: Option<GuardedTools>,
    /// Limits of the tenant as a whole.
    #[serde(default)]
    pub limits: Limits,
    /// Limits of each of its keys.
    #[serde(default)]
    pub key_limits: Limits,
    /// What may be spent on models.
    #[serde(default)]
    pub model_budgets: Vec<ModelBudget>,
    /// How long a request waits that fits once others have released what they reserved.
    #[serde(rename = "waitSeconds", default, deserialize_with = "seconds")]
    pub wait: Duration,
    #[serde(default)]
    pub policy: Option<TenantPolicy>,
    /// Names of the policies that its requests ask for, in their order.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Whether bodies are stored; `None`: as the ledger has it.
    #[serde(default)]
    pub payloads: Option<PayloadMode>,
}

/// Tools that a provider runs itself.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HostedTools {
    /// The kinds that may be used.
    pub allow: Vec<String>,
    /// Calls of a request, or of one of its tools, that names no bound, where a budget in money counts.
    pub max_calls: u64,
    /// Tokens that a call is expected to bring at most; `None` for as many as the model takes.
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

/// Tools that may not be called after a text of a tool that reads like instructions.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuardedTools {
    /// Their names; one with a `*` at its end stands for all that begin so.
    pub names: Vec<String>,
    pub on_flag: OnFlag,
}

/// What becomes of a call of a guarded tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum OnFlag {
    /// It is not delivered.
    Refuse,
    /// It is not delivered without an approval.
    RequireApproval,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiKey {
    /// SHA-256 in hex.
    pub hash: String,
    /// Unix seconds from which on the key is refused.
    #[serde(default)]
    pub expires_at: Option<u64>,
    /// What its tenant calls it.
    #[serde(default)]
    pub name: Option<String>,
}
