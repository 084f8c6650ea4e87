//! How clients are met, and how much they may send: the sections `tls`, `cors`, `timeouts`, `limits` and `metrics`.

use std::time::Duration;

use serde::Deserialize;

use crate::seconds::{optional_seconds, seconds};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProxyProtocol {
    /// What the load balancer writes before the name of the tenant that it routed for.
    pub routing_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tls {
    pub certificate_pem: String,
    pub private_key_pem: String,
    pub min_version: String,
    /// Authorities of clients' certificates: a client without one is not served. `None`: no certificate is requested.
    #[serde(default)]
    pub client_ca_pem: Option<String>,
    /// DNS names, one of which a client's certificate must have. Empty: the authority is enough.
    #[serde(default)]
    pub client_names: Vec<String>,
    /// Whether connections without TLS are served as well, behind a load balancer that changes over.
    #[serde(default)]
    pub accept_plain: bool,
}

/// Which web pages may call the gateway from a browser.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cors {
    /// Origins as browsers send them; `*` alone admits every page.
    pub allowed_origins: Vec<String>,
    pub max_age_seconds: u32,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timeouts {
    #[serde(rename = "clientHeadSeconds", deserialize_with = "seconds")]
    pub client_head: Duration,
    #[serde(rename = "clientBodySeconds", deserialize_with = "seconds")]
    pub client_body: Duration,
    #[serde(rename = "clientIdleSeconds", deserialize_with = "seconds")]
    pub client_idle: Duration,
    #[serde(rename = "upstreamConnectSeconds", deserialize_with = "seconds")]
    pub upstream_connect: Duration,
    /// From the begin of an attempt to the head of its answer; `None`: as `upstream_response`.
    #[serde(
        rename = "upstreamFirstByteSeconds",
        default,
        deserialize_with = "optional_seconds"
    )]
    pub upstream_first_byte: Option<Duration>,
    /// Between the bytes of an answer.
    #[serde(rename = "upstreamResponseSeconds", deserialize_with = "seconds")]
    pub upstream_response: Duration,
    /// From a request's head to the end of its answer.
    #[serde(rename = "answerSeconds", deserialize_with = "seconds")]
    pub answer: Duration,
    /// The longest silence of a stream before its client gets a comment; `None`: no comments.
    #[serde(rename = "heartbeatSeconds", default, deserialize_with = "optional_seconds")]
    pub heartbeat: Option<Duration>,
    /// The age of a client's connection after which the next answer ends it.
    #[serde(rename = "connectionAgeSeconds", deserialize_with = "seconds")]
    pub connection_age: Duration,
    #[serde(rename = "drainSeconds", deserialize_with = "seconds")]
    pub drain: Duration,
    #[serde(rename = "lameDuckSeconds", deserialize_with = "seconds")]
    pub lame_duck: Duration,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
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
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metrics {
    /// Combinations of tenant, model and provider that have series of their own, at most.
    pub label_sets: usize,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics { label_sets: 1000 }
    }
}

/// What is measured beside the metrics that are always there.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profiling {
    /// Whether stage profiling is on from the start.
    pub stages: bool,
}

fn upload_bytes() -> u64 {
    512 << 20
}
