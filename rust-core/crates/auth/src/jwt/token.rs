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

/// A JWS in compact serialisation, taken apart. Nothing of it is to be believed yet.
pub(super) struct CompactToken<'t> {
    /// What the signature is over: header, dot, payload, as they came.
    pub(super) signing_input: &'t [u8],
    /// In base64url.
    pub(super) signature: &'t str,
    pub(super) header: Header,
    /// The claims, as JSON.
    pub(super) payload: Vec<u8>,
}

impl<'t> CompactToken<'t> {
    /// Takes a token apart and reads its header.
    ///
    /// # Errors
    /// [`AuthError::MalformedToken`]; [`AuthError::UnsupportedAlgorithm`] for `none`, `HS256` and any other that is never
    /// accepted.
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

/// Base64url without padding, with zeros in the unused bits, so that every value has one spelling.
fn decode_base64url(part: &str) -> Result<Vec<u8>, AuthError> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| AuthError::MalformedToken)
}

/// What the header says of the signature. Keys inside a token (`jwk`, `jku`, `x5c`) are never looked at.
pub(super) struct Header {
    pub(super) algorithm: SigningAlgorithm,
    pub(super) key_id: Option<String>,
}

/// Repeated parameters are refused here by serde (RFC 7515 section 4).
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
        // No extension is understood here, and one that is critical must be (RFC 7515 section 4.1.11).
        if parameters.crit {
            return Err(AuthError::MalformedToken);
        }
        Ok(Header {
            algorithm: SigningAlgorithm::parse(&parameters.alg).ok_or(AuthError::UnsupportedAlgorithm)?,
            key_id: parameters.kid,
        })
    }
}

/// Reads a JSON object; serde alone would also take an array of the fields' values.
pub(super) fn parse_object<'j, T: Deserialize<'j>>(json: &'j [u8]) -> Option<T> {
    json.trim_ascii_start()
        .starts_with(b"{")
        .then(|| serde_json::from_slice(json).ok())
        .flatten()
}
