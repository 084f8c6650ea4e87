use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::SigningAlgorithm;
use crate::AuthError;

/// Whether a bearer token has the form of a JWS in compact serialisation (RFC 7515 section 7.1).
pub(crate) fn has_three_parts(token: &[u8]) -> bool {
    token.iter().filter(|byte| **byte == b'.').count() == 2
}

/// A parsed JWS in compact serialisation, not yet verified.
pub(super) struct CompactToken<'t> {
    /// The signed bytes: header, dot and payload, as received.
    pub(super) signing_input: &'t [u8],
    /// The signature, in base64url.
    pub(super) signature: &'t str,
    pub(super) header: Header,
    /// The claims, as JSON.
    pub(super) payload: Vec<u8>,
}

impl<'t> CompactToken<'t> {
    /// Splits a token and parses its header.
    ///
    /// # Errors
    /// [`AuthError::MalformedToken`]; [`AuthError::UnsupportedAlgorithm`] for `none`, `HS256` and
    /// all other algorithms that are never accepted.
    pub(super) fn parse(token: &'t [u8]) -> Result<Self, AuthError> {
        let text = std::str::from_utf8(token).map_err(|_| AuthError::MalformedToken)?;
        let (signing_input, signature) = text.rsplit_once('.').ok_or(AuthError::MalformedToken)?;
        let (header, payload) = signing_input.split_once('.').ok_or(AuthError::MalformedToken)?;
        let header = Header::parse(&decode_base64url(header)?)?;
        Ok(CompactToken {
            signing_input: signing_input.as_bytes(),
            signature,
            header,
            payload: decode_base64url(payload)?,
        })
    }
}

/// Decodes base64url without padding; unused bits must be zero, so that every value has one encoding.
fn decode_base64url(part: &str) -> Result<Vec<u8>, AuthError> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| AuthError::MalformedToken)
}

/// The signature parameters of the header. Keys inside a token (`jwk`, `jku`, `x5c`) are ignored.
pub(super) struct Header {
    pub(super) algorithm: SigningAlgorithm,
    pub(super) key_id: Option<String>,
}

/// The header as JSON. Serde refuses repeated parameters (RFC 7515 section 4).
#[derive(Deserialize)]
struct Parameters {
    alg: String,
    kid: Option<String>,
    #[serde(default, deserialize_with = "present")]
    crit: bool,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

impl Header {
    fn parse(json: &[u8]) -> Result<Self, AuthError> {
        let parameters: Parameters = parse_object(json).ok_or(AuthError::MalformedToken)?;
        // No extension is supported, so tokens with critical extensions are refused (RFC 7515
        // section 4.1.11).
        if parameters.crit {
            return Err(AuthError::MalformedToken);
        }
        Ok(Header {
            algorithm: SigningAlgorithm::parse(&parameters.alg).ok_or(AuthError::UnsupportedAlgorithm)?,
            key_id: parameters.kid,
        })
    }
}

/// Parses a JSON object. Serde alone would also accept an array of the fields' values.
pub(super) fn parse_object<'j, T: Deserialize<'j>>(json: &'j [u8]) -> Option<T> {
    json.trim_ascii_start()
        .starts_with(b"{")
        .then(|| serde_json::from_slice(json).ok())
        .flatten()
}
