//! A worker's configuration, as the Python loader hands it over: checked, complete, every file already read.
//!
//! Each section is here once, in the form in which it is read. What layers make of it (routes, terms, pools, clocks) is
//! theirs.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "only the layers above use it, and the names are clear enough"
)]

mod analysis;
mod read_fields;
mod reasons;
mod telemetry;

use std::num::NonZeroU64;
use std::time::Duration;

use proofgate_auth::{Endpoint, Issuer};
use proofgate_base::Error;
use proofgate_dialect::UntranslatableFieldPolicy;
use proofgate_external_policies::Hooks;
use proofgate_policy::{PolicyConfig, TenantPolicy};
use serde::{Deserialize, Deserializer};

pub use analysis::AnalysisConfig;
pub use read_fields::read_fields;
pub use reasons::{Reason, Reasons};
pub use telemetry::{AccessLogMode, Settings, TelemetryConfig, Traces, TracesConfig};

/// A worker's configuration as the Python loader hands it over: checked, complete, every file already read.
///
/// It holds secrets, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub ledger: Ledger,
    /// What records say of persons.
    #[serde(default)]
    pub personal_data: PersonalData,
    pub listen: String,
    /// Every connection begins with a PROXY v2 header, as from the load balancer; `None` means that clients connect.
    #[serde(default)]
    pub proxy_protocol: Option<ProxyProtocol>,
    pub providers: Vec<Provider>,
    /// Ranges of addresses that providers may be reached at; `None` means all but the machine's own.
    #[serde(default)]
    pub egress_allow: Option<Vec<String>>,
    /// Through what providers are reached that say so.
    #[serde(default)]
    pub egress_proxy: Option<EgressProxy>,
    pub models: Vec<Model>,
    /// What models cost; of those that come with the gateway only when the configuration asks for them.
    #[serde(default)]
    pub prices: Vec<proofgate_prices::PriceEntry>,
    pub tenants: Vec<Tenant>,
    /// What tenants of shards may use, by name.
    #[serde(default)]
    pub plans: Vec<Plan>,
    /// Whether there are tenants in shards, and their digests are part of the configuration's.
    #[serde(default)]
    pub tenant_shards: bool,
    /// The folder of tenants' shred keys, which is read when this comes into service, so that they are nowhere else; `None`
    /// means that salts are stored whole.
    #[serde(default)]
    pub shred_keys: Option<String>,
    /// Issuers of JSON Web Tokens; their keys arrive later.
    #[serde(default)]
    pub jwt: Vec<Issuer>,
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
    /// Whether stage profiling is on from the start.
    #[serde(default)]
    pub profile_stages: bool,
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

    /// The first field in which `other` differs that is only read at the start.
    pub fn needs_restart(&self, other: &Config) -> Option<&'static str> {
        let fields = [
            ("ledger", self.ledger == other.ledger),
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyProtocol {
    /// What the load balancer writes before the name of the tenant that it routed for.
    pub routing_key: String,
}

#[derive(PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    pub name: String,
    pub directory: String,
    pub shard: u32,
    pub durability: Durability,
    #[serde(rename = "checkpoint_interval_ms", deserialize_with = "milliseconds")]
    pub checkpoint_interval: Duration,
    pub signing_key: SigningKeyFile,
    pub segment_bytes: u64,
    /// Bytes of records with which a log ends and the next one begins.
    pub log_bytes: u64,
    /// How long a log lasts at most.
    #[serde(rename = "log_age_ms", deserialize_with = "milliseconds")]
    pub log_age: Duration,
    /// How bodies are stored; `None` where no tenant may have them stored.
    #[serde(default)]
    pub payloads: Option<PayloadsConfig>,
    /// Where a checkpoint of each shard is held, outside the ledger.
    pub held_checkpoints: Option<HeldCheckpoints>,
}

/// What records say of persons beyond pseudonyms: a record cannot be erased, only its whole log removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonalData {
    /// The address of the client.
    #[serde(default)]
    pub client_address: bool,
    /// The end user's name, as the client gives it.
    #[serde(default)]
    pub end_user: bool,
}

/// The memory of bodies that are to be stored.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadsConfig {
    /// Bytes of all copies together, at most.
    pub budget_bytes: usize,
}

/// The text of a signing key's file: the key, the one before it where that is still needed, and statements of succession.
/// Two are equal when the key is.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct SigningKeyFile(pub String);

impl PartialEq for SigningKeyFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.trim_start().lines().next() == other.0.trim_start().lines().next()
    }
}

/// Checkpoints kept where no writer of the volume can change them.
#[derive(PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldCheckpoints {
    /// One file for each shard, named by its number.
    pub directory: String,
    pub by: HeldBy,
}

