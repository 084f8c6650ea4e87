//! Response heads (RFC 9112 section 4) and the framing of their bodies (section 6.3).

use crate::fields::Fields;
use crate::headers::{HeaderSlots, Headers};
use crate::limits::Limits;
use crate::method::Method;
use crate::protocol_error::ProtocolError;
use crate::request::{check_lines, classify_error};

/// A response head that every strict parser reads the same way.
#[derive(Debug, Clone)]
pub struct ResponseHead<'b> {
    /// The status code, from 100 to 599 except 101.
    pub status: u16,
    /// All header fields, as received.
    pub headers: Headers<'b>,
    /// Framing of the body, which determines its end.
    pub framing: ResponseFraming,
    /// Whether the connection can carry another exchange after this one (RFC 9112 section 9.3).
    pub keep_alive: bool,
}

/// The framing of a response body, which determines its end (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFraming {
    /// There is no body.
    Empty,
    /// The body has this many bytes; never 0.
    Length(u64),
    /// The body is chunked.
    Chunked,
    /// The body ends with the connection.
    UntilClose,
}

/// Parses a response head, as strictly as [`crate::parse_request`].
///
/// `head` must be exactly the bytes that [`crate::HeadScanner::scan`] delimited. `request_method`
/// is the method of the request. An interim response (1xx) is returned with
/// [`ResponseFraming::Empty`], and the final response follows it. A `Content-Length: 0` on 204 is
/// tolerated. `limits.body_bytes` and `limits.target_bytes` are not used.
///
/// # Errors
/// The [`ProtocolError`] of a rule that the head breaks. The client then receives a 502. HTTP/1.0
/// is refused too.
pub fn parse_response<'b>(
    head: &'b [u8],
    request_method: Method,
    limits: &Limits,
) -> Result<ResponseHead<'b>, ProtocolError> {
    check_lines(head, limits)?;
    let mut places = HeaderSlots::new();
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, head, places.limited(limits)) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Err(ProtocolError::IncompleteHead),
        Err(error) => return Err(classify_error(head, error, status_line_error)),
    };
    let (Some(status), Some(1)) = (parsed.code, parsed.version) else {
        return Err(ProtocolError::UnsupportedVersion);
    };
    if length != head.len() {
        return Err(ProtocolError::IncompleteHead);
    }
    match status {
        101 => return Err(ProtocolError::UnexpectedUpgrade),
        100..=599 => {}
        _ => return Err(ProtocolError::InvalidStatus),
    }
    let fields = Fields::from_headers(parsed.headers)?;
    let never_has_body = status < 200 || status == 204;
    if never_has_body && (fields.chunked || fields.content_length.is_some_and(|length| length > 0)) {
        return Err(ProtocolError::UnexpectedBody);
    }
    let framing = match fields.content_length {
        _ if never_has_body || status == 304 || request_method == Method::Head => ResponseFraming::Empty,
        _ if fields.chunked => ResponseFraming::Chunked,
        Some(0) => ResponseFraming::Empty,
        Some(length) => ResponseFraming::Length(length),
        None => ResponseFraming::UntilClose,
    };
    let keep_alive = !fields.close && framing != ResponseFraming::UntilClose;
    Ok(ResponseHead {
        status,
        headers: Headers::new(parsed.headers),
        framing,
        keep_alive,
    })
}

fn status_line_error(line: &[u8]) -> ProtocolError {
    match line.split(|&byte| byte == b' ').next() {
        Some(version) if version != b"HTTP/1.1" => ProtocolError::UnsupportedVersion,
        _ => ProtocolError::InvalidStartLine,
    }
}
