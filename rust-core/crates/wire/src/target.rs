//! Request targets (RFC 9112 section 3.2).

use crate::authority::Authority;
use crate::limits::Limits;
use crate::method::Method;
use crate::protocol_error::ProtocolError;
use memchr::{memchr, memchr_iter};

/// Returns the origin form of `target` (path and query) as a slice of `target`.
///
/// Origin form is returned unchanged. Absolute form is accepted if its scheme is http or https and
/// its authority equals the Host header, ignoring case. On both sides, a missing port means the
/// scheme's default port. Scheme and authority are removed. An absolute target with an empty path
/// becomes `/`. It is refused if it has a query or the method is OPTIONS, because its origin form
/// would then not be a slice of it. Authority and asterisk form are refused.
pub(crate) fn origin_form<'b>(
    target: &'b str,
    method: Method,
    host: &Authority<'_>,
    limits: &Limits,
) -> Result<&'b str, ProtocolError> {
    if target.len() > limits.target_bytes {
        return Err(ProtocolError::TargetTooLong);
    }
    if !is_valid(target.as_bytes()) {
        return Err(ProtocolError::InvalidTarget);
    }
    if target.starts_with('/') {
        return Ok(target);
    }
    let (scheme, after) = target
        .split_once("://")
        .ok_or(ProtocolError::UnsupportedTargetForm)?;
    let default_port = match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => "80",
        _ if scheme.eq_ignore_ascii_case("https") => "443",
        _ => return Err(ProtocolError::UnsupportedTargetForm),
    };
    let (authority, path) = after.split_at(after.find(['/', '?']).unwrap_or(after.len()));
    let authority = Authority::parse(authority.as_bytes()).ok_or(ProtocolError::InvalidTarget)?;
    if !authority.same_as(host, default_port) {
        return Err(ProtocolError::TargetContradictsHost);
    }
    match path {
        "" if method != Method::Options => Ok("/"),
        _ if path.starts_with('/') => Ok(path),
        _ => Err(ProtocolError::InvalidTarget),
    }
}

/// Returns whether every byte of a target is allowed at its position, and every escape is valid.
///
/// RFC 3986 forbids some printable bytes. Of these, this function accepts only the bytes that the
/// URL Standard does not escape (section 1.3, "path percent-encode set" and "query percent-encode
/// set"), because browsers and similar clients send them. The bytes `"`, `<`, `>`, `#` and, in a
/// path, `\`, `^`, `` ` ``, `{` and `}` are therefore refused. An escape is two hexadecimal digits
/// and not NUL.
pub(crate) fn is_valid(target: &[u8]) -> bool {
    let (path, query) = target.split_at(memchr(b'?', target).unwrap_or(target.len()));
    let all = |part: &[u8], class: u8| {
        part.iter()
            .fold(class, |seen, &byte| seen & BYTE_CLASSES[usize::from(byte)])
            == class
    };
    all(path, IN_PATH)
        && all(query, IN_QUERY)
        && memchr_iter(b'%', target).all(|at| match target.get(at + 1..at + 3) {
            Some(b"00") | None => false,
            Some(digits) => digits.iter().all(u8::is_ascii_hexdigit),
        })
}

const IN_PATH: u8 = 1;
const IN_QUERY: u8 = 2;

/// The parts of a target in which each byte is allowed.
const BYTE_CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte as usize] = match byte {
            b'"' | b'#' | b'<' | b'>' => 0,
            b'\\' | b'^' | b'`' | b'{' | b'}' => IN_QUERY,
            _ => IN_PATH | IN_QUERY,
        };
        byte += 1;
    }
    table
};
