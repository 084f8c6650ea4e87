//! Writes heads and chunk framing into a caller's buffer.
//!
//! Written messages obey the same rules as parsed messages. A part that would break a rule is
//! refused with the [`ProtocolError`] of that rule, and no byte of the part is written.

use crate::protocol_error::ProtocolError;
use crate::syntax::{has_control, is_token};
use crate::target::is_valid;

/// The last chunk and an empty trailer section (RFC 9112 section 7.1).
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The interim response that lets a client send its body (RFC 9110 section 15.2.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The end of a line, and the empty line at the end of a head.
pub const CRLF: &[u8] = b"\r\n";

/// Appends the size line of a chunk of `len` bytes. The caller then appends the data and a CRLF.
/// Writes nothing if `len` is 0, because a chunk of size 0 would end the body; use [`LAST_CHUNK`]
/// for this.
pub fn write_chunk_header(out: &mut Vec<u8>, len: usize) {
    if len == 0 {
        return;
    }
    let mut digits = [0_u8; 16];
    let mut start = digits.len();
    let mut rest = len;
    while rest > 0 {
        start -= 1;
        digits[start] = b"0123456789abcdef"[rest & 0xf];
        rest >>= 4;
    }
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(CRLF);
}

/// Appends a whole chunk. Appends nothing if `data` is empty.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if !data.is_empty() {
        write_chunk_header(out, data.len());
        out.extend_from_slice(data);
        out.extend_from_slice(CRLF);
    }
}

/// Appends a request line (RFC 9112 section 3).
///
/// # Errors
/// [`ProtocolError::InvalidMethod`] if the method is not a token, [`ProtocolError::InvalidTarget`]
/// if the target is empty or contains a byte that [`crate::parse_request`] refuses.
pub fn write_request_line(out: &mut Vec<u8>, method: &str, target: &str) -> Result<(), ProtocolError> {
    if !is_token(method.as_bytes()) {
        return Err(ProtocolError::InvalidMethod);
    }
    if target.is_empty() || !is_valid(target.as_bytes()) {
        return Err(ProtocolError::InvalidTarget);
    }
    for part in [method, " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    Ok(())
}

/// Appends a status line (RFC 9112 section 4) with the registered reason phrase, if this crate has
/// one for the status.
///
/// # Errors
/// [`ProtocolError::InvalidStatus`] outside 100 to 599.
pub fn write_status_line(out: &mut Vec<u8>, status: u16) -> Result<(), ProtocolError> {
    if !(100..=599).contains(&status) {
        return Err(ProtocolError::InvalidStatus);
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, status);
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(CRLF);
    Ok(())
}

/// Appends a header line.
///
/// # Errors
/// [`ProtocolError::InvalidHeaderName`] if the name is not a token; [`ProtocolError::InvalidHeaderValue`] if the value
/// contains CR, LF, NUL or another control byte except HTAB.
pub fn write_header(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), ProtocolError> {
    if !is_token(name.as_bytes()) {
        return Err(ProtocolError::InvalidHeaderName);
    }
    if has_control(value) {
        return Err(ProtocolError::InvalidHeaderValue);
    }
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(CRLF);
    Ok(())
}

/// Appends a Content-Length line for a body of `length` bytes.
pub fn write_content_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"content-length: ");
    write_decimal(out, length);
    out.extend_from_slice(CRLF);
}

/// Appends the header line for a chunked body.
pub fn write_chunked(out: &mut Vec<u8>) {
    out.extend_from_slice(b"transfer-encoding: chunked\r\n");
}

/// Appends a whole request head: the request line, the fields in order, and the empty line.
///
/// # Errors
/// Same as [`write_request_line`] and [`write_header`]. After an error, `out` is unchanged.
pub fn write_request_head<'h>(
    out: &mut Vec<u8>,
    method: &str,
    target: &str,
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
) -> Result<(), ProtocolError> {
    let start = out.len();
    let written = write_request_line(out, method, target).and_then(|()| write_fields(out, headers));
    written.inspect_err(|_| out.truncate(start))
}

/// Appends a whole response head: the status line, the fields in order, and the empty line.
///
/// # Errors
/// Same as [`write_status_line`] and [`write_header`]. After an error, `out` is unchanged.
pub fn write_response_head<'h>(
    out: &mut Vec<u8>,
    status: u16,
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
) -> Result<(), ProtocolError> {
    let start = out.len();
    let written = write_status_line(out, status).and_then(|()| write_fields(out, headers));
    written.inspect_err(|_| out.truncate(start))
}

fn write_fields<'h>(
    out: &mut Vec<u8>,
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
) -> Result<(), ProtocolError> {
    for (name, value) in headers {
        write_header(out, name, value)?;
    }
    out.extend_from_slice(CRLF);
    Ok(())
}

fn write_decimal(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Returns the reason phrase (RFC 9110 section 15); empty for a status that this gateway does not send itself.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
