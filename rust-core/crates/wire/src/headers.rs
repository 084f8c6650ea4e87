//! Header fields of a head, as received.

use crate::limits::{Limits, MAX_HEADERS};
use crate::syntax::trim_ows;
use httparse::{EMPTY_HEADER, Header};
use std::fmt;
use std::mem::MaybeUninit;

/// Number of fields that are stored without allocation, enough for an ordinary head.
const INLINE_FIELDS: usize = 16;

/// The header fields of a head, in order (RFC 9110 section 5). Names keep their case. Values have no surrounding whitespace
/// and no control byte except HTAB, but may contain bytes above 0x7f.
#[derive(Clone)]
pub struct Headers<'b> {
    few: [Header<'b>; INLINE_FIELDS],
    few_len: usize,
    /// All fields if they do not fit into `few`; otherwise empty.
    many: Vec<Header<'b>>,
}

/// The slots that the parser fills with fields.
pub(crate) struct HeaderSlots<'b>([MaybeUninit<Header<'b>>; MAX_HEADERS]);

impl<'b> HeaderSlots<'b> {
    pub(crate) fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; MAX_HEADERS])
    }

    /// Returns the slots that a head with these limits may fill.
    pub(crate) fn limited(&mut self, limits: &Limits) -> &mut [MaybeUninit<Header<'b>>] {
        &mut self.0[..limits.headers.min(MAX_HEADERS)]
    }
}

impl<'b> Headers<'b> {
    pub(crate) fn new(parsed: &[Header<'b>]) -> Self {
        let mut headers = Self {
            few: [EMPTY_HEADER; INLINE_FIELDS],
            few_len: 0,
            many: Vec::new(),
        };
        match headers.few.get_mut(..parsed.len()) {
            Some(few) => {
                few.copy_from_slice(parsed);
                headers.few_len = parsed.len();
            }
            None => headers.many = parsed.to_vec(),
        }
        headers
    }

    fn fields(&self) -> &[Header<'b>] {
        if self.many.is_empty() {
            &self.few[..self.few_len]
        } else {
            &self.many
        }
    }

    /// Iterates over the fields as name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> + '_ {
        self.fields().iter().map(|field| (field.name, field.value))
    }

    /// Returns the value of the first field of this name, ignoring case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'b [u8]> {
        self.iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Returns the number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields().len()
    }

    /// Returns whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields().is_empty()
    }

    /// Returns whether a field of this name applies only to this connection, by definition or
    /// because Connection names it (RFC 9110 section 7.6.1).
    #[must_use]
    pub fn is_hop_by_hop(&self, name: &str) -> bool {
        is_hop_by_hop(name)
            || self
                .iter()
                .filter(|(field, _)| field.eq_ignore_ascii_case("connection"))
                .flat_map(|(_, value)| value.split(|&byte| byte == b','))
                .any(|option| trim_ows(option).eq_ignore_ascii_case(name.as_bytes()))
    }
}

impl fmt::Debug for Headers<'_> {
    /// Shows only names, because values contain secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(self.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Returns whether a field of this name, ignoring case, applies only to one connection and is never
/// forwarded (RFC 9110 section 7.6.1).
#[must_use]
pub fn is_hop_by_hop(name: &str) -> bool {
    const HOP_BY_HOP: [&str; 11] = [
        "connection",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    HOP_BY_HOP.iter().any(|field| field.eq_ignore_ascii_case(name))
}

/// Returns whether a field of this name, ignoring case, determines the end, the sender or the
/// meaning of a message. Connection must not name such a field, and no field name may imitate it
/// with other punctuation.
pub(crate) fn is_protected(name: &[u8]) -> bool {
    const PROTECTED: [&str; 13] = [
        "api-key",
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "transfer-encoding",
        "x-api-key",
        "x-goog-api-key",
        "x-real-ip",
    ];
    const PROTECTED_PREFIXES: [&str; 2] = ["x-forwarded-", "x-proofgate-"];
    PROTECTED
        .iter()
        .any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
        || PROTECTED_PREFIXES.iter().any(|prefix| {
            name.get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        })
}

/// Normalizes a byte of a field name like the most lenient parser: all punctuation becomes `-`.
pub(crate) fn normalize_name_byte(byte: u8) -> u8 {
    if byte.is_ascii_alphanumeric() { byte } else { b'-' }
}

/// The maximum length of the names of [`is_protected`] and [`is_hop_by_hop`], plus one byte to
/// detect longer names.
pub(crate) const MAX_KNOWN_NAME_BYTES: usize = 26;
