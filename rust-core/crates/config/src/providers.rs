//! The sections `providers` and `egress`: the upstreams of requests, and the connections to them.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use proofgate_dialect::UntranslatableFieldPolicy;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::seconds::optional_seconds;

/// A provider of models, with the settings for requests to it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provider {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ProviderKind,
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// The authentication of requests; `None`: requests have no credentials.
    #[serde(default)]
    pub auth: Option<Auth>,
    #[serde(default)]
    pub api_key: Option<String>,
    /// The keys that sign requests; `None` if they are issued while the worker runs.
    #[serde(default)]
    pub aws_keys: Option<AwsKeys>,
    /// Whether the required key or certificate is missing: requests for the provider's models are
    /// then refused, and all others are served.
    #[serde(default)]
    pub key_missing: bool,
    /// The AWS region for which requests are signed, such as `us-east-1`.
    #[serde(default)]
    pub region: Option<String>,
    /// The Vertex AI project of the provider's models.
    #[serde(default)]
    pub project: Option<String>,
    /// A Google region, or `global`.
    #[serde(default)]
    pub location: Option<String>,
    /// The version of Azure's API whose paths name deployments; `None`: paths do not name
    /// deployments.
    #[serde(default, rename = "apiVersion")]
    pub azure_api_version: Option<String>,
    /// The notation of an ARN in request paths.
    #[serde(default)]
    pub arn_in_path: ArnInPath,
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// The worker's client certificate for the provider, with its intermediates.
    #[serde(default)]
    pub client_certificate_pem: Option<String>,
    #[serde(default)]
    pub client_key_pem: Option<String>,
    pub stream_usage: StreamUsage,
    /// The form in which Responses requests are sent, if the provider has OpenAI's API.
    #[serde(default)]
    pub responses: ResponsesApiMode,
    /// The handling of fields without a counterpart in the provider's dialect.
    #[serde(default, rename = "untranslatableFields")]
    pub untranslatable: UntranslatableFieldPolicy,
    /// Values of `anthropic-beta` that clients may send to the provider; `None`: all values.
    #[serde(default, rename = "anthropicBetas")]
    pub betas: Option<Vec<String>>,
    /// The tenant whose files and batches the provider stores; `None`: the provider stores none.
    #[serde(default)]
    pub objects_of: Option<String>,
    /// Maximum number of concurrent requests; `None`: no limit.
    #[serde(default, rename = "maxConcurrentRequests")]
    pub max_concurrency: Option<u32>,
    /// Minimum number of idle connections.
    #[serde(default, rename = "minIdleConnections")]
    pub min_idle: usize,
    /// The allowed HTTP versions.
    #[serde(default)]
    pub http: HttpVersion,
    /// The part of the provider's rate limits per minute that this worker may use; `None`: no
    /// limits.
    #[serde(default, rename = "limits")]
    pub rate: Option<RateLimits>,
    #[serde(default)]
    pub timeouts: Option<ProviderTimeouts>,
    /// Whether the provider is reached through the egress proxy.
    #[serde(default)]
    pub proxied: bool,
    /// Header fields of every request to it.
    #[serde(default)]
    pub headers: Vec<ProviderHeader>,
    /// Fields that are set in every JSON body sent to it.
    #[serde(default)]
    pub body_fields: Option<BodyFields>,
}

impl Provider {
    /// Whether requests carry an access token, which arrives later.
    pub fn takes_access_token(&self) -> bool {
        let is_token = |auth: &Auth| match auth.kind {
            AuthType::AzureWorkloadIdentity
            | AuthType::GcpServiceAccountKey
            | AuthType::GcpWorkloadIdentity
            | AuthType::GcpMetadataServer => true,
            AuthType::ApiKey
            | AuthType::AwsStaticKeys
            | AuthType::AwsWebIdentity
            | AuthType::AwsPodIdentity => false,
        };
        matches!(self.kind, ProviderKind::VertexAi) || self.auth.as_ref().is_some_and(is_token)
    }

    /// Returns how requests to Amazon are signed; `None` if they are not.
    pub fn aws(&self) -> Option<Aws<'_>> {
        let is_signed = |auth: &&Auth| match auth.kind {
            AuthType::AwsStaticKeys | AuthType::AwsWebIdentity | AuthType::AwsPodIdentity => true,
            AuthType::ApiKey
            | AuthType::AzureWorkloadIdentity
            | AuthType::GcpServiceAccountKey
            | AuthType::GcpWorkloadIdentity
            | AuthType::GcpMetadataServer => false,
        };
        self.auth.as_ref().filter(is_signed).map(|_| Aws {
            region: self.region.as_deref().unwrap_or_default(),
            keys: self.aws_keys.as_ref(),
        })
    }

    /// Returns the Vertex AI location of the provider's models; `None` if it is not Vertex AI.
    pub fn vertex(&self) -> Option<Vertex<'_>> {
        (self.project.is_some() || self.location.is_some()).then(|| Vertex {
            project: self.project.as_deref().unwrap_or_default(),
            location: self.location.as_deref().unwrap_or_default(),
        })
    }
}

/// The authentication of the gateway to a provider. Keys and tokens are in separate fields, or are
/// issued later.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Auth {
    #[serde(rename = "type")]
    pub kind: AuthType,
}

