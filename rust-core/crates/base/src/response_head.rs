//! The head of a response to a client.

use proofgate_inspect::inspects_responses;
use proofgate_policy::{Mode, Profile};
use proofgate_providers::{BodyKind, Dialect, Family, StorageOperation};
use proofgate_wire::{ProtocolError, ResponseFraming, ResponseHead, encode};

use crate::error_response::{AMAZON_ERROR_HEADER, ResponseOptions, amazon_error_type};
use crate::rejection::MAX_RETRY_AFTER;

/// The handling of a response by rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectionLevel {
    /// No rule inspects the response.
    None,
    /// Rules inspect the response and change nothing, not even its timing.
    Observe,
    /// Bytes are held back until rules have cleared them.
    Enforce,
}

impl InspectionLevel {
    /// Returns the handling of responses for a tenant's rules.
    pub fn from_profile(profile: &Profile) -> Self {
        match profile.mode() {
            _ if !inspects_responses(profile) => InspectionLevel::None,
            Mode::DryRun => InspectionLevel::Observe,
            Mode::Enforce => InspectionLevel::Enforce,
        }
    }
}

/// The properties of a response that its relay needs.
pub struct ClientResponseHead {
    pub status: u16,
    pub framing: ResponseFraming,
    /// Whether the body is sent to the client with chunked coding.
    pub chunked: bool,
    /// Whether the response is an event stream, according to `Content-Type` until the first bytes
    /// of the body decide.
    pub is_event_stream: bool,
    pub keep_alive: bool,
    pub inspection: InspectionLevel,
    /// The client's dialect.
    pub dialect: Dialect,
    /// Whether the body is translated, because the provider uses another dialect.
    pub is_translated: bool,
    /// Whether the content type is that of Amazon's event streams.
    pub is_amazon_framed: bool,
    /// Whether events are sent to the client in Amazon's frames.
    pub writes_amazon_frames: bool,
    /// Whether the content type is audio, or bytes of unknown type.
    is_binary: bool,
    /// The error type in the head; `None` if there is none.
    pub error_kind: Option<Box<str>>,
    /// Whether the head still lacks its framing and its end, because the kind of the body is not
    /// known yet.
    pub is_head_incomplete: bool,
}

impl ClientResponseHead {
    /// Sets the kind of the body that its first bytes indicate, and completes the head if nothing
    /// else is missing.
    pub fn set_body_kind(&mut self, kind: BodyKind, head: &mut Vec<u8>) {
        match kind {
            BodyKind::Events => self.is_event_stream = true,
            BodyKind::Object => self.is_event_stream = false,
            BodyKind::Other => {}
        }
        let is_held = self.inspection == InspectionLevel::Enforce || self.is_translated;
        if !self.is_head_incomplete || (is_held && !self.is_event_stream) {
            return;
        }
        self.is_head_incomplete = false;
        match self.framing {
            ResponseFraming::Length(length) if !self.is_event_stream => {
                encode::write_content_length(head, length)
            }
            _ => {
                self.chunked = true;
                encode::write_chunked(head);
            }
        }
        head.extend_from_slice(encode::CRLF);
    }

    /// Whether the body is passed through unchanged: speech audio, which contains no text for
    /// rules, or a stored file. The first bytes of such a body indicate nothing.
    pub fn is_passthrough(&self) -> bool {
        let is_file = self.dialect == Dialect::Storage(StorageOperation::FileContent);
        self.is_success() && (is_file || (self.dialect == Dialect::Speech && self.is_binary))
    }

    /// Whether the response is an event stream that must end properly.
    pub fn is_successful_stream(&self) -> bool {
        self.is_event_stream && self.is_success()
    }

    /// Whether the status is a success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether rules must clear the response but cannot know how a client will read it.
    pub fn is_unreadable(&self, kind: BodyKind) -> bool {
        self.is_success()
            && self.inspection == InspectionLevel::Enforce
            && kind == BodyKind::Other
            && !self.is_event_stream
            && !self.dialect.can_respond_with_text()
    }
}

/// The media type of an event stream.
pub const EVENT_STREAM: &[u8] = b"text/event-stream";
/// The media type of Amazon's event streams.
pub const AMAZON_EVENT_STREAM: &[u8] = b"application/vnd.amazon.eventstream";

/// Prefixes of media types of binary bodies.
const BINARY_PREFIXES: [&[u8]; 2] = [b"audio/", b"application/octet-stream"];

