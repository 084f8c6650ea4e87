//! A worker's configuration, as the Python loader hands it over: checked, complete, every file already read.
//!
//! The document has the sections of the configuration file, with their names, words and units. Beside them stands what is
//! in files (keys, certificates), and what was put together from several places. Each section is here once, in the form in
//! which it is read. What layers make of it (routes, terms, pools, clocks) is
//! theirs.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "only the layers above use it, and the names are clear enough"
)]

mod analysis;
mod clients;
mod ledger;
mod models;
mod providers;
mod read_fields;
mod reasons;
mod seconds;
mod telemetry;
mod terms;

use proofgate_auth::Issuer;
use proofgate_base::Error;
use proofgate_external_policies::Hooks;
use proofgate_policy::PolicyConfig;
use serde::Deserialize;

pub use analysis::AnalysisConfig;
pub use clients::{Cors, Limits, Metrics, Profiling, ProxyProtocol, Timeouts, Tls};
pub use ledger::{
    Durability, HeldBy, HeldCheckpoints, Ledger, LogRotation, PayloadMode, PayloadsConfig, PersonalData,
    SigningKeyFile,
};
pub use models::{Fallback, Model, Route, Target};
pub use providers::{
    ArnInPath, Auth, AuthType, Aws, AwsKeys, BodyField, BodyFields, EgressConfig, EgressProxy, Http,
    Provider, ProviderHeader, ProviderKind, ProviderTimeouts, RateLimits, Responses, StreamUsage, Vertex,
};
pub use read_fields::read_fields;
pub use reasons::{Reason, Reasons};
pub use telemetry::{AccessLogMode, Settings, TelemetryConfig, Traces, TracesConfig};
pub use terms::{ApiKey, GuardedTools, HostedTools, OnFlag, Plan, Tenant};

/// A worker's configuration as the Python loader hands it over: checked, complete, every file already read.
///
/// It holds secrets, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    pub ledger: Ledger,
    pub listen: String,
    /// Every connection begins with a PROXY v2 header, as from the load balancer; `None` means that clients connect.
    #[serde(default)]
    pub proxy_protocol: Option<ProxyProtocol>,
    pub providers: Vec<Provider>,
    #[serde(default)]
    pub egress: Option<EgressConfig>,
    pub models: Vec<Model>,
    /// What models cost; of those that come with the gateway only when the configuration asks for them.
    #[serde(default)]
    pub prices: Vec<proofgate_prices::PriceEntry>,
    pub tenants: Vec<Tenant>,
    /// What tenants of shards may use, by name.
    #[serde(default)]
    pub plans: Vec<Plan>,
    /// There are tenants in shards, and their digests are part of the configuration's.
    #[serde(default)]
    pub tenant_shards: Option<TenantShards>,
    #[serde(default)]
    pub jwt: Option<Jwt>,
    /// The rules; `None` means that nothing is scanned.
    #[serde(default)]
    pub policy: Option<PolicyConfig>,
    /// The policies that are evaluated outside of the data plane.
    #[serde(default, rename = "policies")]
    pub hooks: Hooks,
    /// TLS towards clients; `None` means plain TCP.
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
    /// What is told of exchanges beyond the metrics.
    #[serde(default)]
    pub telemetry: TelemetryConfig,
    /// Which answers are analysed; `None` means that none is.
    #[serde(default)]
    pub analysis: Option<AnalysisConfig>,
    /// SHA-256 of the configuration without its secrets, in hex; stands in every admission.
    pub config_digest: String,
}

impl Config {
    /// Reads a configuration from JSON.
    ///
    /// # Errors
    /// [`Error::Config`] with the place of the first mistake; never with a value.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| {
            Error::Config(format!(
                "line {} column {} of the worker configuration",
                error.line(),
                error.column()
            ))
        })
    }

    /// Issuers of tokens that are believed.
    pub fn issuers(&self) -> &[Issuer] {
        self.jwt.as_ref().map_or(&[], |jwt| &jwt.issuers)
    }

    /// The first field in which `other` differs that is only read at the start.
    pub fn needs_restart(&self, other: &Config) -> Option<&'static str> {
        let fields = [
            ("ledger", self.ledger.is_fixed_as(&other.ledger)),
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

/// Tenants that change without a new configuration. They arrive later.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantShards {}

/// JSON Web Tokens instead of API keys.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Jwt {
    /// Their keys arrive later.
    pub issuers: Vec<Issuer>,
}
