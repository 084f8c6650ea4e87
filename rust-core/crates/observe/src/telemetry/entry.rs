//! The entry for one exchange in the access log and in traces.

use std::sync::Arc;

use proofgate_ledger::record::{Attribution, Usage};
use serde::{Serialize, Serializer};

/// An exchange or a refused request, as in the access log and in traces. Times are in microseconds.
/// Names are truncated, because they come from outside. They are escaped only in JSON.
#[derive(Debug, Default, Serialize)]
pub struct Exchange {
    /// Time at which the request head was complete, in microseconds since 1970.
    pub(super) ts: u64,
    pub(super) id: String,
    #[serde(serialize_with = "as_text")]
    pub(super) tenant: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) endpoint: Option<&'static str>,
    /// The name that the client requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    pub(super) stream: bool,
    /// The last provider to which the request was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) upstream_model: Option<String>,
    /// Response status; 499 if the client disconnected before a response started.
    pub(super) status: u16,
    pub(super) outcome: &'static str,
    /// Machine code of the error, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'static str>,
    pub(super) attempts: u32,
    pub(super) duration_us: u64,
    /// Time from the request head until the request was first sent to a provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sent_us: Option<u64>,
    /// Time from the request head to the first byte of a provider's response that may be sent to
    /// the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_byte_us: Option<u64>,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_nanodollars: Option<u64>,
    /// The attribution by its client.
    #[serde(flatten)]
    pub(super) attribution: Option<Attribution<'static>>,
    #[serde(flatten)]
    pub(super) spans: Option<Spans>,
}

/// IDs of W3C's Trace Context, in hex.
#[derive(Debug, Serialize)]
pub(super) struct Spans {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    pub(super) client_span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_span_id: Option<String>,
    pub(super) sampled: bool,
}

fn as_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}