/// Who keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// The worker itself.
    Worker,
    /// The operator: the worker only reads.
    Operator,
}

/// When a record counts as written.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// After `write(2)`: survives the process, not the machine.
    Written,
    /// After `fdatasync(2)`: survives the machine.
    Synced,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ProviderKind,
    pub base_url: String,
    pub api_key: Option<String>,
    /// What requests to it are signed with, in the place of a key.
    #[serde(default)]
    pub aws: Option<Aws>,
    /// Requests carry an access token in the place of a key, which arrives later. Those to Vertex AI always do.
    #[serde(default)]
    pub access_token: bool,
    /// How an ARN stands in the path of its requests.
    #[serde(default)]
    pub arn_in_path: ArnInPath,
    /// The version of Azure's API whose paths name deployments; `None` where they do not.
    #[serde(default)]
    pub azure_api_version: Option<String>,
    /// Where its models are in Vertex AI; requests carry an access token then, which arrives later.
    #[serde(default)]
    pub vertex: Option<Vertex>,
    /// It wants a key or a certificate and there is none: its models are refused, and everything else goes on.
    #[serde(default)]
    pub key_missing: bool,
    pub ca_pem: Option<String>,
    /// What the worker shows to it, with its intermediates.
    #[serde(default)]
    pub client_certificate_pem: Option<String>,
    #[serde(default)]
    pub client_key_pem: Option<String>,
    pub stream_usage: StreamUsage,
    /// How Responses reach it, where it speaks OpenAI's API.
    #[serde(default)]
    pub responses: Responses,
    /// What becomes of fields that its dialect has no counterpart for.
    #[serde(default)]
    pub untranslatable: UntranslatableFieldPolicy,
    /// Values of `anthropic-beta` that clients may send to it.
    #[serde(default)]
    pub betas: Option<Vec<String>>,
    /// The tenant whose files and batches it keeps.
    #[serde(default)]
    pub objects_of: Option<String>,
    /// Requests that may be under way there at a time; `None` means any number.
    #[serde(default)]
    pub max_concurrency: Option<u32>,
    /// Idle connections that are to be there.
    #[serde(default)]
    pub min_idle: usize,
    /// What may be spoken with it.
    #[serde(default)]
    pub http: Http,
    /// What it allows in a minute, as far as this worker may use it.
    #[serde(default)]
    pub rate: RateLimits,
    #[serde(default)]
    pub timeouts: ProviderTimeouts,
    /// It is reached through the egress proxy.
    #[serde(default)]
    pub proxied: bool,
    /// Header fields of every request to it.
    #[serde(default)]
    pub headers: Vec<ProviderHeader>,
    /// Fields that are set in every JSON body that it is sent.
    #[serde(default)]
    pub body_fields: Vec<BodyField>,
}

/// What may be asked of a provider in a minute; `None` means any amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimits {
    #[serde(default)]
    pub requests_per_minute: Option<NonZeroU64>,
    /// Of prompts and answers.
    #[serde(default)]
    pub tokens_per_minute: Option<NonZeroU64>,
}

impl RateLimits {
    /// Whether the tokens of a request have to be known.
    pub fn counts_tokens(self) -> bool {
        self.tokens_per_minute.is_some()
    }
}

/// A forward proxy that opens tunnels. It holds credentials, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressProxy {
    pub host: String,
    pub port: u16,
    /// The value of `Proxy-Authorization`; `None` where it wants none.
    #[serde(default)]
    pub authorization: Option<String>,
}

/// A header field of every request to a provider. It may hold a secret, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderHeader {
    pub name: String,
    /// `None` where it is a secret that is not there: nothing is sent to the provider then.
    pub value: Option<String>,
    /// Whether the value is never to be logged.
    pub secret: bool,
}

/// A field of every JSON body that a provider is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyField {
    pub name: String,
    /// JSON text.
    pub value: String,
}

/// How long one provider may take, where that is not what holds for all.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderTimeouts {
    #[serde(rename = "connect_ms", default, deserialize_with = "optional_milliseconds")]
    pub connect: Option<Duration>,
    #[serde(rename = "first_byte_ms", default, deserialize_with = "optional_milliseconds")]
    pub first_byte: Option<Duration>,
    #[serde(rename = "idle_ms", default, deserialize_with = "optional_milliseconds")]
    pub idle: Option<Duration>,
    #[serde(rename = "keep_alive_ms", default, deserialize_with = "optional_milliseconds")]
    pub keep_alive: Option<Duration>,
}

