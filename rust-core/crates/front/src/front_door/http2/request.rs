//! Writes an HTTP/2 request as HTTP/1.1, strictly.
//!
//! A front door that turns HTTP/2 into HTTP/1.1 lets requests be smuggled when it writes bytes that HTTP/1.1 reads as
//! framing: a `transfer-encoding` field, a line end inside a value, a length that is not the body's. Nothing of that is
//! repaired (RFC 9113 section 8.1.1). `h2` resets streams with repeated, misplaced or unknown pseudo-header fields,
//! connection-specific fields, and bodies that are not as long as they say, and ends connections that send names or
//! values no field has. What it lets through is refused here or by the HTTP/1.1 parser that reads the result.
//!
//! One thing cannot be refused, because `http` drops it unseen: a fragment behind a `:path`.

use bytes::Bytes;
use h2::RecvStream;
use http::request::Parts;
use http::{HeaderMap, Method, header, uri};
use proofgate_base::rejection::Rejection;
use proofgate_wire::{BodyDecoder, Limits, ProtocolError, RequestFraming, encode};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The other scheme would say that the request came over an insecure connection.
const WRONG_SCHEME: Rejection = Rejection::new(
    400,
    "invalid_scheme",
    "The :scheme of a request on this connection must be https.",
);

/// What `h2` refuses where there is no request yet, or in the middle of one.
pub(super) const MALFORMED: Rejection = Rejection::new(
    400,
    "malformed_http2",
    "The client violated the HTTP/2 protocol (RFC 9113).",
);

/// Appends the head of a request to `out`; `ended` says that no body follows it. Returns whether the body behind it is
/// chunked; otherwise it follows as it is, as long as Content-Length says, or there is none.
///
/// The target is written in absolute form when there is an `:authority`, so that the parser compares it with Host. The
/// head asks for the connection to be closed: whatever stands behind the request in the pipe, it is not another one.
///
/// # Errors
/// What the client is told; `out` then holds a part of the head.
pub(super) fn write_head(request: Parts, ended: bool, out: &mut Vec<u8>) -> Result<bool, Rejection> {
    if request.method == Method::CONNECT {
        return Err(ProtocolError::ConnectMethod.into());
    }
    let uri = request.uri.into_parts();
    // `h2` shows the scheme only where there is an authority; without one nothing is made of it.
    if uri.scheme.is_some_and(|scheme| scheme != uri::Scheme::HTTPS) {
        return Err(WRONG_SCHEME);
    }
    let path = uri.path_and_query.ok_or(ProtocolError::InvalidTarget)?;
    let path = path.as_str();
    if !path.starts_with('/') {
        return Err(ProtocolError::UnsupportedTargetForm.into());
    }
    let method = request.method.as_str();
    let fields = &request.headers;
    match uri.authority {
        Some(authority) => {
            let target = format!("https://{authority}{path}");
            encode::write_request_line(out, method, &target)?;
            if !fields.contains_key(header::HOST) {
                encode::write_header(out, "host", authority.as_str().as_bytes())?;
            }
        }
        None => encode::write_request_line(out, method, path)?,
    }
    encode::write_header(out, "connection", b"close")?;
    write_fields(fields, out)?;
    let chunked = !ended && !fields.contains_key(header::CONTENT_LENGTH);
    if chunked {
        encode::write_chunked(out);
    }
    out.extend_from_slice(encode::CRLF);
    Ok(chunked)
}

/// Appends the fields.
fn write_fields(fields: &HeaderMap, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
    for (name, value) in fields {
        let value = value.as_bytes();
        // RFC 9113 section 8.2.1; HTTP/1.1 would trim it.
        if matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']) {
            return Err(ProtocolError::InvalidHeaderValue);
        }
        match name.as_str() {
            "transfer-encoding" => return Err(ProtocolError::InvalidTransferEncoding),
            "connection" | "http2-settings" | "keep-alive" | "proxy-connection" | "upgrade" => {
                return Err(ProtocolError::InvalidConnection);
            }
            "te" if value != b"trailers" => return Err(ProtocolError::InvalidConnection),
            "te" | "cookie" => {}
            name => encode::write_header(out, name, value)?,
        }
    }
    write_cookies(fields, out)
}

