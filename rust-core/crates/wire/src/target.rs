//! Request targets (RFC 9112 section 3.2).

use crate::authority::Authority;
use crate::limits::Limits;
use crate::method::Method;
use crate::refusal::Refusal;

/// The origin form of `target`, a slice of it: path and query.
///
/// Origin form passes as it is. Absolute form passes when its scheme is http or https and its authority is
/// the Host header's (letters compared without case, a missing port read as the scheme's default on both
/// sides), and loses its scheme and authority. An absolute target with an empty path is `/`, unless it has a
/// query or the method is OPTIONS: then its origin form is not a slice of it, and it is refused. Authority
/// and asterisk form are refused.
pub(crate) fn origin_form<'b>(
    target: &'b str,
    method: Method,
    host: &Authority<'_>,
    limits: &Limits,
) -> Result<&'b str, Refusal> {
    if target.len() > limits.target_bytes {
        return Err(Refusal::TargetTooLong);
    }
    if target.bytes().fold(false, |bad, byte| {
        bad | !(0x21..=0x7e).contains(&byte) | (byte == b'#')
    }) {
        return Err(Refusal::InvalidTarget);
    }
    if target.starts_with('/') {
        return Ok(target);
    }
    let (scheme, after) = target.split_once("://").ok_or(Refusal::UnsupportedTargetForm)?;
    let default_port = match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => "80",
        _ if scheme.eq_ignore_ascii_case("https") => "443",
        _ => return Err(Refusal::UnsupportedTargetForm),
    };
    let (authority, path) = after.split_at(after.find(['/', '?']).unwrap_or(after.len()));
    let authority = Authority::parse(authority.as_bytes()).ok_or(Refusal::InvalidTarget)?;
    if !authority.same_as(host, default_port) {
        return Err(Refusal::TargetContradictsHost);
    }
    match path {
        "" if method != Method::Options => Ok("/"),
        _ if path.starts_with('/') => Ok(path),
        _ => Err(Refusal::InvalidTarget),
    }
}
