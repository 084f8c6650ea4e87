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
    /// What exchanges cost on one UTC day, in nanodollars (10⁻⁹ USD).
    pub nanodollars_per_day: Option<NonZeroU64>,
    /// What they cost in one UTC month.
    pub nanodollars_per_month: Option<NonZeroU64>,
}

impl Limits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether tokens or money are limited.
    #[must_use]
    pub fn counts_use(&self) -> bool {
        self.tokens_per_minute.is_some() || self.tokens_per_day.is_some() || self.has_budget()
    }

    /// Whether money is limited.
    #[must_use]
    pub fn has_budget(&self) -> bool {
        self.nanodollars_per_day.is_some() || self.nanodollars_per_month.is_some()
    }
}

/// What a tenant may spend on one model, with all of its keys together; `None` is no limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelBudget {
    /// The model's name in the configuration.
    pub model: String,
    /// Nanodollars on one UTC day.
    pub nanodollars_per_day: Option<NonZeroU64>,
    /// Nanodollars in one UTC month.
    pub nanodollars_per_month: Option<NonZeroU64>,
}

/// One of a tenant's credentials, as limits and records name it. Credentials of one tenant that share it share their
/// limits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CredentialId {
    /// The first 4 bytes of an API key's SHA-256: enough to tell the keys of a tenant from each other, too little to look
    /// up a weak one. Whoever makes a tenant's keys knows them all.
    ApiKey([u8; 4]),
    /// The first 16 bytes of the SHA-256 of who a token is about. People can often choose their name at an issuer, so
    /// another one of the same id must not be found by trying.
    Subject([u8; 16]),
}

impl CredentialId {
    /// That of an API key, from its SHA-256.
    #[must_use]
    pub const fn of_api_key(hash: &[u8; 32]) -> Self {
        Self::ApiKey([hash[0], hash[1], hash[2], hash[3]])
    }

    /// That of the subject of tokens, from its SHA-256.
    #[must_use]
    pub fn of_subject(hash: &[u8; 32]) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self::Subject(id)
    }

    /// From the lower-case hex digits of a record: 8 of an API key, 32 of a subject.
    #[must_use]
    pub fn parse(hex: &str) -> Option<Self> {
        match hex.len() {
            8 => bytes(hex).map(Self::ApiKey),
            32 => bytes(hex).map(Self::Subject),
            _ => None,
        }
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        match self {
            Self::ApiKey(id) => id,
            Self::Subject(id) => id,
        }
    }

    /// As lower-case hex digits, as in records.
    #[must_use]
    pub fn hex(&self) -> CredentialHex {
        let mut digits = [0; 32];
        let mut length = 0;
        for byte in self.as_bytes() {
            for nibble in [byte >> 4, byte & 0x0f] {
                digits[length] = b"0123456789abcdef"[usize::from(nibble)];
                length += 1;
            }
        }
        CredentialHex { digits, length }
    }
}

/// `N` bytes from twice as many lower-case hex digits.
fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = nibble(*high)? << 4 | nibble(*low)?;
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// The digits of a [`CredentialId`].
#[derive(Clone, Copy)]
pub struct CredentialHex {
    digits: [u8; 32],
    length: usize,
}

impl CredentialHex {
    /// 8 or 32 lower-case hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.digits[..self.length]).unwrap_or_default()
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.hex().as_str())
    }
}

impl fmt::Debug for CredentialId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CredentialId({self})")
    }
}

/// Limits in the form in which they are compared: no limit is the largest number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceilings {
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
    pub(crate) day_tokens: u64,
    pub(crate) in_flight: u64,
    /// Nanodollars.
    pub(crate) day_cost: u64,
    /// Nanodollars.
    pub(crate) month_cost: u64,
}

impl Ceilings {
    pub(crate) const NONE: Self = Self {
        requests: u64::MAX,
        tokens: u64::MAX,
        day_tokens: u64::MAX,
        in_flight: u64::MAX,
        day_cost: u64::MAX,
        month_cost: u64::MAX,
    };
}

impl From<&Limits> for Ceilings {
    fn from(limits: &Limits) -> Self {
        Self {
            requests: ceiling(limits.requests_per_minute),
            tokens: ceiling(limits.tokens_per_minute),
            day_tokens: ceiling(limits.tokens_per_day),
            in_flight: ceiling(limits.concurrency),
            day_cost: ceiling(limits.nanodollars_per_day),
            month_cost: ceiling(limits.nanodollars_per_month),
        }
    }
}

impl From<&ModelBudget> for Ceilings {
    fn from(budget: &ModelBudget) -> Self {
        Self {
            day_cost: ceiling(budget.nanodollars_per_day),
            month_cost: ceiling(budget.nanodollars_per_month),
            ..Self::NONE
        }
    }
}

fn ceiling(limit: Option<NonZeroU64>) -> u64 {
    limit.map_or(u64::MAX, NonZeroU64::get)
}
