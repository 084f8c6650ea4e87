use crate::api_key::KeyHash;

/// Maximum length of a line, in bytes: a digest, a tenant's name of 63 + 1 + 253 bytes, a key's name, an expiry.
pub(super) const MAX_LINE_BYTES: usize = 512;
/// Maximum length of the name of a namespace, a key or a plan.
const MAX_LABEL_BYTES: usize = 63;
/// Maximum length of the name of a Kubernetes object.
const MAX_NAME_BYTES: usize = 253;

/// A mistake in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line does not have the required form.
    #[error("it is malformed")]
    Malformed,
    /// The line is not in ascending order after the previous line, or repeats it.
    #[error("it does not sort after the line before it")]
    NotSorted,
    /// The line or the file exceeds a limit.
    #[error("a limit is exceeded: 1 MiB, 16384 lines, or 512 bytes in a line")]
    TooLong,
    /// The file ends in the middle of a line.
    #[error("the file does not end with a line feed")]
    Unterminated,
}

/// A parsed line of the file of keys.
pub(super) struct KeyLine<'l> {
    pub(super) hash: KeyHash,
    pub(super) expires_at: Option<u64>,
    pub(super) tenant: &'l str,
    pub(super) name: &'l str,
}

/// Parses `<digest> <tenant> <key name>[ not_after=<seconds since 1970>]`, separated by single spaces.
pub(super) fn parse_key_line(line: &str) -> Result<KeyLine<'_>, LineError> {
    let mut words = line.split(' ');
    let mut next = || words.next().ok_or(LineError::Malformed);
    let (digest, tenant, name) = (next()?, next()?, next()?);
    let expires_at = match words.next() {
        None => None,
        Some(word) => {
            let digits = word.strip_prefix("not_after=").ok_or(LineError::Malformed)?;
            Some(parse_unix_seconds(digits).ok_or(LineError::Malformed)?)
        }
    };
    if words.next().is_some() || !is_tenant(tenant) || !is_label(name) {
        return Err(LineError::Malformed);
    }
    let hash = parse_hash(digest).ok_or(LineError::Malformed)?;
    Ok(KeyLine {
        hash,
        expires_at,
        tenant,
        name,
    })
}

/// Parses `<tenant> <plan>`.
pub(super) fn parse_tenant_line(line: &str) -> Result<(&str, &str), LineError> {
    let (tenant, plan) = line.split_once(' ').ok_or(LineError::Malformed)?;
    if is_tenant(tenant) && is_plan(plan) {
        Ok((tenant, plan))
    } else {
        Err(LineError::Malformed)
    }
}

/// Whether a text is `<namespace>/<name>`. Names of configured tenants contain no slash, so they
/// cannot be confused with these.
fn is_tenant(text: &str) -> bool {
    text.split_once('/').is_some_and(|(namespace, name)| {
        is_label(namespace) && name.len() <= MAX_NAME_BYTES && name.split('.').all(is_dns_label)
    })
}

fn is_label(text: &str) -> bool {
    text.len() <= MAX_LABEL_BYTES && is_dns_label(text)
}

/// Whether a text consists of lower-case letters, digits and inner hyphens.
fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether a text is a plan's name that a configuration may contain.
fn is_plan(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.len() <= MAX_LABEL_BYTES
        && text.bytes().all(inner)
        && text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
}

/// Parses a number of at least 1, without a sign or leading zeros, of at most 19 digits.
fn parse_unix_seconds(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if is_plain && digits.len() <= 19 {
        digits.parse().ok()
    } else {
        None
    }
}

fn parse_hash(digits: &str) -> Option<KeyHash> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != 32 || !rest.is_empty() {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
        *byte = nibble(*high)? << 4 | nibble(*low)?;
    }
    Some(hash)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
