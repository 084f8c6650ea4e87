use crate::AuthError;

/// The longest token that is looked at, in bytes. A JWT is seldom longer than two kilobytes.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// The token of an `Authorization` value (RFC 6750 section 2.1): the scheme in any case, exactly one space, visible
/// ASCII.
///
/// # Errors
/// [`AuthError::MalformedKey`] for anything else, also for an empty or over-long token.
pub(crate) fn bearer_token(value: &[u8]) -> Result<&[u8], AuthError> {
    let (scheme, token) = value.split_at_checked(7).ok_or(AuthError::MalformedKey)?;
    let well_formed = scheme.eq_ignore_ascii_case(b"bearer ")
        && !token.is_empty()
        && token.len() <= MAX_TOKEN_BYTES
        && is_graphic(token);
    if well_formed {
        Ok(token)
    } else {
        Err(AuthError::MalformedKey)
    }
}

/// Whether all bytes are visible ASCII. It looks at all of them, sixteen at a time, which for a token is much faster
/// than to stop at the first that is not.
fn is_graphic(token: &[u8]) -> bool {
    let others = token.iter().fold(0, |others, byte| {
        others | u8::from(byte.wrapping_sub(b'!') > b'~' - b'!')
    });
    others == 0
}
