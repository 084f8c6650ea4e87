//! What is configured besides limits: budgets of models, and the names of those whose limits they are.

use crate::kinds::{Limit, Limits};
use serde::Deserialize;
use std::fmt;
use std::num::NonZeroU64;

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
    pub const fn from_api_key_hash(hash: &[u8; 32]) -> Self {
        Self::ApiKey([hash[0], hash[1], hash[2], hash[3]])
    }

    /// That of the subject of tokens, from its SHA-256.
    #[must_use]
    pub fn from_subject_hash(hash: &[u8; 32]) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self::Subject(id)
    }

    /// From the lower-case hex digits of a record: 8 of an API key, 32 of a subject.
    #[must_use]
    pub fn parse(hex: &str) -> Option<Self> {
        match hex.len() {
            8 => parse_hex_bytes(hex).map(Self::ApiKey),
            32 => parse_hex_bytes(hex).map(Self::Subject),
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

/// `N` bytes from twice as many lower-case hex digits.
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
        out.write_str(self.to_hex().as_str())
    }
}

impl fmt::Debug for CredentialId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CredentialId({self})")
    }
}

/// Limits in the form in which they are compared: no limit is the largest number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceilings([u64; Limit::COUNT]);

impl Ceilings {
    pub(crate) const NONE: Self = Self([u64::MAX; Limit::COUNT]);

    /// One of them, in its unit.
    #[inline]
    pub(crate) fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// The limits that there are, with their values.
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