/// Writes the head for the client: the upstream's end-to-end fields, the gateway's request ID and
/// framing. The head of an event stream is completed immediately, so that it can be sent before the
/// first event.
pub fn write_head(
    head: &ResponseHead<'_>,
    id: &str,
    options: ResponseOptions<'_>,
    inspection: InspectionLevel,
    out: &mut Vec<u8>,
) -> Result<ClientResponseHead, ProtocolError> {
    out.clear();
    encode::write_status_line(out, head.status)?;
    let (mut events, mut framed, mut is_binary, mut error_kind) = (false, false, false, None);
    let mut waits_long = false;
    let is_amazons = options.family == Family::Amazon;
    for (name, value) in head.headers.iter() {
        if name.eq_ignore_ascii_case("retry-after") {
            waits_long = is_long_wait(value);
        }
        if name.eq_ignore_ascii_case("content-type") {
            let begin = value.get(..EVENT_STREAM.len());
            events = begin.is_some_and(|begin| begin.eq_ignore_ascii_case(EVENT_STREAM));
            framed = value.eq_ignore_ascii_case(AMAZON_EVENT_STREAM);
            is_binary = BINARY_PREFIXES.iter().any(|kind| {
                let begin = value.get(..kind.len());
                begin.is_some_and(|begin| begin.eq_ignore_ascii_case(kind))
            });
        }
        if head.status >= 400 && name.eq_ignore_ascii_case("x-amzn-errortype") {
            error_kind = std::str::from_utf8(value).ok().map(Into::into);
        }
        if !is_gateway_header(name) && !head.headers.is_hop_by_hop(name) {
            let is_reframed = is_amazons && events && name.eq_ignore_ascii_case("content-type");
            encode::write_header(out, name, if is_reframed { AMAZON_EVENT_STREAM } else { value })?;
        }
    }
    if is_amazons && head.status >= 400 && error_kind.is_none() {
        encode::write_header(
            out,
            AMAZON_ERROR_HEADER,
            amazon_error_type(head.status).as_bytes(),
        )?;
    }
    let scrutiny = match head.framing {
        ResponseFraming::Empty => InspectionLevel::None,
        _ => inspection,
    };
    let empty = head.framing == ResponseFraming::Empty;
    if empty && !matches!(head.status, 204 | 304) {
        encode::write_content_length(out, 0);
    }
    let chunked = events && !empty;
    if chunked {
        encode::write_chunked(out);
    }
    let open_head = !empty && !chunked;
    if waits_long && head.headers.get("x-should-retry").is_none() {
        encode::write_header(out, "x-should-retry", b"false")?;
    }
    encode::write_header(out, "x-request-id", id.as_bytes())?;
    if options.close {
        encode::write_header(out, "connection", b"close")?;
    }
    out.extend_from_slice(options.extra_headers);
    if !open_head {
        out.extend_from_slice(encode::CRLF);
    }
    Ok(ClientResponseHead {
        status: head.status,
        framing: head.framing,
        chunked,
        is_event_stream: events,
        keep_alive: head.keep_alive,
        inspection: scrutiny,
        dialect: Dialect::Chat,
        is_translated: false,
        is_amazon_framed: framed,
        writes_amazon_frames: is_amazons && (events || framed),
        is_binary,
        error_kind,
        is_head_incomplete: open_head,
    })
}

/// Whether a field is one that the gateway sets or omits.
fn is_gateway_header(name: &str) -> bool {
    STRIPPED_HEADERS
        .iter()
        .any(|ours| name.eq_ignore_ascii_case(ours))
        || starts_with(name, "x-ratelimit-")
        || starts_with(name, "anthropic-ratelimit-")
        || starts_with(name, "access-control-")
        || starts_with(name, "x-proofgate-")
        || starts_with(name, "x-accel-")
}

/// Provider fields that are removed. The provider's limits and account are those of the gateway's
/// key. A provider must not control how browsers treat the gateway's host (HSTS, reports, storage,
/// other pages), redirect clients, or control a proxy in front of the gateway (nginx uses
/// `x-accel-redirect` as one of its own paths). Some fields would also carry state between tenants
/// that share an upstream connection.
const STRIPPED_HEADERS: [&str; 24] = [
    "content-length",
    "transfer-encoding",
    "x-request-id",
    "set-cookie",
    "alt-svc",
    "ratelimit",
    "ratelimit-policy",
    "openai-organization",
    "openai-project",
    "anthropic-organization-id",
    "www-authenticate",
    "proxy-authenticate",
    "strict-transport-security",
    "clear-site-data",
    "nel",
    "report-to",
    "reporting-endpoints",
    "location",
    "content-location",
    "refresh",
    "expect-ct",
    "x-sendfile",
    "surrogate-control",
    "cdn-cache-control",
];

/// Whether `retry-after` is longer than a client should wait automatically: some clients sleep that
/// long (anthropic-sdk-python). A date also counts as long.
fn is_long_wait(retry_after: &[u8]) -> bool {
    let seconds = std::str::from_utf8(retry_after).ok();
    let seconds = seconds.and_then(|seconds| seconds.trim().parse::<f64>().ok());
    seconds.is_none_or(|seconds| seconds > f64::from(MAX_RETRY_AFTER))
}

fn starts_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