/// The kind of credentials for a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum AuthType {
    #[serde(rename = "APIKey")]
    ApiKey,
    #[serde(rename = "AWSStaticKeys")]
    AwsStaticKeys,
    #[serde(rename = "AWSWebIdentity")]
    AwsWebIdentity,
    #[serde(rename = "AWSPodIdentity")]
    AwsPodIdentity,
    AzureWorkloadIdentity,
    #[serde(rename = "GCPServiceAccountKey")]
    GcpServiceAccountKey,
    #[serde(rename = "GCPWorkloadIdentity")]
    GcpWorkloadIdentity,
    #[serde(rename = "GCPMetadataServer")]
    GcpMetadataServer,
}

/// The keys that sign requests to Amazon.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AwsKeys {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// The session token of temporary credentials.
    #[serde(default)]
    pub session_token: Option<String>,
}

/// The signing of requests to Amazon.
#[derive(Clone, Copy)]
pub struct Aws<'p> {
    /// The region for which requests are signed, such as `us-east-1`.
    pub region: &'p str,
    /// The keys that sign requests; `None` if they are issued while the worker runs.
    pub keys: Option<&'p AwsKeys>,
}

/// The location of models in Google's Vertex AI.
#[derive(Clone, Copy)]
pub struct Vertex<'p> {
    pub project: &'p str,
    /// A region, or `global`.
    pub location: &'p str,
}

/// The rate limits of a provider per minute; `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RateLimits {
    #[serde(default)]
    pub requests_per_minute: Option<NonZeroU64>,
    /// Tokens of prompts and responses.
    #[serde(default)]
    pub tokens_per_minute: Option<NonZeroU64>,
}

impl RateLimits {
    /// Whether the tokens of a request must be counted.
    pub fn counts_tokens(self) -> bool {
        self.tokens_per_minute.is_some()
    }
}

/// Timeouts of one provider, instead of the general ones.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderTimeouts {
    /// Maximum time to connect (TCP and TLS).
    #[serde(rename = "connectSeconds", default, deserialize_with = "optional_seconds")]
    pub connect: Option<Duration>,
    /// Maximum time until the response starts.
    #[serde(rename = "firstByteSeconds", default, deserialize_with = "optional_seconds")]
    pub first_byte: Option<Duration>,
    /// Maximum time between bytes of a response.
    #[serde(rename = "idleSeconds", default, deserialize_with = "optional_seconds")]
    pub idle: Option<Duration>,
    /// Time for which an idle connection is kept.
    #[serde(rename = "keepAliveSeconds", default, deserialize_with = "optional_seconds")]
    pub keep_alive: Option<Duration>,
}

/// A header field of every request to a provider. It may contain a secret, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderHeader {
    pub name: String,
    /// The field's value; `None` if it is a missing secret: nothing is sent to the provider then.
    #[serde(default)]
    pub value: Option<String>,
    /// Whether the value must never be logged.
    #[serde(default)]
    pub secret: bool,
}

/// Fields that are set in every JSON body sent to a provider, by name.
pub struct BodyFields(pub Vec<BodyField>);

/// A field that is set in every JSON body sent to a provider.
pub struct BodyField {
    pub name: String,
    /// The field's value as JSON text.
    pub value: String,
}

impl<'de> Deserialize<'de> for BodyFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = BodyFields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BodyFields, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    let value = value.get().to_owned();
                    fields.push(BodyField { name, value });
                }
                Ok(BodyFields(fields))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The HTTP version for a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum HttpVersion {
    /// The version that the provider chooses in TLS (ALPN); HTTP/1.1 without TLS.
    Auto,
    #[default]
    Http1,
    /// Only HTTP/2; without TLS, with prior knowledge (RFC 9113 section 3.3).
    Http2,
}

/// Whether the gateway requests the usage of a stream if the client does not.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum StreamUsage {
    /// The gateway requests the usage, and removes it from the client's stream.
    Ask,
    /// The request is sent unchanged.
    Leave,
}

/// The form in which Responses requests are sent to a provider with OpenAI's API.
#[derive(Clone, Copy, Default, Deserialize)]
pub enum ResponsesApiMode {
    /// To the provider's `/responses`, unless its host is known not to have that path.
    #[default]
    Auto,
    /// To the provider's `/responses`.
    Native,
    /// As chat completions.
    Translated,
}

/// The API of a provider.
#[derive(Clone, Copy, Deserialize)]
pub enum ProviderKind {
    #[serde(rename = "OpenAI")]
    OpenAi,
    /// OpenAI's API with a different header field for the key.
    #[serde(rename = "AzureOpenAI")]
    AzureOpenAi,
    Anthropic,
    Gemini,
    Bedrock,
    /// Google's and Anthropic's APIs, below the path of a project.
    #[serde(rename = "VertexAI")]
    VertexAi,
}

/// The notation of a model's ARN in the path of Amazon's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ArnInPath {
    /// As one segment with percent-encoded colons and slashes.
    #[default]
    Encoded,
    /// Unchanged.
    Literal,
}

/// The destinations to which a worker may connect, and the proxy.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EgressConfig {
    /// Address ranges at which providers may be reached; `None`: all except forbidden ones, such as
    /// metadata services.
    #[serde(default)]
    pub allow: Option<Vec<String>>,
    /// The proxy for providers that are configured to use it; `None`: no proxy.
    #[serde(default)]
    pub proxy: Option<EgressProxy>,
}

/// A forward proxy that opens tunnels. It contains credentials, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EgressProxy {
    /// The URL: `http://`, the host, and a port if it is not 80.
    pub url: String,
    /// The value of `Proxy-Authorization`; `None`: the proxy requires no credentials.
    #[serde(default)]
    pub authorization: Option<String>,
}
