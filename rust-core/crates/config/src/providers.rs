//! The sections `providers` and `egress`: where requests go, and how.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use proofgate_dialect::UntranslatableFieldPolicy;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::seconds::optional_seconds;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provider {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ProviderKind,
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// What its requests carry; `None` where they carry nothing.
    #[serde(default)]
    pub auth: Option<Auth>,
    #[serde(default)]
    pub api_key: Option<String>,
    /// What requests to it are signed with; `None` where that is issued while the worker runs, and arrives later.
    #[serde(default)]
    pub aws_keys: Option<AwsKeys>,
    /// It needs a key or a certificate and there is none: requests for its models are refused, and for all others are not.
    #[serde(default)]
    pub key_missing: bool,
    /// The region that requests are signed for, such as `us-east-1`.
    #[serde(default)]
    pub region: Option<String>,
    /// Where its models are in Vertex AI.
    #[serde(default)]
    pub project: Option<String>,
    /// A region of Google's, or `global`.
    #[serde(default)]
    pub location: Option<String>,
    /// The version of Azure's API whose paths name deployments; `None` where they do not.
    #[serde(default, rename = "apiVersion")]
    pub azure_api_version: Option<String>,
    /// How an ARN stands in the path of its requests.
    #[serde(default)]
    pub arn_in_path: ArnInPath,
    #[serde(default)]
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
    #[serde(default, rename = "untranslatableFields")]
    pub untranslatable: UntranslatableFieldPolicy,
    /// Values of `anthropic-beta` that clients may send to it.
    #[serde(default, rename = "anthropicBetas")]
    pub betas: Option<Vec<String>>,
    /// The tenant whose files and batches it keeps.
    #[serde(default)]
    pub objects_of: Option<String>,
    /// Requests that may be under way there at a time; `None` means any number.
    #[serde(default, rename = "maxConcurrentRequests")]
    pub max_concurrency: Option<u32>,
    /// Idle connections that are to be there.
    #[serde(default, rename = "minIdleConnections")]
    pub min_idle: usize,
    /// What may be spoken with it.
    #[serde(default)]
    pub http: Http,
    /// What it allows in a minute, as far as this worker may use it.
    #[serde(default, rename = "limits")]
    pub rate: Option<RateLimits>,
    #[serde(default)]
    pub timeouts: Option<ProviderTimeouts>,
    /// It is reached through the egress proxy.
    #[serde(default)]
    pub proxied: bool,
    /// Header fields of every request to it.
    #[serde(default)]
    pub headers: Vec<ProviderHeader>,
    /// Fields that are set in every JSON body that it is sent.
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

    /// How requests to Amazon are signed; `None` where they are not.
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

    /// Where its models are in Vertex AI; `None` where they are not there.
    pub fn vertex(&self) -> Option<Vertex<'_>> {
        (self.project.is_some() || self.location.is_some()).then(|| Vertex {
            project: self.project.as_deref().unwrap_or_default(),
            location: self.location.as_deref().unwrap_or_default(),
        })
    }
}

/// How the gateway authenticates to a provider. Keys and tokens stand beside it, or arrive later.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Auth {
    #[serde(rename = "type")]
    pub kind: AuthType,
}

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

/// Whose signature requests to Amazon carry.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AwsKeys {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// Of temporary credentials.
    #[serde(default)]
    pub session_token: Option<String>,
}

/// How requests to Amazon are signed.
#[derive(Clone, Copy)]
pub struct Aws<'p> {
    /// The region that they are signed for, such as `us-east-1`.
    pub region: &'p str,
    /// `None` where they are issued while the worker runs, and arrive later.
    pub keys: Option<&'p AwsKeys>,
}

/// Where models are in Google's Vertex AI.
#[derive(Clone, Copy)]
pub struct Vertex<'p> {
    pub project: &'p str,
    /// A region, or `global`.
    pub location: &'p str,
}

/// What may be asked of a provider in a minute; `None` means any amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
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

/// How long one provider may take, where that is not what holds for all.
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
    /// `None` where it is a secret that is not there: nothing is sent to the provider then.
    #[serde(default)]
    pub value: Option<String>,
    /// Whether the value is never to be logged.
    #[serde(default)]
    pub secret: bool,
}

/// Fields of every JSON body that a provider is sent, by their names.
pub struct BodyFields(pub Vec<BodyField>);

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

/// Which HTTP is spoken with a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
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
pub enum StreamUsage {
    /// It is, and the client does not get it.
    Ask,
    /// The provider gets the request as the client made it.
    Leave,
}

/// How Responses reach a provider of OpenAI's API.
#[derive(Clone, Copy, Default, Deserialize)]
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
pub enum ProviderKind {
    #[serde(rename = "OpenAI")]
    OpenAi,
    /// The same API, with another field for the key.
    #[serde(rename = "AzureOpenAI")]
    AzureOpenAi,
    Anthropic,
    Gemini,
    Bedrock,
    /// Google's API and Anthropic's, below the path of a project.
    #[serde(rename = "VertexAI")]
    VertexAi,
}

/// How a model that is named by an ARN stands in the path of Amazon's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ArnInPath {
    /// As one segment, its colons and slashes percent-encoded.
    #[default]
    Encoded,
    /// As it is.
    Literal,
}

/// Where a worker may connect to, and through what.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EgressConfig {
    /// Ranges of addresses that providers may be reached at; `None` means all but the machine's own.
    #[serde(default)]
    pub allow: Option<Vec<String>>,
    /// Through what providers are reached that say so.
    #[serde(default)]
    pub proxy: Option<EgressProxy>,
}

/// A forward proxy that opens tunnels. It holds credentials, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EgressProxy {
    /// `http://`, the host, and a port if it is not 80.
    pub url: String,
    /// The value of `Proxy-Authorization`; `None` where it wants none.
    #[serde(default)]
    pub authorization: Option<String>,
}
