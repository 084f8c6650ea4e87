//! Converts request heads to HTTP/2, and response heads to HTTP/1.1.

use std::io;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::uri::Scheme;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use proofgate_wire::{ProtocolError, encode};

/// Header fields that may be indexed in the session's table, because they are not secret and are
/// the same in all requests (RFC 7541 section 7.1.3).
const COMMON_HEADERS: [&str; 4] = ["accept", "accept-encoding", "content-type", "user-agent"];

/// Parses the HTTP/1.1 head of a request from this gateway. Also returns the length of its body;
/// `None` if the body has no stated length.
///
/// # Errors
/// The head contains something that heads of this gateway never contain, or that is not allowed in
/// HTTP/2.
pub(super) fn parse_request(head: &[u8], over_tls: bool) -> io::Result<(Request<()>, Option<u64>)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let head = head.strip_suffix(b"\r\n\r\n").ok_or_else(invalid)?;
    let mut lines = head.split(|&byte| byte == b'\n').map(trim);
    let line = lines.next().unwrap_or_default();
    let line = line.strip_suffix(b" HTTP/1.1").ok_or_else(invalid)?;
    let space = line.iter().position(|&byte| byte == b' ').ok_or_else(invalid)?;
    let (method, path) = (&line[..space], &line[space + 1..]);
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(method).map_err(|_| invalid())?;
    // A request without a length and a transfer coding has no body (RFC 9112 section 6.3).
    let (mut authority, mut length) = (None, Some(0));
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':').ok_or_else(invalid)?;
        let (name, value) = line.split_at(colon);
        let name = HeaderName::from_bytes(name).map_err(|_| invalid())?;
        let mut value = HeaderValue::from_bytes(value[1..].trim_ascii()).map_err(|_| invalid())?;
        match name {
            HOST => {
                authority = Some(value);
                continue;
            }
            CONNECTION => continue,
            TRANSFER_ENCODING => {
                length = None;
                continue;
            }
            CONTENT_LENGTH => length = value.to_str().ok().and_then(|length| length.parse().ok()),
            _ => value.set_sensitive(!COMMON_HEADERS.contains(&name.as_str())),
        }
        request.headers_mut().append(name, value);
    }
    let scheme = if over_tls { Scheme::HTTPS } else { Scheme::HTTP };
    let authority = authority.ok_or_else(invalid)?;
    let uri = Uri::builder().scheme(scheme).authority(authority.as_bytes());
    *request.uri_mut() = uri.path_and_query(path).build().map_err(|_| invalid())?;
    Ok((request, length))
}

/// Returns a line without the CR before its LF.
fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Appends the head of a response as HTTP/1.1. `ended`: whether no body follows. A body without a
/// stated length ends with the stream.
///
/// # Errors
/// The head contains a field that HTTP/1.1 would read differently, or that is not allowed in HTTP/2
/// (RFC 9113 section 8.2). After an error, a part of the head may have been written.
pub(super) fn write_response<B>(
    response: &Response<B>,
    ended: bool,
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    let fields = response.headers();
    encode::write_status_line(out, response.status().as_u16())?;
    for (name, value) in fields {
        let value = value.as_bytes();
        if matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']) {
            return Err(ProtocolError::InvalidHeaderValue);
        }
        if matches!(
            name.as_str(),
            "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
        ) {
            return Err(ProtocolError::InvalidConnection);
        }
        encode::write_header(out, name.as_str(), value)?;
    }
    if ended && !fields.contains_key(CONTENT_LENGTH) {
        encode::write_content_length(out, 0);
    }
    out.extend_from_slice(encode::CRLF);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const HEAD: &str = "POST /v1/models/a%3Ab:generate?alt=sse HTTP/1.1\r\nHost: provider.test:8443\r\nAccept: */*\r\n\
        Authorization: Bearer secret\r\nX-Request-Id: 1\r\n";

    #[test]
    fn the_head_of_a_request_has_its_target_in_pseudo_fields_and_hides_what_may_be_secret() {
        let head = format!("{HEAD}Content-Length: 7\r\n\r\n");
        let (request, length) = parse_request(head.as_bytes(), true).unwrap();
        assert_eq!(length, Some(7));
        let uri = "https://provider.test:8443/v1/models/a%3Ab:generate?alt=sse";
        assert_eq!(request.uri(), uri);
        let fields = request.headers().iter();
        let fields: Vec<_> = fields
            .map(|(name, value)| (name.as_str(), value.as_bytes(), value.is_sensitive()))
            .collect();
        assert_eq!(
            fields,
            [
                ("accept", &b"*/*"[..], false),
                ("authorization", b"Bearer secret", true),
                ("x-request-id", b"1", true),
                ("content-length", b"7", false),
            ]
        );
    }

    #[test]
    fn a_body_in_chunks_has_no_length_and_no_coding() {
        let head = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
        let (request, length) = parse_request(head.as_bytes(), false).unwrap();
        assert_eq!((length, request.uri().scheme_str()), (None, Some("http")));
        assert!(!request.headers().contains_key(TRANSFER_ENCODING));
    }

    #[test]
    fn a_request_without_a_body_ends_with_its_head() {
        for method in ["GET", "DELETE", "POST"] {
            let head = format!("{method} /v1/files/file-1 HTTP/1.1\r\nHost: provider.test\r\n\r\n");
            let (request, length) = parse_request(head.as_bytes(), true).unwrap();
            assert_eq!((request.method().as_str(), length), (method, Some(0)));
            assert_eq!(request.uri().path(), "/v1/files/file-1");
        }
    }

    fn response(name: &'static str, value: &[u8]) -> Response<()> {
        let mut response = Response::new(());
        let value = HeaderValue::from_bytes(value).unwrap();
        response
            .headers_mut()
            .append(HeaderName::from_static(name), value);
        response
    }

    #[test]
    fn an_answer_without_a_body_says_so() {
        for (ended, written) in [
            (false, "HTTP/1.1 200 OK\r\nx-a: 1\r\n\r\n"),
            (true, "HTTP/1.1 200 OK\r\nx-a: 1\r\ncontent-length: 0\r\n\r\n"),
        ] {
            let mut out = Vec::new();
            write_response(&response("x-a", b"1"), ended, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }

    #[test]
    fn fields_that_frame_http_1_or_that_it_would_trim_are_refused() {
        for (name, value) in [
            ("transfer-encoding", &b"chunked"[..]),
            ("connection", b"close"),
            ("upgrade", b"h2c"),
            ("x-a", b" 1"),
            ("x-a", b"1\t"),
        ] {
            assert!(write_response(&response(name, value), false, &mut Vec::new()).is_err());
        }
    }
}
