//! Writes an HTTP/2 request as HTTP/1.1, strictly.
//!
//! Converting HTTP/2 to HTTP/1.1 allows request smuggling if bytes are written that HTTP/1.1 reads as framing: a
//! `transfer-encoding` field, a line end inside a value, or a length that does not match the body. None of these is
//! repaired (RFC 9113 section 8.1.1). `h2` resets streams with repeated, misplaced or unknown pseudo-header fields,
//! connection-specific fields, or bodies of another length than declared, and closes connections that send invalid
//! field names or values. Anything else is rejected here or by the HTTP/1.1 parser that reads the result.
//!
//! A fragment after a `:path` cannot be rejected, because the crate `http` drops it silently.

use bytes::Bytes;
use h2::RecvStream;
use http::request::Parts;
use http::{HeaderMap, Method, header, uri};
use proofgate_base::rejection::Rejection;
use proofgate_wire::{BodyDecoder, Limits, ProtocolError, RequestFraming, encode};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The rejection of a scheme other than https, which would mean that the request came over an
/// insecure connection.
const WRONG_SCHEME: Rejection = Rejection::new(
    400,
    "invalid_scheme",
    "The :scheme of a request on this connection must be https.",
);

/// The response if `h2` rejects a connection before there is a request, or a stream during a
/// request.
pub(super) const MALFORMED: Rejection = Rejection::new(
    400,
    "malformed_http2",
    "The client violated the HTTP/2 protocol (RFC 9113).",
);

/// Appends the head of a request to `out`; `ended` means that no body follows. Returns whether the body is to be sent
/// in chunks; otherwise it follows unchanged with its Content-Length, or there is none.
///
/// The target is written in absolute form if there is an `:authority`, so that the parser compares it with Host. The
/// head asks to close the connection, so that nothing after the request in the pipe is read as another request.
///
/// # Errors
/// The rejection to send to the client; `out` then contains a part of the head.
pub(super) fn write_head(request: Parts, ended: bool, out: &mut Vec<u8>) -> Result<bool, Rejection> {
    if request.method == Method::CONNECT {
        return Err(ProtocolError::ConnectMethod.into());
    }
    let uri = request.uri.into_parts();
    // `h2` reports the scheme only if there is an authority; without one the scheme is not checked.
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

/// Appends the header fields.
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

/// Joins the cookie crumbs into the single Cookie field of HTTP/1.1 (RFC 9113 section 8.2.3).
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

/// Why a request was not completed.
#[derive(Debug)]
pub(super) enum IncompleteRequest {
    /// The client reset the stream or disconnected.
    ClientAborted,
    /// The stream violated the protocol and is reset; for example, its body did not have the declared length.
    Malformed,
    /// The trailers are rejected.
    Rejected(ProtocolError),
}

/// Writes a head and its body while the body arrives. Trailers are checked like those of HTTP/1.1, and dropped.
///
/// Each piece is held until the next one or the end arrives. A body that exceeds its Content-Length, or that is
/// followed by invalid trailers, is therefore never complete.
///
/// # Errors
/// [`IncompleteRequest`]. A closed pipe is no error: the reader that closed it sends the response.
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
            false => IncompleteRequest::ClientAborted,
        }
    }
}

/// Checks trailers with the HTTP/1.1 decoder.
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
