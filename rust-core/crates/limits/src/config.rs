//! Model budgets, and the identifiers of credentials.

use crate::kinds::{Limit, Limits};
use crate::money::nanodollars;
use serde::Deserialize;
use std::fmt;
use std::num::NonZeroU64;

/// A tenant's budget for one model, for all of its keys together; `None` means no limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelBudget {
    /// The model's name in the configuration.
    pub model: String,
    /// Nanodollars on one UTC day.
    #[serde(default, rename = "dollarsPerDay", deserialize_with = "nanodollars")]
    pub nanodollars_per_day: Option<NonZeroU64>,
    /// Nanodollars in one UTC month.
    #[serde(default, rename = "dollarsPerMonth", deserialize_with = "nanodollars")]
    pub nanodollars_per_month: Option<NonZeroU64>,
}

/// The id of one of a tenant's credentials in limits and records. Credentials of one tenant with
/// the same id share their limits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CredentialId {
    /// The first 4 bytes of an API key's SHA-256. They suffice to distinguish a tenant's keys, but
    /// not to look up a weak key. The creator of a tenant's keys knows all of them.
    ApiKey([u8; 4]),
    /// The first 16 bytes of the SHA-256 of a token's subject. People can often choose their name
    /// at an issuer, so a search for another name with the same id must not be feasible.
    Subject([u8; 16]),
}

impl CredentialId {
    /// Returns the id of an API key from its SHA-256.
    #[must_use]
    pub const fn from_api_key_hash(hash: &[u8; 32]) -> Self {
        Self::ApiKey([hash[0], hash[1], hash[2], hash[3]])
    }

    /// Returns the id of a token's subject from its SHA-256.
    #[must_use]
    pub fn from_subject_hash(hash: &[u8; 32]) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self::Subject(id)
    }

    /// Parses the lower-case hex digits used in records: 8 for an API key, 32 for a subject.
    #[must_use]
    pub fn parse(hex: &str) -> Option<Self> {
        match hex.len() {
            8 => parse_hex_bytes(hex).map(Self::ApiKey),
            32 => parse_hex_bytes(hex).map(Self::Subject),
            _ => None,
        }
    }

    /// Returns the id's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        match self {
            Self::ApiKey(id) => id,
            Self::Subject(id) => id,
        }
    }

    /// Returns the id as lower-case hex digits, as in records.
    #[must_use]
    pub fn to_hex(&self) -> CredentialHex {
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

/// Parses `N` bytes from twice as many lower-case hex digits.
fn parse_hex_bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
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

/// The hex digits of a [`CredentialId`].
#[derive(Clone, Copy)]
pub struct CredentialHex {
    digits: [u8; 32],
    length: usize,
}

impl CredentialHex {
    /// Returns the 8 or 32 lower-case hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.digits[..self.length]).unwrap_or_default()
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.to_hex().as_str())
    }
}

impl fmt::Debug for CredentialId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CredentialId({self})")
    }
}

/// The limits in a form for comparison: the absence of a limit is the largest number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceilings([u64; Limit::COUNT]);

impl Ceilings {
    pub(crate) const NONE: Self = Self([u64::MAX; Limit::COUNT]);

    /// Returns one limit, in its unit.
    #[inline]
    pub(crate) fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// Iterates over the limits that are set, with their values.
    pub(crate) fn iter_limits(&self) -> impl Iterator<Item = (Limit, u64)> + use<> {
        let all = Limit::ALL.into_iter().zip(self.0);
        all.filter(|(_, value)| *value != u64::MAX)
    }
}

impl From<&Limits> for Ceilings {
    fn from(limits: &Limits) -> Self {
        Self(Limit::ALL.map(|limit| ceiling(limits.get(limit))))
    }
}

impl From<&ModelBudget> for Ceilings {
    fn from(budget: &ModelBudget) -> Self {
        Self::from(&Limits {
            nanodollars_per_day: budget.nanodollars_per_day,
            nanodollars_per_month: budget.nanodollars_per_month,
            ..Limits::default()
        })
    }
}

fn ceiling(limit: Option<NonZeroU64>) -> u64 {
    limit.map_or(u64::MAX, NonZeroU64::get)
}
