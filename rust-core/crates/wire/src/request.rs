//! Request heads (RFC 9112 section 3) and the framing of their bodies (section 6.3).

use crate::api_key_headers::ApiKeyHeaders;
use crate::authority::Authority;
use crate::fields::{Expectation, Fields, Upgrade};
use crate::headers::{HeaderSlots, Headers};
use crate::limits::Limits;
use crate::method::Method;
use crate::protocol_error::ProtocolError;
use crate::target::origin_form;
use memchr::{memchr, memchr_iter};

/// A request head that every strict parser reads the same way.
#[derive(Debug, Clone)]
pub struct RequestHead<'b> {
    /// The method.
    pub method: Method,
    /// The method's text, as received.
    pub method_text: &'b str,
    /// Path and query. For a target in absolute form, scheme and authority are removed. The
    /// authority equals [`RequestHead::host`].
    pub target: &'b str,
    /// The value of the only Host field, as received.
    pub host: &'b str,
    /// All header fields, as received.
    pub headers: Headers<'b>,
    /// The header fields that can hold a key.
    pub keys: ApiKeyHeaders<'b>,
    /// Framing of the body, which determines its end.
    pub framing: RequestFraming,
    /// Whether the client wants to send another request on this connection (RFC 9112 section 9.3).
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body; never true without a body.
    pub expect_continue: bool,
}

/// The framing of a request body, which determines its end (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFraming {
    /// There is no body.
    Empty,
    /// The body has this many bytes; never 0.
    Length(u64),
    /// The body is chunked.
    Chunked,
}

/// Parses a request head.
///
/// `head` must be exactly the bytes that [`crate::HeadScanner::scan`] delimited. The result borrows
/// from `head`.
///
/// # Errors
/// The [`ProtocolError`] of a rule that the head breaks. If the head breaks several rules, rules of
/// syntax come first, then framing, then the target, and last the errors with a status other than
/// 400 that need a valid head (417, 413).
pub fn parse_request<'b>(head: &'b [u8], limits: &Limits) -> Result<RequestHead<'b>, ProtocolError> {
    check_lines(head, limits)?;
    let mut places = HeaderSlots::new();
    let mut parsed = httparse::Request::new(&mut []);
    let length = match parsed.parse_with_uninit_headers(head, places.limited(limits)) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Err(ProtocolError::IncompleteHead),
        Err(error) => return Err(classify_error(head, error, request_line_error)),
    };
    let (Some(method_text), Some(target), Some(1)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(ProtocolError::UnsupportedVersion);
    };
    if length != head.len() {
        return Err(ProtocolError::IncompleteHead);
    }
    if method_text == "CONNECT" {
        return Err(ProtocolError::ConnectMethod);
    }
    let method = Method::from_text(method_text);
    let fields = Fields::from_headers(parsed.headers)?;
    if fields.upgrade == Upgrade::WebSocket {
        return Err(ProtocolError::WebSocketRequested);
    }
    if fields.close && fields.keep_alive {
        return Err(ProtocolError::InvalidConnection);
    }
    let framing = match fields.content_length {
        _ if fields.chunked => RequestFraming::Chunked,
        None | Some(0) => RequestFraming::Empty,
        Some(length) => RequestFraming::Length(length),
    };
    if method.refuses_body() && framing != RequestFraming::Empty {
        return Err(ProtocolError::UnexpectedBody);
    }
    let host = fields.host.ok_or(ProtocolError::MissingHost)?;
    let authority = Authority::parse(host).ok_or(ProtocolError::InvalidHost)?;
    let target = origin_form(target, method, &authority, limits)?;
    if fields.expectation == Expectation::Unknown {
        return Err(ProtocolError::UnknownExpectation);
    }
    if matches!(framing, RequestFraming::Length(length) if length > limits.body_bytes) {
        return Err(ProtocolError::BodyTooLarge);
    }
    Ok(RequestHead {
        method,
        method_text,
        target,
        host: std::str::from_utf8(host).map_err(|_| ProtocolError::InvalidHost)?,
        headers: Headers::new(parsed.headers),
        keys: fields.keys,
        framing,
        // Some parsers, such as llhttp, treat the bytes after a request without a body as the other
        // protocol.
        keep_alive: !fields.close && (fields.upgrade == Upgrade::None || framing != RequestFraming::Empty),
        expect_continue: fields.expectation == Expectation::Continue && framing != RequestFraming::Empty,
    })
}

/// Refuses the inputs that `httparse` accepts but other parsers refuse: bare LF, empty lines before
/// the start line, and tabs in framing fields.
pub(crate) fn check_lines(head: &[u8], limits: &Limits) -> Result<(), ProtocolError> {
    if head.len() > limits.head_bytes {
        return Err(ProtocolError::HeadTooLarge);
    }
    if matches!(head, [b'\r' | b'\n', ..]) {
        return Err(ProtocolError::LeadingEmptyLine);
    }
    if memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r') {
        return Err(ProtocolError::BareLineFeed);
    }
    if memchr(b'\t', head).is_some() && head.split(|&byte| byte == b'\n').any(is_framing_field_with_tab) {
        return Err(ProtocolError::InvalidHeaderValue);
    }
    Ok(())
}

fn is_framing_field_with_tab(line: &[u8]) -> bool {
    const FRAMING: [&str; 5] = [
        "connection",
        "content-length",
        "expect",
        "host",
        "transfer-encoding",
    ];
    let name = &line[..memchr(b':', line).unwrap_or(0)];
    memchr(b'\t', line).is_some()
        && FRAMING
            .iter()
            .any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
}

/// Returns the broken rule for an error of `httparse`, which contains neither the position nor the
/// exact cause. Used only for refused heads.
pub(crate) fn classify_error(
    head: &[u8],
    error: httparse::Error,
    start_line: fn(&[u8]) -> ProtocolError,
) -> ProtocolError {
    let mut lines = head
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = lines.next().unwrap_or_default();
    match error {
        httparse::Error::TooManyHeaders => ProtocolError::TooManyHeaders,
        httparse::Error::HeaderValue => ProtocolError::InvalidHeaderValue,
        httparse::Error::HeaderName => lines
            .find_map(name_error)
            .unwrap_or(ProtocolError::InvalidHeaderName),
        _ => start_line(first),
    }
}

fn name_error(line: &[u8]) -> Option<ProtocolError> {
    if line.is_empty() {
        return None;
    }
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Some(ProtocolError::FoldedHeader);
    }
    let Some(colon) = memchr(b':', line) else {
        return Some(ProtocolError::InvalidHeaderName);
    };
    match &line[..colon] {
        name if crate::syntax::is_token(name) => None,
        [name @ .., b' ' | b'\t'] if !name.is_empty() => Some(ProtocolError::SpaceBeforeColon),
        _ => Some(ProtocolError::InvalidHeaderName),
    }
}

fn request_line_error(line: &[u8]) -> ProtocolError {
    let mut parts = line.split(|&byte| byte == b' ');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(method), ..) if !crate::syntax::is_token(method) => ProtocolError::InvalidMethod,
        (_, Some(target), _, _) if target.iter().any(|byte| !(0x21..=0x7e).contains(byte)) => {
            ProtocolError::InvalidTarget
        }
        (_, Some(target), Some(version), None) if !target.is_empty() && version != b"HTTP/1.1" => {
            ProtocolError::UnsupportedVersion
        }
        _ => ProtocolError::InvalidStartLine,
    }
}