/// Which HTTP is spoken with a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Http {
    /// What it chooses in TLS (ALPN); HTTP/1.1 without TLS.
    Auto,
    #[default]
    Http1,
    /// HTTP/2 and nothing else; without TLS with prior knowledge (RFC 9113 section 3.3).
    Http2,
}

/// Whether a stream is asked for its usage when the client does not ask.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamUsage {
    /// It is, and the client does not get it.
    Ask,
    /// The provider gets the request as the client made it.
    Leave,
}

/// How Responses reach a provider of OpenAI's API.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Responses {
    /// At its own `/responses`, unless its host is known to have none.
    #[default]
    Auto,
    /// At its own `/responses`.
    Native,
    /// As chat completions.
    Translated,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    #[serde(rename = "openai")]
    OpenAi,
    /// The same API, with another field for the key.
    #[serde(rename = "azure_openai")]
    AzureOpenAi,
    Anthropic,
    Gemini,
    Bedrock,
    /// Google's API and Anthropic's, below the path of a project.
    VertexAi,
}

/// Where models are in Google's Vertex AI.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vertex {
    pub project: String,
    /// A region, or `global`.
    pub location: String,
}

/// How a model that is named by an ARN stands in the path of Amazon's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArnInPath {
    /// As one segment, its colons and slashes percent-encoded.
    #[default]
    Encoded,
    /// As it is.
    Literal,
}

/// How requests to Amazon are signed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aws {
    /// The region that they are signed for, such as `us-east-1`.
    pub region: String,
    /// `None` where they are issued while the worker runs, and arrive later.
    pub keys: Option<AwsKeys>,
}

/// Whose signature requests to Amazon carry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwsKeys {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// Of temporary credentials.
    pub session_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub name: String,
    pub targets: Vec<Target>,
    /// What sends a request on to the next of them.
    #[serde(default)]
    pub fall_back_on: Reasons,
    /// Tokens set aside for the answer when a request names no maximum.
    pub max_output_tokens: u64,
}

/// A provider that answers for a model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub provider: String,
    pub upstream_model: String,
    /// Its share of the requests; of 0 it gets those that failed elsewhere.
    pub weight: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub name: String,
    pub models: Option<Vec<String>>,
    pub endpoints: Option<Vec<Endpoint>>,
    /// Kinds of tools that the provider may run.
    #[serde(default)]
    pub hosted_tools: Vec<String>,
    /// How often they may be called, where a budget in money counts.
    #[serde(default)]
    pub tool_calls: ToolCalls,
    /// Features of Anthropic's API that it may not use, by the names of their betas.
    #[serde(default)]
    pub denied_betas: Vec<String>,
    /// Tools that may not be called after a text of a tool that reads like instructions.
    #[serde(default)]
    pub guarded_tools: Option<GuardedTools>,
    /// Of a tenant as a whole.
    pub limits: proofgate_limits::Limits,
    /// Of each of its keys by itself.
    pub key_limits: proofgate_limits::Limits,
    /// What may be spent on models.
    #[serde(default)]
    pub model_budgets: Vec<proofgate_limits::ModelBudget>,
    /// What the tenants of shards share that are of one namespace and have this plan.
    #[serde(default)]
    pub namespace_limits: proofgate_limits::Limits,
    /// How long a request waits that fits once others have given back what they reserved.
    #[serde(rename = "wait_ms", default, deserialize_with = "milliseconds")]
    pub wait: Duration,
    pub policy: Option<TenantPolicy>,
    /// Names of the policies that its requests ask for, in their order.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Bytes of a body that is stored, at most; `None` means that none is.
    #[serde(default)]
    pub payload_bytes: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    pub name: String,
    pub keys: Vec<ApiKey>,
    pub models: Option<Vec<String>>,
    pub endpoints: Option<Vec<Endpoint>>,
    /// Kinds of tools that the provider may run.
    #[serde(default)]
    pub hosted_tools: Vec<String>,
    /// How often they may be called, where a budget in money counts.
    #[serde(default)]
    pub tool_calls: ToolCalls,
    /// Features of Anthropic's API that it may not use, by the names of their betas.
    #[serde(default)]
    pub denied_betas: Vec<String>,
    /// Tools that may not be called after a text of a tool that reads like instructions.
    #[serde(default)]
    pub guarded_tools: Option<GuardedTools>,
    /// Of the tenant as a whole.
    pub limits: proofgate_limits::Limits,
    /// Of each of its keys by itself.
    pub key_limits: proofgate_limits::Limits,
    /// What may be spent on models.
    #[serde(default)]
    pub model_budgets: Vec<proofgate_limits::ModelBudget>,
    /// How long a request waits that fits once others have given back what they reserved.
    #[serde(rename = "wait_ms", default, deserialize_with = "milliseconds")]
    pub wait: Duration,
    pub policy: Option<TenantPolicy>,
    /// Names of the policies that its requests ask for, in their order.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Bytes of a body that is stored, at most; `None` means that none is.
    #[serde(default)]
    pub payload_bytes: Option<usize>,
}

