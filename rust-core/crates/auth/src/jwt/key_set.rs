use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::SigningAlgorithm;
use super::token::CompactToken;
use crate::{AuthError, Error};

const MAX_TEXT_BYTES: usize = 256 * 1024;
const MAX_KEYS: usize = 64;
const MIN_RSA_BITS: usize = 2048;
const MAX_RSA_BITS: usize = 8192;

/// The public keys of an issuer (RFC 7517 section 5). Cloning is cheap, and a clone can be sent to
/// another thread.
#[derive(Debug, Clone)]
pub struct KeySet {
    keys: Arc<[PublicKey]>,
    /// SHA-256 of the text from which the set was parsed.
    source: [u8; 32],
}

/// A key, with the only algorithm for which it is used (RFC 8725 section 3.1).
#[derive(Debug)]
struct PublicKey {
    id: Option<String>,
    algorithm: SigningAlgorithm,
    key: DecodingKey,
    signature_bytes: usize,
}

/// A reason why a key set has no key for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyLookupError {
    /// The key is missing; a newer key set may have it.
    Missing,
    /// The token names no key, and several keys match.
    Ambiguous,
    /// The key that the token names has another algorithm.
    WrongAlgorithm,
}

impl KeySet {
    /// Parses a JWK Set; returns the set, and the number of keys that were left out.
    ///
    /// These keys are left out: keys of other types than RSA, P-256 and Ed25519, keys that are not
    /// for signatures, RSA keys of fewer than 2048 bits, keys that contain their private part, and
    /// keys with the name and algorithm of an earlier key. A set without a usable key refuses every
    /// token.
    ///
    /// # Errors
    /// [`Error::MalformedKeySet`]; [`Error::KeySetTooLarge`] for more than 256 KiB or 64 keys.
    pub fn parse(jwks_json: &str) -> Result<(Self, usize), Error> {
        #[derive(Deserialize)]
        struct Document<'t> {
            #[serde(borrow)]
            keys: Vec<&'t RawValue>,
        }
        let too_large = Error::KeySetTooLarge {
            max_bytes: MAX_TEXT_BYTES,
            max_keys: MAX_KEYS,
        };
        if jwks_json.len() > MAX_TEXT_BYTES {
            return Err(too_large);
        }
        let document: Document<'_> =
            super::token::parse_object(jwks_json.as_bytes()).ok_or(Error::MalformedKeySet)?;
        let given = document.keys.len();
        if given > MAX_KEYS {
            return Err(too_large);
        }
        let mut keys: Vec<PublicKey> = Vec::with_capacity(given);
        for key in document.keys.iter().filter_map(|jwk| PublicKey::parse(jwk.get())) {
            if !keys
                .iter()
                .any(|known| known.id == key.id && known.algorithm == key.algorithm && key.id.is_some())
            {
                keys.push(key);
            }
        }
        let ignored = given - keys.len();
        let source = Sha256::digest(jwks_json).into();
        Ok((
            KeySet {
                keys: keys.into(),
                source,
            },
            ignored,
        ))
    }

    /// Returns the number of usable keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the set has no usable key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether both sets were parsed from the same text.
    pub(super) fn has_same_source(&self, other: &KeySet) -> bool {
        self.source == other.source
    }

    /// Verifies the signature of a token with the key that its header names. The header only
    /// selects a key of this set; the algorithm is the key's own.
    ///
    /// # Errors
    /// A [`KeyLookupError`] if there is no such key; `Ok(Err(_))` with [`AuthError::InvalidSignature`] if the signature is
    /// wrong.
    pub(super) fn verify(&self, token: &CompactToken<'_>) -> Result<Result<(), AuthError>, KeyLookupError> {
        let algorithm = token.header.algorithm;
        let key = match token.header.key_id.as_deref() {
            Some(id) => self.find_by_id(id, algorithm)?,
            None => self.only_key(algorithm)?,
        };
        Ok(key.verify(token))
    }

    fn find_by_id(&self, id: &str, algorithm: SigningAlgorithm) -> Result<&PublicKey, KeyLookupError> {
        let mut reason = KeyLookupError::Missing;
        for key in self.keys.iter().filter(|key| key.id.as_deref() == Some(id)) {
            if key.algorithm == algorithm {
                return Ok(key);
            }
            reason = KeyLookupError::WrongAlgorithm;
        }
        Err(reason)
    }

    fn only_key(&self, algorithm: SigningAlgorithm) -> Result<&PublicKey, KeyLookupError> {
        let mut fitting = self.keys.iter().filter(|key| key.algorithm == algorithm);
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key),
            (Some(_), Some(_)) => Err(KeyLookupError::Ambiguous),
            (None, _) => Err(KeyLookupError::Missing),
        }
    }
}

