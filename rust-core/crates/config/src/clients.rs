//! Client connections and their limits: the sections `tls`, `cors`, `timeouts`, `limits` and `metrics`.

use std::time::Duration;

use serde::Deserialize;

use crate::seconds::{optional_seconds, seconds};

/// The PROXY protocol between the load balancer and the worker.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProxyProtocol {
    /// The secret that the load balancer writes before the name of the routed tenant.
    pub routing_key: String,
}

/// TLS for client connections.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tls {
    pub certificate_pem: String,
    pub private_key_pem: String,
    pub min_version: String,
    /// Certificate authorities of clients, in PEM: a client without a certificate of these is
    /// refused. `None`: no certificate is requested.
    #[serde(default)]
    pub client_ca_pem: Option<String>,
    /// DNS names of which a client's certificate must have one. Empty: any certificate of the
    /// authorities is accepted.
    #[serde(default)]
    pub client_names: Vec<String>,
    /// Whether connections without TLS are served as well, during the migration of a load balancer.
    #[serde(default)]
    pub accept_plain: bool,
}

/// The web pages that may call the gateway from a browser.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cors {
    /// Origins as browsers send them; a single `*` allows every page.
    pub allowed_origins: Vec<String>,
    /// Seconds for which a browser may cache the response to a preflight request.
    pub max_age_seconds: u32,
}

/// The timeouts of exchanges and of client connections.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timeouts {
    /// Maximum time for a request's head.
    #[serde(rename = "clientHeadSeconds", deserialize_with = "seconds")]
    pub client_head: Duration,
    /// Maximum time for a request's body.
    #[serde(rename = "clientBodySeconds", deserialize_with = "seconds")]
    pub client_body: Duration,
    /// Maximum time between two requests of a connection, and for one write to the client.
    #[serde(rename = "clientIdleSeconds", deserialize_with = "seconds")]
    pub client_idle: Duration,
    /// Maximum time to connect to a provider.
    #[serde(rename = "upstreamConnectSeconds", deserialize_with = "seconds")]
    pub upstream_connect: Duration,
    /// Maximum time from the start of an attempt to the head of its response; `None`: as
    /// `upstream_response`.
    #[serde(
        rename = "upstreamFirstByteSeconds",
        default,
        deserialize_with = "optional_seconds"
    )]
    pub upstream_first_byte: Option<Duration>,
    /// Maximum time between two reads of a response.
    #[serde(rename = "upstreamResponseSeconds", deserialize_with = "seconds")]
    pub upstream_response: Duration,
    /// Maximum time from a request's head to the end of its response.
    #[serde(rename = "answerSeconds", deserialize_with = "seconds")]
    pub answer: Duration,
    /// Maximum silence of a stream before the client receives a comment; `None`: no comments.
    #[serde(rename = "heartbeatSeconds", default, deserialize_with = "optional_seconds")]
    pub heartbeat: Option<Duration>,
    /// The age of a client's connection after which the next response closes it.
    #[serde(rename = "connectionAgeSeconds", deserialize_with = "seconds")]
    pub connection_age: Duration,
    /// Time after the lame duck in which exchanges in flight can finish.
    #[serde(rename = "drainSeconds", deserialize_with = "seconds")]
    pub drain: Duration,
    /// Time for which a stopping worker still accepts connections.
    #[serde(rename = "lameDuckSeconds", deserialize_with = "seconds")]
    pub lame_duck: Duration,
}

/// Limits of requests and of memory.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Maximum bytes of a request's head.
    pub head_bytes: usize,
    /// Maximum bytes of a request's body, and of a buffered response.
    pub body_bytes: u64,
    /// Maximum bytes of a form with files, of which only a part is held in memory.
    #[serde(default = "upload_bytes")]
    pub upload_bytes: u64,
    /// Maximum number of client connections.
    pub connections: usize,
    /// Number of file descriptors that the worker may use; `None`: as many as the process may open.
    #[serde(default)]
    pub descriptors: Option<u64>,
    /// Maximum bytes of request bodies in memory, for all connections together.
    pub buffered_bytes: u64,
}

/// The settings of the metrics.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metrics {
    /// Maximum number of combinations of tenant, model and provider with their own series.
    pub label_sets: usize,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics { label_sets: 1000 }
    }
}

/// Optional measurements in addition to the permanent metrics.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profiling {
    /// Whether stage profiling is active from the start.
    pub stages: bool,
}

fn upload_bytes() -> u64 {
    512 << 20
}
