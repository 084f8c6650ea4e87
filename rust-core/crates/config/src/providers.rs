//! The sections `providers` and `egress`: the upstreams of requests, and how they are reached.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use proofgate_dialect::UntranslatableFieldPolicy;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::seconds::optional_seconds;

/// A provider, and how requests to it are sent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provider {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ProviderKind,
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// How requests authenticate; `None` if they do not.
    #[serde(default)]
    pub auth: Option<Auth>,
    #[serde(default)]
    pub api_key: Option<String>,
    /// The keys that sign requests; `None` if they are issued while the worker runs, and arrive later.
    #[serde(default)]
    pub aws_keys: Option<AwsKeys>,
    /// The required key or certificate is missing: requests for its models are refused, all others are served.
    #[serde(default)]
    pub key_missing: bool,
    /// The region that requests are signed for, such as `us-east-1`.
    #[serde(default)]
    pub region: Option<String>,
    /// The Vertex AI project of its models.
    #[serde(default)]
    pub project: Option<String>,
    /// A Google region, or `global`.
    #[serde(default)]
    pub location: Option<String>,
    /// The version of Azure's API whose paths name deployments; `None` if its paths do not.
    #[serde(default, rename = "apiVersion")]
    pub azure_api_version: Option<String>,
    /// How an ARN is written in request paths.
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
    /// How Responses reach it, if it supports OpenAI's API.
    #[serde(default)]
    pub responses: ResponsesApiMode,
    /// How fields without a counterpart in its dialect are handled.
    #[serde(default, rename = "untranslatableFields")]
    pub untranslatable: UntranslatableFieldPolicy,
    /// Values of `anthropic-beta` that clients may send to it.
    #[serde(default, rename = "anthropicBetas")]
    pub betas: Option<Vec<String>>,
    /// The tenant whose files and batches it stores.
    #[serde(default)]
    pub objects_of: Option<String>,
    /// Maximum number of concurrent requests; `None` means no limit.
    #[serde(default, rename = "maxConcurrentRequests")]
    pub max_concurrency: Option<u32>,
    /// Minimum number of idle connections.
    #[serde(default, rename = "minIdleConnections")]
    pub min_idle: usize,
    /// The allowed HTTP versions.
    #[serde(default)]
    pub http: HttpVersion,
    /// Its rate limits per minute, as far as this worker may use them.
    #[serde(default, rename = "limits")]
    pub rate: Option<RateLimits>,
    #[serde(default)]
    pub timeouts: Option<ProviderTimeouts>,
    /// Whether it is reached through the egress proxy.
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

    /// Returns the Vertex AI location of its models; `None` if it is not Vertex AI.
    pub fn vertex(&self) -> Option<Vertex<'_>> {
        (self.project.is_some() || self.location.is_some()).then(|| Vertex {
            project: self.project.as_deref().unwrap_or_default(),
            location: self.location.as_deref().unwrap_or_default(),
        })
    }
}

/// How the gateway authenticates to a provider. Keys and tokens are separate fields, or arrive later.
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

/// How requests to Amazon are signed.
#[derive(Clone, Copy)]
pub struct Aws<'p> {
    /// The region for which they are signed, such as `us-east-1`.
    pub region: &'p str,
    /// `None` if they are issued while the worker runs, and arrive later.
    pub keys: Option<&'p AwsKeys>,
}

/// The location of models in Google's Vertex AI.
#[derive(Clone, Copy)]
pub struct Vertex<'p> {
    pub project: &'p str,
    /// A region, or `global`.
    pub location: &'p str,
}

/// The rate limits of a provider per minute; `None` means no limit.
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

/// Timeouts of one provider that differ from the general ones.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderTimeouts {
    #[serde(rename = "connectSeconds", default, deserialize_with = "optional_seconds")]
    pub connect: Option<Duration>,
    #[serde(rename = "firstByteSeconds", default, deserialize_with = "optional_seconds")]
    pub first_byte: Option<Duration>,
    #[serde(rename = "idleSeconds", default, deserialize_with = "optional_seconds")]
    pub idle: Option<Duration>,
    #[serde(rename = "keepAliveSeconds", default, deserialize_with = "optional_seconds")]
    pub keep_alive: Option<Duration>,
}

/// A header field of every request to a provider. It may hold a secret, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderHeader {
    pub name: String,
    /// `None` if it is a secret that is missing: nothing is sent to the provider then.
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
    /// JSON text.
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
    /// The version that it chooses in TLS (ALPN); HTTP/1.1 without TLS.
    Auto,
    #[default]
    Http1,
    /// Only HTTP/2; with prior knowledge if there is no TLS (RFC 9113 section 3.3).
    Http2,
}

/// Whether usage is requested for a stream if the client does not request it.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum StreamUsage {
    /// It is requested, and removed from the client's stream.
    Ask,
    /// The request is sent as the client made it.
    Leave,
}

/// How Responses requests reach a provider of OpenAI's API.
#[derive(Clone, Copy, Default, Deserialize)]
pub enum ResponsesApiMode {
    /// At its own `/responses`, unless its host is known not to have it.
    #[default]
    Auto,
    /// At its own `/responses`.
    Native,
    /// As chat completions.
    Translated,
}

/// The API of a provider.
#[derive(Clone, Copy, Deserialize)]
pub enum ProviderKind {
    #[serde(rename = "OpenAI")]
    OpenAi,
    /// OpenAI's API with another header field for the key.
    #[serde(rename = "AzureOpenAI")]
    AzureOpenAi,
    Anthropic,
    Gemini,
    Bedrock,
    /// Google's API and Anthropic's, below the path of a project.
    #[serde(rename = "VertexAI")]
    VertexAi,
}

/// How the ARN of a model is written in the path of Amazon's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ArnInPath {
    /// As one segment, its colons and slashes percent-encoded.
    #[default]
    Encoded,
    /// Unchanged.
    Literal,
}

/// The destinations to which a worker may connect, and the proxy.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EgressConfig {
    /// Address ranges at which providers may be reached; `None` means all except forbidden ones, such as metadata services.
    #[serde(default)]
    pub allow: Option<Vec<String>>,
    /// The proxy for providers that are configured to use it.
    #[serde(default)]
    pub proxy: Option<EgressProxy>,
}

/// A forward proxy that opens tunnels. It holds credentials, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EgressProxy {
    /// `http://`, the host, and a port if it is not 80.
    pub url: String,
    /// The value of `Proxy-Authorization`; `None` if the proxy requires none.
    #[serde(default)]
    pub authorization: Option<String>,
}