/// The members of a JWK that are needed for verification (RFC 7517 section 4, RFC 7518 section 6, RFC 8037 section 2).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    d: Option<IgnoredAny>,
}

impl PublicKey {
    fn parse(json: &str) -> Option<Self> {
        let jwk: Jwk = super::token::parse_object(json.as_bytes())?;
        let (algorithm, key, signature_bytes) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => parse_rsa(&jwk)?,
            ("EC", Some("P-256")) => {
                let (x, y) = (jwk.x.as_deref()?, jwk.y.as_deref()?);
                if parse_coordinate(x).is_none() || parse_coordinate(y).is_none() {
                    return None;
                }
                (
                    SigningAlgorithm::Es256,
                    DecodingKey::from_ec_components(x, y).ok()?,
                    64,
                )
            }
            ("OKP", Some("Ed25519")) => {
                let x = parse_coordinate(jwk.x.as_deref()?)?;
                (SigningAlgorithm::EdDsa, DecodingKey::from_ed_der(&x), 64)
            }
            _ => return None,
        };
        let for_signatures = jwk.r#use.is_none_or(|purpose| purpose == "sig")
            && jwk
                .key_ops
                .is_none_or(|operations| operations.iter().any(|name| name == "verify"))
            && jwk
                .alg
                .is_none_or(|name| SigningAlgorithm::parse(&name) == Some(algorithm));
        (for_signatures && jwk.d.is_none()).then_some(PublicKey {
            id: jwk.kid,
            algorithm,
            key,
            signature_bytes,
        })
    }

    fn verify(&self, token: &CompactToken<'_>) -> Result<(), AuthError> {
        let encoded_length = (self.signature_bytes * 8).div_ceil(6);
        let genuine = token.signature.len() == encoded_length
            && jsonwebtoken::crypto::verify(
                token.signature,
                token.signing_input,
                &self.key,
                self.algorithm.into(),
            )
            .unwrap_or(false);
        if genuine {
            Ok(())
        } else {
            Err(AuthError::InvalidSignature)
        }
    }
}

/// Parses an RSA key. Its exponent must be odd and at least 3; with 1, a message would be its own signature.
fn parse_rsa(jwk: &Jwk) -> Option<(SigningAlgorithm, DecodingKey, usize)> {
    let modulus = URL_SAFE_NO_PAD.decode(jwk.n.as_deref()?).ok()?;
    let exponent = URL_SAFE_NO_PAD.decode(jwk.e.as_deref()?).ok()?;
    let (modulus, exponent) = (without_leading_zeros(&modulus), without_leading_zeros(&exponent));
    let bits = modulus.len() * 8 - modulus.first()?.leading_zeros() as usize;
    let sound_exponent = exponent.last().is_some_and(|last| last % 2 == 1) && exponent != [1];
    (sound_exponent && exponent.len() <= 4 && (MIN_RSA_BITS..=MAX_RSA_BITS).contains(&bits)).then(|| {
        let key = DecodingKey::from_rsa_raw_components(modulus, exponent);
        (SigningAlgorithm::Rs256, key, modulus.len())
    })
}

fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

/// Parses a P-256 coordinate or an Ed25519 public key: 32 bytes, never shortened (RFC 7518 section 6.2.1.2).
fn parse_coordinate(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
#[path = "key_set_tests.rs"]
mod tests;