/// Tools that may not be called after a text of a tool that reads like instructions.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardedTools {
    /// Their names; one with a `*` at its end stands for all that begin so.
    pub names: Vec<String>,
    pub on_flag: OnFlag,
}

/// What becomes of a call of a guarded tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFlag {
    /// It is not delivered.
    Refuse,
    /// It is not delivered without an approval.
    RequireApproval,
}

/// How often tools may be called that a provider runs itself.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCalls {
    /// Calls of a request, or of one of its tools, that names no bound.
    pub most: u64,
    /// Tokens that a call is expected to bring at most; `None` for as many as the model takes.
    pub tokens: Option<u64>,
}

impl Default for ToolCalls {
    fn default() -> Self {
        ToolCalls {
            most: 10,
            tokens: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// SHA-256 in hex.
    pub hash: String,
    /// Unix seconds from which on the key is refused.
    pub expires_at: Option<u64>,
    /// What its tenant calls it.
    #[serde(default)]
    pub name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub certificate_pem: String,
    pub private_key_pem: String,
    pub min_version: String,
    /// Authorities of clients' certificates: whoever shows none is not served. `None` asks nobody for one.
    #[serde(default)]
    pub client_ca_pem: Option<String>,
    /// Of these DNS names, a client's certificate has to have one; without any, the authority is enough.
    #[serde(default)]
    pub client_names: Vec<String>,
    /// Whether connections without TLS are served as well, behind a load balancer that changes over.
    #[serde(default)]
    pub accept_plain: bool,
}

/// Which web pages may call the gateway from a browser.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cors {
    /// Origins as browsers send them; `*` alone admits every page.
    pub allowed_origins: Vec<String>,
    pub max_age_seconds: u32,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    #[serde(rename = "client_head_ms", deserialize_with = "milliseconds")]
    pub client_head: Duration,
    #[serde(rename = "client_body_ms", deserialize_with = "milliseconds")]
    pub client_body: Duration,
    #[serde(rename = "client_idle_ms", deserialize_with = "milliseconds")]
    pub client_idle: Duration,
    #[serde(rename = "upstream_connect_ms", deserialize_with = "milliseconds")]
    pub upstream_connect: Duration,
    /// From the begin of an attempt to the head of its answer; `None`: as `upstream_response`.
    #[serde(
        rename = "upstream_first_byte_ms",
        default,
        deserialize_with = "optional_milliseconds"
    )]
    pub upstream_first_byte: Option<Duration>,
    /// Between the bytes of an answer.
    #[serde(rename = "upstream_response_ms", deserialize_with = "milliseconds")]
    pub upstream_response: Duration,
    /// From a request's head to the end of its answer.
    #[serde(rename = "answer_ms", deserialize_with = "milliseconds")]
    pub answer: Duration,
    /// How long a stream is silent at most before its client is told that it goes on; `None`: for ever.
    #[serde(rename = "heartbeat_ms", default, deserialize_with = "optional_milliseconds")]
    pub heartbeat: Option<Duration>,
    /// Of a client's connection, after which the next answer ends it.
    #[serde(rename = "connection_age_ms", deserialize_with = "milliseconds")]
    pub connection_age: Duration,
    #[serde(rename = "drain_ms", deserialize_with = "milliseconds")]
    pub drain: Duration,
    #[serde(rename = "lame_duck_ms", deserialize_with = "milliseconds")]
    pub lame_duck: Duration,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub head_bytes: usize,
    pub body_bytes: u64,
    /// Bytes of a form with files, of which only a part is held.
    #[serde(default = "upload_bytes")]
    pub upload_bytes: u64,
    pub connections: usize,
    /// File descriptors that the worker counts on; by default as many as the process may open.
    #[serde(default)]
    pub descriptors: Option<u64>,
    /// Bytes of request bodies that may be in memory at a time, of all connections together.
    pub buffered_bytes: u64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Combinations of tenant, model and provider that have series of their own, at most.
    pub label_sets: usize,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics { label_sets: 1000 }
    }
}

fn upload_bytes() -> u64 {
    512 << 20
}

fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

/// None for 0.
fn optional_milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let duration = milliseconds(deserializer)?;
    Ok((!duration.is_zero()).then_some(duration))
}
