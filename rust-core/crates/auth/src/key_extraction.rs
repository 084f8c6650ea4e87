//! Extraction of a request's key from the fields that can contain it.

use proofgate_wire::ApiKeyHeaders;

use crate::AuthError;
use crate::key_header::KeyHeader;

/// Maximum length of a token, in bytes. A JWT is rarely longer than two kilobytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 8 * 1024;

impl KeyHeader {
    /// Returns the key in a value of this field: visible ASCII. In Authorization, the key follows
    /// the scheme (in any case) and exactly one space.
    ///
    /// # Errors
    /// [`AuthError::MalformedKey`] for any other value, including a key that is empty or longer
    /// than `most_bytes`.
    fn extract_key(self, value: &[u8], most_bytes: usize) -> Result<&[u8], AuthError> {
        let key = match self {
            KeyHeader::Authorization => value
                .split_at_checked(7)
                .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "))
                .map(|(_, key)| key),
            _ => Some(value),
        };
        key.filter(|key| !key.is_empty() && key.len() <= most_bytes && is_graphic(key))
            .ok_or(AuthError::MalformedKey(self))
    }
}

fn present_fields<'h>(fields: &ApiKeyHeaders<'h>) -> impl Iterator<Item = (KeyHeader, &'h [u8])> {
    [
        (KeyHeader::Authorization, fields.authorization),
        (KeyHeader::XApiKey, fields.x_api_key),
        (KeyHeader::ApiKey, fields.api_key),
        (KeyHeader::XGoogApiKey, fields.x_goog_api_key),
    ]
    .into_iter()
    .filter_map(|(field, value)| Some((field, value?)))
}

/// Returns the only key of a request, of at most `most_bytes`, and the first field that contains
/// it.
///
/// # Errors
/// [`AuthError::MissingKey`]; otherwise the error of the first invalid field, in the order of
/// [`KeyHeader`]: [`AuthError::MalformedKey`] or [`AuthError::AmbiguousKey`].
pub(crate) fn unique_key<'h>(
    fields: &ApiKeyHeaders<'h>,
    most_bytes: usize,
) -> Result<(KeyHeader, &'h [u8]), AuthError> {
    let mut fields = present_fields(fields);
    let (first, value) = fields.next().ok_or(AuthError::MissingKey)?;
    let key = first.extract_key(value, most_bytes)?;
    for (field, value) in fields {
        // The client sent both keys, so the timing of the comparison reveals nothing.
        if field.extract_key(value, most_bytes)? != key {
            return Err(AuthError::AmbiguousKey(first, field));
        }
    }
    Ok((first, key))
}

/// Whether all bytes are visible ASCII. It checks all bytes, sixteen at a time, which is much
/// faster for a token than stopping at the first other byte.
fn is_graphic(token: &[u8]) -> bool {
    let others = token.iter().fold(0, |others, byte| {
        others | u8::from(byte.wrapping_sub(b'!') > b'~' - b'!')
    });
    others == 0
}
