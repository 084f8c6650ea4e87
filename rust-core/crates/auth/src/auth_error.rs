use crate::KeyHeader;

/// A reason why a well-formed request is not authorized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AuthError {
    /// None of the fields that can contain a key is present.
    #[error(
        "You didn't provide an API key. Send it as \"Authorization: Bearer YOUR_KEY\", or by itself in x-api-key, api-key or x-goog-api-key."
    )]
    MissingKey,
    /// The field does not contain one key or token within the length limit (after `Bearer` if it is
    /// Authorization).
    #[error("The {0} header is not of the form \"{form}\".", form = .0.expected_format())]
    MalformedKey(KeyHeader),
    /// The two fields contain different keys.
    #[error("The headers {0} and {1} contain different API keys. Send one key.")]
    AmbiguousKey(KeyHeader, KeyHeader),
    /// No tenant owns this key.
    #[error("Incorrect API key provided.")]
    UnknownKey,
    /// The key is known but has expired.
    #[error("The API key provided has expired. Use a newer one.")]
    ExpiredKey,
    /// The token is not three parts of base64url, its header is not a JSON object, or it has a critical extension.
    #[error("The token provided is not a well-formed signed JWT.")]
    MalformedToken,
    /// The token's issuer or key is not configured for the token's algorithm.
    #[error("The token provided is signed with an algorithm that is not accepted.")]
    UnsupportedAlgorithm,
    /// The token's `iss` is not configured.
    #[error("The token provided is from an issuer that this gateway does not know.")]
    UnknownIssuer,
    /// The issuer's key set has no key, or several matching keys, for the token.
    #[error(
        "The token provided is signed with a key that this gateway does not know. Try again later or get a new token."
    )]
    UnknownSigningKey,
    /// The signature was not made by the key that the token names.
    #[error("The signature of the token provided is wrong.")]
    InvalidSignature,
    /// `iss`, `aud`, `exp` or `nbf` is missing although required, repeated, or of the wrong type.
    #[error("The token provided lacks a required claim, or a claim is malformed.")]
    InvalidClaims,
    /// The token is for another audience.
    #[error("The token provided is not for this service: it has a different audience.")]
    WrongAudience,
    /// The token's `exp` is in the past.
    #[error("The token provided has expired. Get a new one.")]
    ExpiredToken,
    /// The token's `nbf` is in the future.
    #[error("The token provided is not valid yet.")]
    TokenNotYetValid,
    /// The token is valid but names no tenant of this gateway.
    #[error("The token provided does not belong to a tenant of this service.")]
    UnknownTenant,
    /// The tenant's plan is not in the configuration, so its permissions are unknown.
    #[error(
        "The tenant of this credential has a plan that this gateway does not know. Ask the gateway administrator."
    )]
    UnknownPlan,
    /// The endpoint is not in the tenant's allow-list.
    #[error("You are not allowed to use this endpoint.")]
    EndpointNotAllowed,
}

impl AuthError {
    /// Returns the HTTP status: 400 if the request contains two keys, 403 if the tenant is known,
    /// 401 otherwise. A tenant without a known plan does not count as known.
    pub fn status(self) -> u16 {
        match self {
            AuthError::AmbiguousKey(..) => 400,
            AuthError::UnknownTenant | AuthError::EndpointNotAllowed => 403,
            _ => 401,
        }
    }

    /// Returns a stable machine-readable code: OpenAI's code if there is one.
    pub fn code(self) -> &'static str {
        match self {
            AuthError::MissingKey => "missing_api_key",
            AuthError::MalformedKey(_) => "malformed_api_key",
            AuthError::AmbiguousKey(..) => "ambiguous_api_key",
            AuthError::UnknownKey => "invalid_api_key",
            AuthError::ExpiredKey => "expired_api_key",
            AuthError::MalformedToken => "malformed_token",
            AuthError::UnsupportedAlgorithm => "unsupported_token_algorithm",
            AuthError::UnknownIssuer => "unknown_token_issuer",
            AuthError::UnknownSigningKey => "unknown_signing_key",
            AuthError::InvalidSignature => "invalid_token_signature",
            AuthError::InvalidClaims => "invalid_token_claims",
            AuthError::WrongAudience => "wrong_token_audience",
            AuthError::ExpiredToken => "expired_token",
            AuthError::TokenNotYetValid => "token_not_yet_valid",
            AuthError::UnknownTenant => "unknown_tenant",
            AuthError::UnknownPlan => "plan_unknown",
            AuthError::EndpointNotAllowed => "endpoint_not_allowed",
        }
    }

    /// Returns the value of the response's `www-authenticate` field (RFC 6750 section 3). A request without credentials gets
    /// no error code, as section 3.1 requires.
    pub fn www_authenticate(self) -> &'static str {
        match self {
            AuthError::MissingKey => r#"Bearer realm="proofgate""#,
            AuthError::MalformedKey(_) | AuthError::AmbiguousKey(..) => {
                r#"Bearer realm="proofgate", error="invalid_request""#
            }
            AuthError::UnknownTenant | AuthError::EndpointNotAllowed => {
                r#"Bearer realm="proofgate", error="insufficient_scope""#
            }
            _ => r#"Bearer realm="proofgate", error="invalid_token""#,
        }
    }
}
