use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Issuer;
use super::token::parse_object;
use crate::AuthError;

/// The registered claims that are checked (RFC 7519 section 4.1). Serde refuses repeated claims.
#[derive(Deserialize)]
pub(super) struct Claims {
    pub(super) iss: Option<String>,
    aud: Option<Audience>,
    exp: Option<NumericDate>,
    nbf: Option<NumericDate>,
    pub(super) sub: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Claims {
    /// Parses the claims of a payload.
    ///
    /// # Errors
    /// [`AuthError::InvalidClaims`] if the payload is not a JSON object or a claim has the wrong type.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, AuthError> {
        parse_object(payload).ok_or(AuthError::InvalidClaims)
    }

    /// Checks the audience and the validity period, and returns the seconds in which the token is
    /// valid. The time of issue (`iat`) is not checked (RFC 7519 section 4.1.6).
    ///
    /// # Errors
    /// [`AuthError::WrongAudience`], [`AuthError::ExpiredToken`], [`AuthError::TokenNotYetValid`];
    /// [`AuthError::InvalidClaims`] without `aud` or `exp`.
    pub(super) fn check(&self, issuer: &Issuer, now_unix_seconds: u64) -> Result<Range<u64>, AuthError> {
        let audiences = match self.aud.as_ref().ok_or(AuthError::InvalidClaims)? {
            Audience::One(audience) => std::slice::from_ref(audience),
            Audience::Several(audiences) => audiences,
        };
        if !audiences
            .iter()
            .any(|audience| issuer.audiences.contains(audience))
        {
            return Err(AuthError::WrongAudience);
        }
        let NumericDate(expires) = self.exp.ok_or(AuthError::InvalidClaims)?;
        let end = expires.saturating_add(issuer.leeway_seconds);
        if now_unix_seconds >= end {
            return Err(AuthError::ExpiredToken);
        }
        let begin = self.nbf.map_or(0, |NumericDate(start)| {
            start.saturating_sub(issuer.leeway_seconds)
        });
        if now_unix_seconds < begin {
            return Err(AuthError::TokenNotYetValid);
        }
        Ok(begin..end)
    }
}

/// Whole Unix seconds; a fraction is dropped (RFC 7519 section 2). Times before 1970 count as 0.
#[derive(Clone, Copy)]
struct NumericDate(u64);

impl<'de> Deserialize<'de> for NumericDate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = NumericDate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of seconds")
            }

            fn visit_u64<E>(self, seconds: u64) -> Result<NumericDate, E> {
                Ok(NumericDate(seconds))
            }

            fn visit_i64<E>(self, seconds: i64) -> Result<NumericDate, E> {
                Ok(NumericDate(u64::try_from(seconds).unwrap_or(0)))
            }

            fn visit_f64<E>(self, seconds: f64) -> Result<NumericDate, E> {
                Ok(NumericDate(seconds as u64))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

/// Returns the value of a string claim; `None` if it is missing, repeated or of another type.
pub(super) fn text_claim(payload: &[u8], name: &str) -> Option<String> {
    let mut deserializer = serde_json::Deserializer::from_slice(payload);
    TextClaim(name).deserialize(&mut deserializer).ok().flatten()
}

struct TextClaim<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for TextClaim<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TextClaim<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of claims")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut claims: A) -> Result<Self::Value, A::Error> {
        let mut value = None;
        while let Some(key) = claims.next_key::<String>()? {
            if key != self.0 {
                claims.next_value::<IgnoredAny>()?;
            } else if value.replace(claims.next_value::<String>()?).is_some() {
                return Err(serde::de::Error::custom("repeated claim"));
            }
        }
        Ok(value)
    }
}