/// Joins the crumbs of Cookie, which HTTP/1.1 has once (RFC 9113 section 8.2.3).
fn write_cookies(fields: &HeaderMap, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
    let crumbs: Vec<&[u8]> = fields
        .get_all(header::COOKIE)
        .iter()
        .map(|crumb| crumb.as_bytes())
        .collect();
    match crumbs.is_empty() {
        true => Ok(()),
        false => encode::write_header(out, "cookie", &crumbs.join(&b"; "[..])),
    }
}

/// Why a request did not come to its end.
#[derive(Debug)]
pub(super) enum IncompleteRequest {
    /// The client reset its stream or is gone.
    Client,
    /// The stream broke the protocol and is reset: its body was not as long as it said, for example.
    Malformed,
    /// What follows the body is refused.
    Rejected(ProtocolError),
}

/// Writes a head and the body behind it, as it comes. Trailers are checked as behind an HTTP/1.1 body, and dropped.
///
/// Each piece waits for the next one or the end, so that a body that goes on behind its Content-Length, or is followed
/// by what may not follow it, is never complete.
///
/// # Errors
/// [`IncompleteRequest`]. That nobody reads it is no error: whoever stopped reading answers.
pub(super) async fn send(
    head: Vec<u8>,
    mut body: RecvStream,
    chunked: bool,
    limits: &Limits,
    sink: &mut (impl AsyncWrite + Unpin),
) -> Result<(), IncompleteRequest> {
    if sink.write_all(&head).await.is_err() {
        return Ok(());
    }
    drop(head);
    let mut held = Bytes::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        let _ = body.flow_control().release_capacity(piece.len());
        if piece.is_empty() {
            continue;
        }
        let ready = std::mem::replace(&mut held, piece);
        if send_chunk(&ready, chunked, sink).await.is_err() {
            return Ok(());
        }
    }
    if let Some(trailers) = body.trailers().await? {
        check_trailers(&trailers, limits).map_err(IncompleteRequest::Rejected)?;
    }
    if send_chunk(&held, chunked, sink).await.is_ok() && chunked {
        let _ = sink.write_all(encode::LAST_CHUNK).await;
    }
    Ok(())
}

impl From<h2::Error> for IncompleteRequest {
    fn from(error: h2::Error) -> Self {
        match error.is_library() && error.is_reset() {
            true => IncompleteRequest::Malformed,
            false => IncompleteRequest::Client,
        }
    }
}

/// Has the HTTP/1.1 guard look at trailers.
fn check_trailers(trailers: &HeaderMap, limits: &Limits) -> Result<(), ProtocolError> {
    let mut section = b"0\r\n".to_vec();
    for (name, value) in trailers {
        encode::write_header(&mut section, name.as_str(), value.as_bytes())?;
    }
    section.extend_from_slice(encode::CRLF);
    let mut decoder = BodyDecoder::for_request(RequestFraming::Chunked, limits);
    let mut rest = &section[..];
    loop {
        let step = decoder.decode(rest)?;
        if step.done || step.consumed == 0 {
            return Ok(());
        }
        rest = &rest[step.consumed..];
    }
}

async fn send_chunk(
    chunk: &[u8],
    chunked: bool,
    sink: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    if chunk.is_empty() || !chunked {
        return sink.write_all(chunk).await;
    }
    let mut size = Vec::with_capacity(8);
    encode::write_chunk_header(&mut size, chunk.len());
    sink.write_all(&size).await?;
    sink.write_all(chunk).await?;
    sink.write_all(encode::CRLF).await
}

#[cfg(test)]
mod tests;
