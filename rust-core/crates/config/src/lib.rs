//! A worker's configuration, as the Python loader passes it: checked and complete, with the
//! contents of all files.
//!
//! The document has the sections of the configuration file, with their names, values and units. It
//! also contains the contents of files (keys, certificates), and values that were combined from
//! several places. Each section is defined here once, in the form in which it is read. The layers
//! define the types that they build from it (routes, terms, pools, clocks).
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "internal crate: the names of the items describe them"
)]

mod analysis;
mod clients;
mod config_fields;
mod fallback_reasons;
mod ledger;
mod models;
mod plans_and_tenants;
mod providers;
mod seconds;
mod telemetry;

use proofgate_auth::Issuer;
use proofgate_base::Error;
use proofgate_external_policies::ExternalPolicies;
use proofgate_policy::PolicyConfig;
use serde::Deserialize;

pub use analysis::AnalysisConfig;
pub use clients::{Cors, Limits, Metrics, Profiling, ProxyProtocol, Timeouts, Tls};
pub use config_fields::config_fields;
pub use fallback_reasons::{FallbackReason, FallbackReasons};
pub use ledger::{
    Durability, HeldBy, HeldCheckpoints, Ledger, LogRotation, PayloadMode, PayloadsConfig, PersonalData,
    SigningKeyFile,
};
pub use models::{Fallback, Model, Route, Target};
pub use plans_and_tenants::{ApiKey, FlagAction, GuardedTools, HostedTools, Plan, Tenant};
pub use providers::{
    ArnInPath, Auth, AuthType, Aws, AwsKeys, BodyField, BodyFields, EgressConfig, EgressProxy, HttpVersion,
    Provider, ProviderHeader, ProviderKind, ProviderTimeouts, RateLimits, ResponsesApiMode, StreamUsage,
    Vertex,
};
pub use telemetry::{AccessLogMode, TelemetryConfig, TelemetrySettings, TraceSettings, TracesConfig};

/// A worker's configuration, as the Python loader passes it: checked and complete, with the
/// contents of all files.
///
/// It contains secrets, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    pub ledger: Ledger,
    pub listen: String,
    /// The settings for connections from the load balancer, which start with a PROXY v2 header;
    /// `None`: clients connect directly.
    #[serde(default)]
    pub proxy_protocol: Option<ProxyProtocol>,
    pub providers: Vec<Provider>,
    #[serde(default)]
    pub egress: Option<EgressConfig>,
    pub models: Vec<Model>,
    /// Prices of models; built-in prices are included only if the configuration requests them.
    #[serde(default)]
    pub prices: Vec<proofgate_prices::PriceEntry>,
    pub tenants: Vec<Tenant>,
    /// The named plans, for tenants in shards.
    #[serde(default)]
    pub plans: Vec<Plan>,
    /// Present if there are tenants in shards; their digests are then part of the configuration's
    /// digest.
    #[serde(default)]
    pub tenant_shards: Option<TenantShards>,
    #[serde(default)]
    pub jwt: Option<Jwt>,
    /// The rules; `None`: nothing is scanned.
    #[serde(default)]
    pub policy: Option<PolicyConfig>,
    /// The external policies.
    #[serde(default)]
    pub policies: ExternalPolicies,
    /// TLS for client connections; `None`: plain TCP.
    #[serde(default)]
    pub tls: Option<Tls>,
    #[serde(default)]
    pub cors: Option<Cors>,
    #[serde(default)]
    pub profiling: Profiling,
    pub timeouts: Timeouts,
    pub limits: Limits,
    #[serde(default)]
    pub metrics: Metrics,
    /// The reports about exchanges in addition to the metrics.
    #[serde(default)]
    pub telemetry: TelemetryConfig,
    /// The analysis of responses; `None`: no response is analysed.
    #[serde(default)]
    pub analysis: Option<AnalysisConfig>,
    /// SHA-256 of the configuration without its secrets, in hex; it is part of every admission
    /// record.
    pub config_digest: String,
}

impl Config {
    /// Parses a configuration from JSON.
    ///
    /// # Errors
    /// [`Error::Config`] with the position of the first mistake; never with a value.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| {
            Error::Config(format!(
                "the worker configuration is not valid at line {}, column {}",
                error.line(),
                error.column()
            ))
        })
    }

    /// Returns the issuers whose tokens are accepted.
    pub fn issuers(&self) -> &[Issuer] {
        self.jwt.as_ref().map_or(&[], |jwt| &jwt.issuers)
    }

    /// Returns the first field that differs in `other` and that a worker reads only at its start;
    /// `None` if there is no such field.
    pub fn field_requiring_restart(&self, other: &Config) -> Option<&'static str> {
        let fields = [
            ("ledger", self.ledger.has_same_fixed_settings(&other.ledger)),
            ("listen", self.listen == other.listen),
            (
                "proxyProtocol",
                self.proxy_protocol.is_some() == other.proxy_protocol.is_some(),
            ),
            (
                "limits.connections",
                self.limits.connections == other.limits.connections,
            ),
            ("analysis", self.analysis == other.analysis),
        ];
        fields.iter().find(|(_, same)| !same).map(|(name, _)| *name)
    }
}

/// Marks a configuration whose tenants change without a new configuration. The tenants are passed
/// later.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantShards {}

/// JSON Web Tokens instead of API keys.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Jwt {
    /// The issuers of tokens. Their keys are passed later.
    pub issuers: Vec<Issuer>,
}
