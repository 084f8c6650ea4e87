//! What is configured: limits, and the names of those they are for.

use serde::Deserialize;
use std::fmt;
use std::num::NonZeroU64;

/// What one tenant, or one API key, may use. `None` is no limit; a limit is at least 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Requests admitted in any 60 seconds.
    pub requests_per_minute: Option<NonZeroU64>,
    /// Tokens of prompts and answers in any 60 seconds.
    pub tokens_per_minute: Option<NonZeroU64>,
    /// Tokens of prompts and answers on one UTC day.
    pub tokens_per_day: Option<NonZeroU64>,
    /// Requests admitted and not ended.
    pub concurrency: Option<NonZeroU64>,
}

impl Limits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One tenant's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantLimits {
    /// Name in the manifest.
    pub name: String,
    /// For all of its requests together.
    pub limits: Limits,
    /// For each of its API keys by itself.
    pub key_limits: Limits,
}

/// An API key within its tenant: the first 4 bytes of its SHA-256, as in admission records. Keys of one tenant that
/// share them share their limits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 4]);

impl KeyId {
    /// From the first 4 bytes of a key's SHA-256.
    #[must_use]
    pub const fn new(prefix: [u8; 4]) -> Self {
        Self(prefix)
    }

    /// From the SHA-256 of a key.
    #[must_use]
    pub const fn of_hash(hash: &[u8; 32]) -> Self {
        Self([hash[0], hash[1], hash[2], hash[3]])
    }

    /// From the 8 lower-case hex digits of an admission record.
    #[must_use]
    pub fn parse(hex: &str) -> Option<Self> {
        let lower_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if hex.len() != 8 || !hex.bytes().all(lower_hex) {
            return None;
        }
        u32::from_str_radix(hex, 16)
            .ok()
            .map(|bits| Self(bits.to_be_bytes()))
    }

    /// As 8 lower-case hex digits, as in admission records.
    #[must_use]
    pub fn hex(self) -> [u8; 8] {
        let digit =
            |place: usize| b"0123456789abcdef"[usize::from(self.0[place / 2] >> (4 - place % 2 * 4) & 0x0f)];
        std::array::from_fn(digit)
    }

    /// The 4 bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 4] {
        self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(std::str::from_utf8(&self.hex()).unwrap_or_default())
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KeyId({self})")
    }
}

/// Limits in the form in which they are compared: no limit is the largest number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceilings {
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
    pub(crate) day_tokens: u64,
    pub(crate) in_flight: u64,
}

impl From<&Limits> for Ceilings {
    fn from(limits: &Limits) -> Self {
        let ceiling = |limit: Option<NonZeroU64>| limit.map_or(u64::MAX, NonZeroU64::get);
        Self {
            requests: ceiling(limits.requests_per_minute),
            tokens: ceiling(limits.tokens_per_minute),
            day_tokens: ceiling(limits.tokens_per_day),
            in_flight: ceiling(limits.concurrency),
        }
    }
}
